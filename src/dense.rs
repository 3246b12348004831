use crate::kernel::{Kernels, Mat, MatMul, MatMut};
use crate::scratch::padded;
use crate::synthesizer::{Block, Synthesizer};

/// Dense Synthesizer: `B = relu(X W1 + b1) W2 + b2`, each row of scores from its own row of X alone.
///
/// L is the maximum length (the number of scores), D the width of a row of X, H the width of the hidden layer. The
/// paper has H = D (Tay et al., arXiv 2005.00743, section 3.2: W1 in R^{d x d}, W2 in R^{d x L}); many implementations
/// have H = L. Both are instances of this type.
///
/// Weights are borrowed and input-major: row k of `w1` holds what input k contributes to every hidden unit. PyTorch's
/// `nn.Linear.weight` is the transpose; [`weights`](crate::weights) converts.
///
/// ```
/// use synthesizer_attention::{Dense, Synthesizer};
///
/// static LAYER: Dense<3, 2, 2> = Dense::without_bias(&[[1.0, 0.0], [0.0, 1.0]], &[[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]);
///
/// let x = [[1.0, 0.0], [0.0, 0.0], [0.5, -1.0]];
/// let v = [[1.0], [2.0], [3.0]];
/// let mut y = [[0.0]; 3];
/// let mut scratch = [0.0; Dense::<3, 2, 2>::SCRATCH];
/// LAYER.forward(&x, &v, &mut y, &mut scratch)?;
/// assert_eq!(y[1], [2.0]); // all scores alike: the mean of v
/// # Ok::<(), synthesizer_attention::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a, const L: usize, const D: usize, const H: usize> {
    w1: &'a [[f32; H]; D],
    b1: Option<&'a [f32; H]>,
    w2: &'a [[f32; L]; H],
    b2: Option<&'a [f32; L]>,
}

impl<'a, const L: usize, const D: usize, const H: usize> Dense<'a, L, D, H> {
    /// From input-major weights: `w1` `[D, H]`, `b1` `[H]`, `w2` `[H, L]`, `b2` `[L]`.
    #[must_use]
    pub const fn new(w1: &'a [[f32; H]; D], b1: &'a [f32; H], w2: &'a [[f32; L]; H], b2: &'a [f32; L]) -> Self {
        Self::with_biases(w1, Some(b1), w2, Some(b2))
    }

    /// Without biases.
    #[must_use]
    pub const fn without_bias(w1: &'a [[f32; H]; D], w2: &'a [[f32; L]; H]) -> Self {
        Self::with_biases(w1, None, w2, None)
    }

    /// With either bias, both or none.
    #[must_use]
    pub const fn with_biases(
        w1: &'a [[f32; H]; D],
        b1: Option<&'a [f32; H]>,
        w2: &'a [[f32; L]; H],
        b2: Option<&'a [f32; L]>,
    ) -> Self {
        const { assert!(L > 0 && D > 0 && H > 0, "every size of a layer is at least 1") }
        Self { w1, b1, w2, b2 }
    }
}

impl<const L: usize, const D: usize, const H: usize> Synthesizer for Dense<'_, L, D, H> {
    type Row = [f32; D];

    const MAX_LEN: usize = L;
    const PARAMETERS: usize = D * H + H + H * L + L;
    const SCORE_MULTIPLY_ADDS: usize = D * H + H * L;
    const WORK: usize = padded(H);

    #[inline(always)]
    fn scores<K: Kernels>(&self, k: K, block: Block<'_>) {
        let Block { x, rows, keys, work, scores, .. } = block;
        let mut hidden = MatMut { data: work, stride: padded(H) };
        k.matmul::<H>(MatMul::new(x, Mat::new(self.w1), hidden.borrow(), rows, D, H).bias(self.b1).relu());
        k.matmul::<L>(MatMul::new(hidden.as_mat(), Mat::new(self.w2), scores, rows, H, keys).bias(self.b2));
    }
}
