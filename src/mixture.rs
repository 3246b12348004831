use crate::error::Error;
use crate::kernel::{Kernels, MatMut, add_scaled, scale};
use crate::scratch::padded;
use crate::synthesizer::{Block, Positional, Synthesizer};

/// Mixture of Synthesizers: `B = sum_i alpha_i S_i(X)`, inside the softmax (Tay et al., section 3.5).
///
/// [`Mixture::of`] takes the first part, [`and`](Self::and) each further one; all of them have the same maximum length
/// and the same rows of X. The paper's weights are a softmax of trained numbers, but any will do.
///
/// ```
/// use synthesizer_attention::{Dense, Mixture, Random, Synthesizer};
///
/// let r = [[0.0, 1.0], [1.0, 0.0]];
/// let w = [[1.0, -1.0], [0.5, 2.0]];
/// let mixture = Mixture::of(0.25, Random::new(&r)).and(0.75, Dense::without_bias(&w, &w));
///
/// let (x, v) = ([[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0]]);
/// let mut y = [[0.0]; 2];
/// mixture.forward(&x, &v, &mut y, &mut [0.0; 256])?;
/// # Ok::<(), synthesizer_attention::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mixture<A, B = Empty> {
    before: B, // the mixture so far
    alpha: f32,
    part: A,
}

/// No part: what a mixture starts from.
#[derive(Clone, Copy, Debug)]
pub struct Empty(());

impl<A: Synthesizer> Mixture<A> {
    /// The mixture `alpha part`.
    #[must_use]
    pub const fn of(alpha: f32, part: A) -> Self {
        Self { before: Empty(()), alpha, part }
    }
}

impl<A: Synthesizer, B> Mixture<A, B> {
    /// This mixture plus `alpha part`.
    #[must_use]
    pub const fn and<P: Synthesizer<Row = A::Row>>(self, alpha: f32, part: P) -> Mixture<P, Self> {
        const { assert!(A::MAX_LEN == P::MAX_LEN, "the parts of a mixture have one maximum length") }
        Mixture { before: self, alpha, part }
    }
}

impl<A: Synthesizer> Synthesizer for Mixture<A> {
    type Row = A::Row;

    const MAX_LEN: usize = A::MAX_LEN;
    const PARAMETERS: usize = A::PARAMETERS + 1;
    const SCORE_MULTIPLY_ADDS: usize = A::SCORE_MULTIPLY_ADDS + A::MAX_LEN;
    const POSITIONS: usize = A::POSITIONS;
    const WORK: usize = A::WORK;

    fn check(&self, keys: usize) -> Result<(), Error> {
        self.part.check(keys)
    }

    #[inline(always)]
    fn scores<K: Kernels>(&self, k: K, mut block: Block<'_>) {
        self.part.scores(k, block.borrow());
        block.scores.rows(block.rows, block.keys).for_each(|row| scale(row, self.alpha));
    }
}

impl<A: Synthesizer, C: Synthesizer<Row = A::Row>, B> Synthesizer for Mixture<A, Mixture<C, B>>
where
    Mixture<C, B>: Synthesizer<Row = A::Row>,
{
    type Row = A::Row;

    const MAX_LEN: usize = A::MAX_LEN;
    const PARAMETERS: usize = Mixture::<C, B>::PARAMETERS + A::PARAMETERS + 1;
    const SCORE_MULTIPLY_ADDS: usize = Mixture::<C, B>::SCORE_MULTIPLY_ADDS + A::SCORE_MULTIPLY_ADDS + A::MAX_LEN;
    const POSITIONS: usize =
        if A::POSITIONS < Mixture::<C, B>::POSITIONS { A::POSITIONS } else { Mixture::<C, B>::POSITIONS };
    // the part's own scores, and its work; before that the mixture so far had the place to itself
    const WORK: usize = {
        let (so_far, part) = (Mixture::<C, B>::WORK, padded(A::MAX_LEN) + A::WORK);
        if so_far > part { so_far } else { part }
    };

    fn check(&self, keys: usize) -> Result<(), Error> {
        self.before.check(keys)?;
        self.part.check(keys)
    }

    #[inline(always)]
    fn scores<K: Kernels>(&self, k: K, mut block: Block<'_>) {
        self.before.scores(k, block.borrow());
        let Block { x, rows, position, keys, work, mut scores } = block;
        let Some((own, work)) = work.split_at_mut_checked(rows * padded(A::MAX_LEN)) else { return };
        let mut own = MatMut { data: own, stride: padded(A::MAX_LEN) };
        self.part.scores(k, Block { x, rows, position, keys, work, scores: own.borrow() });
        for (sum, own) in scores.rows(rows, keys).zip(own.rows(rows, keys)) {
            add_scaled(sum, self.alpha, own);
        }
    }
}

impl<A: Positional> Positional for Mixture<A> {}

impl<A: Positional, C: Positional<Row = A::Row>, B> Positional for Mixture<A, Mixture<C, B>> where
    Mixture<C, B>: Positional<Row = A::Row>
{
}
