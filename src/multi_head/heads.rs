use crate::kernel::{Kernels, Mat, MatMul, MatMut};
use crate::linear::Linear;
use crate::scratch::padded;
use crate::synthesizer::{Block, Row, Synthesizer};

/// Several heads: what gives each of them its scores. Sealed.
///
/// - [`DenseHeads`]: one hidden layer, of which each head scores its own slice, as in most implementations.
/// - `[S; HEADS]`, an array of any [`Synthesizer`] of the family: each head scores the whole row of X by itself, for
///   Dense with a hidden layer of its own. Heads that borrow the same weights share them.
pub trait Heads {
    /// A row of X: `[f32; D]`.
    type Row: Row;
    /// What scores one head.
    #[doc(hidden)]
    type Head: Synthesizer;

    /// How many heads there are.
    const HEADS: usize;
    /// Numbers in the weights of all heads.
    const PARAMETERS: usize;
    /// Multiply-adds for one row of scores of every head, over all keys.
    const SCORE_MULTIPLY_ADDS: usize;
    /// Floats a row of the layer that the heads share.
    #[doc(hidden)]
    const SHARED: usize;

    #[doc(hidden)]
    fn heads(&self) -> &[Self::Head];

    /// Computes the layer that the heads share.
    #[doc(hidden)]
    fn share<K: Kernels>(&self, k: K, x: Mat<'_>, rows: usize, shared: MatMut<'_>);

    /// What head i scores.
    #[doc(hidden)]
    fn input<'b>(x: Mat<'b>, shared: Mat<'b>, i: usize) -> Mat<'b>;
}

impl<S: Synthesizer, const HEADS: usize> Heads for [S; HEADS] {
    type Row = S::Row;
    type Head = S;

    const HEADS: usize = HEADS;
    const PARAMETERS: usize = HEADS * S::PARAMETERS;
    const SCORE_MULTIPLY_ADDS: usize = HEADS * S::SCORE_MULTIPLY_ADDS;
    const SHARED: usize = 0;

    #[inline(always)]
    fn heads(&self) -> &[S] {
        self
    }

    #[inline(always)]
    fn share<K: Kernels>(&self, _: K, _: Mat<'_>, _: usize, _: MatMut<'_>) {}

    #[inline(always)]
    fn input<'b>(x: Mat<'b>, _: Mat<'b>, _: usize) -> Mat<'b> {
        x
    }
}

/// Dense Synthesizer heads over one hidden layer: head i scores its slice,
/// `B_i = relu(X W1 + b1)[:, i H .. (i + 1) H] W2_i + b2_i`.
///
/// L is the maximum length, D the width of a row of X, W the width of the hidden layer (often D), H the width of a
/// head's slice of it, `W = HEADS H`, checked when the program is compiled.
#[derive(Clone, Copy, Debug)]
pub struct DenseHeads<'a, const L: usize, const D: usize, const W: usize, const H: usize, const HEADS: usize> {
    hidden: Linear<'a, D, W>,
    scores: [HeadScores<'a, L, H>; HEADS],
}

impl<'a, const L: usize, const D: usize, const W: usize, const H: usize, const HEADS: usize>
    DenseHeads<'a, L, D, W, H, HEADS>
{
    /// From the hidden layer and each head's second layer: `w2` `[HEADS, H, L]`, input-major, and `b2` `[HEADS, L]`.
    ///
    /// PyTorch's parameter is usually `[HEADS, L, H]`:
    /// [`input_major_heads`](crate::weights::input_major_heads) turns it into this.
    #[must_use]
    pub const fn new(
        hidden: Linear<'a, D, W>,
        w2: &'a [[[f32; L]; H]; HEADS],
        b2: Option<&'a [[f32; L]; HEADS]>,
    ) -> Self {
        const { assert!(HEADS > 0, "there is at least one head") }
        let mut second = [Linear::without_bias(&w2[0]); HEADS];
        let mut i = 0;
        while i < HEADS {
            let bias = match b2 {
                Some(b2) => Some(&b2[i]),
                None => None,
            };
            second[i] = Linear::with_bias(&w2[i], bias);
            i += 1;
        }
        Self::from_layers(hidden, second)
    }

    /// From the hidden layer and one second layer that all heads share: they differ in their slice alone.
    #[must_use]
    pub const fn sharing(hidden: Linear<'a, D, W>, second: Linear<'a, H, L>) -> Self {
        Self::from_layers(hidden, [second; HEADS])
    }

    /// From the hidden layer and each head's second layer.
    #[must_use]
    pub const fn from_layers(hidden: Linear<'a, D, W>, second: [Linear<'a, H, L>; HEADS]) -> Self {
        const {
            assert!(HEADS > 0, "there is at least one head");
            assert!(HEADS.checked_mul(H).is_some() && HEADS * H == W, "the heads' slices make up the hidden layer");
        }
        let mut scores = [HeadScores(second[0]); HEADS];
        let mut i = 0;
        while i < HEADS {
            scores[i] = HeadScores(second[i]);
            i += 1;
        }
        Self { hidden, scores }
    }
}

impl<'a, const L: usize, const D: usize, const W: usize, const H: usize, const HEADS: usize> Heads
    for DenseHeads<'a, L, D, W, H, HEADS>
{
    type Row = [f32; D];
    type Head = HeadScores<'a, L, H>;

    const HEADS: usize = HEADS;
    const PARAMETERS: usize = Linear::<D, W>::PARAMETERS + HEADS * Linear::<H, L>::PARAMETERS;
    const SCORE_MULTIPLY_ADDS: usize = D * W + W * L;
    const SHARED: usize = padded(W);

    #[inline(always)]
    fn heads(&self) -> &[Self::Head] {
        &self.scores
    }

    #[inline(always)]
    fn share<K: Kernels>(&self, k: K, x: Mat<'_>, rows: usize, shared: MatMut<'_>) {
        k.matmul::<W>(self.hidden.product(x, shared, rows, true).relu());
    }

    #[inline(always)]
    fn input<'b>(_: Mat<'b>, shared: Mat<'b>, i: usize) -> Mat<'b> {
        shared.skip_cols(i * H)
    }
}

/// One layer's scores, `B = X W + b`, of a head's slice of the hidden layer.
#[derive(Clone, Copy, Debug)]
pub struct HeadScores<'a, const L: usize, const H: usize>(Linear<'a, H, L>);

impl<const L: usize, const H: usize> Synthesizer for HeadScores<'_, L, H> {
    type Row = [f32; H];

    const MAX_LEN: usize = L;
    const PARAMETERS: usize = Linear::<H, L>::PARAMETERS;
    const SCORE_MULTIPLY_ADDS: usize = H * L;
    const WORK: usize = 0;

    #[inline(always)]
    fn scores<K: Kernels>(&self, k: K, block: Block<'_>) {
        let Block { x, rows, keys, scores, .. } = block;
        k.matmul::<L>(MatMul { cols: keys, ..self.0.product(x, scores, rows, true) });
    }
}
