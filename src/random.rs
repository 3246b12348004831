use core::marker::PhantomData;

use crate::kernel::{Kernels, Mat, MatMul};
use crate::synthesizer::{Block, Positional, Synthesizer};

/// Random Synthesizer: `B = R`, a matrix that was trained or drawn once and does not look at X.
///
/// R is `[L, L]`: its row p holds the scores of the row at position p, its first n columns those of n keys (Tay et al.,
/// section 3.3). D is the width of the rows of X that the layer is called with; it reads none of them.
///
/// The softmax can be taken ahead of time: see [`Positional::freeze`].
#[derive(Clone, Copy, Debug)]
pub struct Random<'a, const L: usize, const D: usize> {
    r: &'a [[f32; L]; L],
    row: PhantomData<[f32; D]>,
}

impl<'a, const L: usize, const D: usize> Random<'a, L, D> {
    /// From R, `[L, L]`.
    #[must_use]
    pub const fn new(r: &'a [[f32; L]; L]) -> Self {
        const { assert!(L > 0 && D > 0, "every size of a layer is at least 1") }
        Self { r, row: PhantomData }
    }
}

impl<const L: usize, const D: usize> Synthesizer for Random<'_, L, D> {
    type Row = [f32; D];

    const MAX_LEN: usize = L;
    const PARAMETERS: usize = L * L;
    const SCORE_MULTIPLY_ADDS: usize = 0;
    const POSITIONS: usize = L;
    const WORK: usize = 0;

    #[inline(always)]
    fn scores<K: Kernels>(&self, _: K, block: Block<'_>) {
        let Block { rows, position, keys, mut scores, .. } = block;
        for (to, from) in scores.rows(rows, keys).zip(self.r.iter().skip(position)) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = *from;
            }
        }
    }
}

impl<const L: usize, const D: usize> Positional for Random<'_, L, D> {}

/// Factorized Random Synthesizer: `B = R1 R2^T` with two matrices of rank K (Tay et al., section 3.4; there K = 8).
///
/// R1 is `[L, K]`. R2 comes transposed, `[K, L]`: [`input_major`](crate::weights::input_major) turns PyTorch's `[L, K]`
/// into it.
#[derive(Clone, Copy, Debug)]
pub struct FactorizedRandom<'a, const L: usize, const D: usize, const K: usize> {
    r1: &'a [[f32; K]; L],
    r2_transposed: &'a [[f32; L]; K],
    row: PhantomData<[f32; D]>,
}

impl<'a, const L: usize, const D: usize, const K: usize> FactorizedRandom<'a, L, D, K> {
    /// From R1, `[L, K]`, and R2 transposed, `[K, L]`.
    #[must_use]
    pub const fn new(r1: &'a [[f32; K]; L], r2_transposed: &'a [[f32; L]; K]) -> Self {
        const { assert!(L > 0 && D > 0 && K > 0, "every size of a layer is at least 1") }
        Self { r1, r2_transposed, row: PhantomData }
    }
}

impl<const L: usize, const D: usize, const K: usize> Synthesizer for FactorizedRandom<'_, L, D, K> {
    type Row = [f32; D];

    const MAX_LEN: usize = L;
    const PARAMETERS: usize = 2 * L * K;
    const SCORE_MULTIPLY_ADDS: usize = K * L;
    const POSITIONS: usize = L;
    const WORK: usize = 0;

    #[inline(always)]
    fn scores<S: Kernels>(&self, k: S, block: Block<'_>) {
        let Block { rows, position, keys, scores, .. } = block;
        let r1 = Mat::new(self.r1).skip_rows(position);
        k.matmul::<L>(MatMul::new(r1, Mat::new(self.r2_transposed), scores, rows, K, keys));
    }
}

impl<const L: usize, const D: usize, const K: usize> Positional for FactorizedRandom<'_, L, D, K> {}
