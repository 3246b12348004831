use crate::dense::Dense;
use crate::kernel::{Kernels, MatMut};
use crate::scratch::padded;
use crate::simd::one_at_a_time;
use crate::synthesizer::{Block, Synthesizer};

/// Factorized Dense Synthesizer: `B[:, j] = A[:, j mod a] C[:, j div a]` from two Dense score functions of a and b
/// outputs, `a b = L` (Tay et al., section 3.4).
///
/// A is tiled and C repeated, so that each of the a b pairs appears once. Fewer weights than [`Dense`]: the second
/// layers have `H (a + b)` instead of `H L`.
#[derive(Clone, Copy, Debug)]
pub struct FactorizedDense<
    'a,
    const L: usize,
    const A: usize,
    const C: usize,
    const D: usize,
    const HA: usize,
    const HC: usize,
> {
    a: Dense<'a, A, D, HA>,
    c: Dense<'a, C, D, HC>,
}

impl<'a, const L: usize, const A: usize, const C: usize, const D: usize, const HA: usize, const HC: usize>
    FactorizedDense<'a, L, A, C, D, HA, HC>
{
    /// From the score functions of the tiled factor `a` and of the repeated factor `c`. Does not build unless `A C = L`.
    #[must_use]
    pub const fn new(a: Dense<'a, A, D, HA>, c: Dense<'a, C, D, HC>) -> Self {
        const { assert!(A.checked_mul(C).is_some() && A * C == L, "the factors' sizes multiply to L") }
        Self { a, c }
    }
}

impl<const L: usize, const A: usize, const C: usize, const D: usize, const HA: usize, const HC: usize> Synthesizer
    for FactorizedDense<'_, L, A, C, D, HA, HC>
{
    type Row = [f32; D];

    const MAX_LEN: usize = L;
    const PARAMETERS: usize = Dense::<A, D, HA>::PARAMETERS + Dense::<C, D, HC>::PARAMETERS;
    const SCORE_MULTIPLY_ADDS: usize =
        Dense::<A, D, HA>::SCORE_MULTIPLY_ADDS + Dense::<C, D, HC>::SCORE_MULTIPLY_ADDS + L;
    const WORK: usize = padded(A) + padded(C) + if HA > HC { padded(HA) } else { padded(HC) };

    #[inline(always)]
    fn scores<K: Kernels>(&self, k: K, block: Block<'_>) {
        let Block { x, rows, position, keys, work, mut scores } = block;
        let Some((a, work)) = work.split_at_mut_checked(rows * padded(A)) else { return };
        let Some((c, work)) = work.split_at_mut_checked(rows * padded(C)) else { return };
        let mut a = MatMut { data: a, stride: padded(A) };
        let mut c = MatMut { data: c, stride: padded(C) };
        self.a.scores(k, Block { x, rows, position, keys: A, work, scores: a.borrow() });
        self.c.scores(k, Block { x, rows, position, keys: C, work, scores: c.borrow() });

        for ((row, a), c) in scores.rows(rows, keys).zip(a.rows(rows, A)).zip(c.rows(rows, C)) {
            let mut row = row;
            for c in c {
                let (tile, rest) = row.split_at_mut(A.min(row.len()));
                for (score, a) in tile.iter_mut().zip(&*a) {
                    *score = a * *c;
                    one_at_a_time();
                }
                row = rest;
            }
        }
    }
}
