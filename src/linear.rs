use crate::error::Error;
use crate::kernel::{Mat, MatMul, MatMut};
use crate::options::Options;
use crate::simd::dispatch;

/// A linear layer, `Y = X W + b`, from D to M columns: the value projection G(X), and what queries, keys and outputs
/// are projected with.
///
/// W is input-major, `[D, M]`; [`weights`](crate::weights) converts PyTorch's `nn.Linear.weight`.
#[derive(Clone, Copy, Debug)]
pub struct Linear<'a, const D: usize, const M: usize> {
    w: &'a [[f32; M]; D],
    b: Option<&'a [f32; M]>,
}

impl<'a, const D: usize, const M: usize> Linear<'a, D, M> {
    /// Numbers in its weights.
    pub const PARAMETERS: usize = D * M + M;

    /// From an input-major weight `[D, M]` and a bias `[M]`.
    #[must_use]
    pub const fn new(w: &'a [[f32; M]; D], b: &'a [f32; M]) -> Self {
        Self::with_bias(w, Some(b))
    }

    /// Without a bias.
    #[must_use]
    pub const fn without_bias(w: &'a [[f32; M]; D]) -> Self {
        Self::with_bias(w, None)
    }

    /// With a bias or without.
    #[must_use]
    pub const fn with_bias(w: &'a [[f32; M]; D], b: Option<&'a [f32; M]>) -> Self {
        const { assert!(D > 0 && M > 0, "every size of a layer is at least 1") }
        Self { w, b }
    }

    /// `y = x W + b`, any number of rows.
    ///
    /// # Errors
    /// Before anything is written, where `x` and `y` differ in height.
    #[inline]
    pub fn forward(&self, x: &[[f32; D]], y: &mut [[f32; M]]) -> Result<(), Error> {
        self.forward_with(&Options::new(), x, y)
    }

    /// The same on a backend of the caller's choice; position and masks do not matter to it.
    ///
    /// # Errors
    /// Before anything is written, where `x` and `y` differ in height or the backend is not there.
    #[inline]
    pub fn forward_with(&self, options: &Options<'_>, x: &[[f32; D]], y: &mut [[f32; M]]) -> Result<(), Error> {
        if x.len() != y.len() {
            return Err(Error::Rows { given: y.len(), needed: x.len() });
        }
        let y = MatMut { data: y.as_flattened_mut(), stride: M };
        dispatch(options.backend, self.product(Mat::new(x), y, x.len(), false))
    }

    /// The product, into rows that are padded or not.
    #[inline(always)]
    pub(crate) fn product<'b>(&self, x: Mat<'b>, y: MatMut<'b>, rows: usize, padded: bool) -> MatMul<'b>
    where
        'a: 'b,
    {
        MatMul { padded, ..MatMul::new(x, Mat::new(self.w), y, rows, D, M).bias(self.b) }
    }
}
