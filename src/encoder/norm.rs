use crate::error::Error;
use crate::kernel::norm::Normalize;
use crate::kernel::{Mat, MatMut};
use crate::options::Options;
use crate::simd::dispatch;
use crate::synthesizer::Row;

/// What normalizes the rows of an encoder block: [`LayerNorm`] or [`RmsNorm`]. Sealed.
pub trait Norm {
    /// A row: `[f32; D]`.
    type Row: Row;

    /// Numbers in its weights.
    const PARAMETERS: usize;

    /// The kernel over these rows.
    #[doc(hidden)]
    fn normalize<'a>(&'a self, x: Mat<'a>, y: MatMut<'a>, rows: usize) -> Normalize<'a>;

    /// Normalizes each row of `x` into `y`. Of the options the backend matters alone.
    ///
    /// # Errors
    /// Before anything is written, where `x` and `y` differ in height or the backend is not there.
    fn forward(&self, options: &Options<'_>, x: &[Self::Row], y: &mut [Self::Row]) -> Result<(), Error> {
        if x.len() != y.len() {
            return Err(Error::Rows { given: y.len(), needed: x.len() });
        }
        let rows = x.len();
        dispatch(options.backend, self.normalize(Self::Row::mat(x), Self::Row::mat_mut(y), rows))
    }
}

/// Layer norm, `y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias` with the biased variance (Ba, Kiros and Hinton,
/// arXiv 1607.06450): PyTorch's `nn.LayerNorm` over the last dimension.
///
/// ```
/// use synthesizer_attention::{LayerNorm, Norm, Options};
///
/// let norm = LayerNorm::<2>::plain();
/// let mut y = [[0.0; 2]];
/// norm.forward(&Options::new(), &[[5.0, 9.0]], &mut y)?;
/// assert!((y[0][0] + 1.0).abs() < 1e-5 && (y[0][1] - 1.0).abs() < 1e-5);
/// # Ok::<(), synthesizer_attention::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm<'a, const D: usize> {
    weight: Option<&'a [f32; D]>,
    bias: Option<&'a [f32; D]>,
    eps: f32,
}

impl<'a, const D: usize> LayerNorm<'a, D> {
    /// PyTorch's default eps.
    pub const EPS: f32 = 1e-5;

    /// From weight and bias, with PyTorch's default eps.
    #[must_use]
    pub const fn new(weight: &'a [f32; D], bias: &'a [f32; D]) -> Self {
        Self::with_parts(Some(weight), Some(bias), Self::EPS)
    }

    /// Without weight and bias, with PyTorch's default eps.
    #[must_use]
    pub const fn plain() -> Self {
        Self::with_parts(None, None, Self::EPS)
    }

    /// With either of weight and bias, both or none, and any eps.
    #[must_use]
    pub const fn with_parts(weight: Option<&'a [f32; D]>, bias: Option<&'a [f32; D]>, eps: f32) -> Self {
        const { assert!(D > 0, "a row has at least one column") }
        Self { weight, bias, eps }
    }
}

impl<const D: usize> Norm for LayerNorm<'_, D> {
    type Row = [f32; D];

    const PARAMETERS: usize = 2 * D;

    #[inline(always)]
    fn normalize<'a>(&'a self, x: Mat<'a>, y: MatMut<'a>, rows: usize) -> Normalize<'a> {
        let (weight, bias) = (self.weight.map(<[f32; D]>::as_slice), self.bias.map(<[f32; D]>::as_slice));
        Normalize { x, y, rows, width: D, weight, bias, eps: self.eps, centred: true }
    }
}

/// RMS norm, `y = x / sqrt(mean(x^2) + eps) * weight` (Zhang and Sennrich, arXiv 1910.07467): PyTorch's `nn.RMSNorm`
/// over the last dimension.
///
/// There is no default eps: PyTorch's is the distance from 1 to the next float32 ([`f32::EPSILON`]), that of trained
/// models mostly 1e-6 or 1e-5.
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm<'a, const D: usize> {
    weight: Option<&'a [f32; D]>,
    eps: f32,
}

impl<'a, const D: usize> RmsNorm<'a, D> {
    /// From the weight and eps.
    #[must_use]
    pub const fn new(weight: &'a [f32; D], eps: f32) -> Self {
        const { assert!(D > 0, "a row has at least one column") }
        Self { weight: Some(weight), eps }
    }

    /// Without a weight.
    #[must_use]
    pub const fn plain(eps: f32) -> Self {
        const { assert!(D > 0, "a row has at least one column") }
        Self { weight: None, eps }
    }
}

impl<const D: usize> Norm for RmsNorm<'_, D> {
    type Row = [f32; D];

    const PARAMETERS: usize = D;

    #[inline(always)]
    fn normalize<'a>(&'a self, x: Mat<'a>, y: MatMut<'a>, rows: usize) -> Normalize<'a> {
        let weight = self.weight.map(<[f32; D]>::as_slice);
        Normalize { x, y, rows, width: D, weight, bias: None, eps: self.eps, centred: false }
    }
}
