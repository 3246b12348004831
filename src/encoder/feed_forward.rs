use core::marker::PhantomData;

use crate::error::Error;
use crate::kernel::activation::{Activate, Elementwise, Function};
use crate::kernel::{Kernels, Mat, MatMut, Shared, block_rows, shared};
use crate::linear::Linear;
use crate::options::Options;
use crate::scratch::padded;
use crate::simd::{Kernel, Simd, dispatch};

/// What bends a hidden layer: [`Relu`], [`Gelu`] or [`GeluTanh`]. Sealed.
pub trait Activation: Elementwise {
    /// Applies the function to every number of `x`, in place. Of the options the backend matters alone.
    ///
    /// # Errors
    /// [`Error::Backend`] if the backend is not there.
    fn apply(options: &Options<'_>, x: &mut [f32]) -> Result<(), Error>
    where
        Self: Sized,
    {
        let width = x.len();
        let rows = MatMut { data: x, stride: width };
        dispatch(options.backend, Activate { rows, count: 1, width, function: PhantomData::<Self> })
    }
}

/// `max(x, 0)`; NaN of NaN.
#[derive(Clone, Copy, Debug, Default)]
pub struct Relu;

/// GELU, `x Phi(x)` with the normal distribution's Phi (Hendrycks and Gimpel, arXiv 1606.08415): PyTorch's
/// `nn.GELU()`.
///
/// Off by less than 2^-22 |x|, of which half is the rounding of x itself. GELU(-inf) is 0, the limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gelu;

/// GELU with `Phi(x) = (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`: PyTorch's `nn.GELU(approximate="tanh")`.
///
/// Off by less than 2^-22 |x|.
#[derive(Clone, Copy, Debug, Default)]
pub struct GeluTanh;

impl Elementwise for Relu {
    const FUNCTION: Function = Function::Relu;
}

impl Elementwise for Gelu {
    const FUNCTION: Function = Function::Gelu;
}

impl Elementwise for GeluTanh {
    const FUNCTION: Function = Function::GeluTanh;
}

impl Activation for Relu {}
impl Activation for Gelu {}
impl Activation for GeluTanh {}

/// The feed-forward layer of an encoder block: `y = f(x W1 + b1) W2 + b2`, row by row, from D columns over F to D
/// (Vaswani et al., section 3.3).
#[derive(Clone, Copy, Debug)]
pub struct FeedForward<'a, const D: usize, const F: usize, A> {
    up: Linear<'a, D, F>,
    down: Linear<'a, F, D>,
    activation: PhantomData<A>,
}

impl<'a, const D: usize, const F: usize, A: Activation> FeedForward<'a, D, F, A> {
    /// Numbers in its weights.
    pub const PARAMETERS: usize = Linear::<D, F>::PARAMETERS + Linear::<F, D>::PARAMETERS;
    /// Floats of scratch for [`forward`](Self::forward): the hidden layer of a block of rows.
    pub const SCRATCH: usize = BLOCK * Self::WORK;

    /// Floats a row of the hidden layer.
    pub(crate) const WORK: usize = padded(F);

    /// From the layer into the hidden width, the activation, and the layer back.
    #[must_use]
    pub const fn new(up: Linear<'a, D, F>, _: A, down: Linear<'a, F, D>) -> Self
    where
        A: Copy,
    {
        Self { up, down, activation: PhantomData }
    }

    /// `y = f(x W1 + b1) W2 + b2`, any number of rows. Of the options the backend matters alone; `scratch` is at least
    /// one row's hidden layer, better [`SCRATCH`](Self::SCRATCH).
    ///
    /// # Errors
    /// Before anything is written, where `x` and `y` differ in height, scratch is too small or the backend is not
    /// there.
    pub fn forward(
        &self,
        options: &Options<'_>,
        x: &[[f32; D]],
        y: &mut [[f32; D]],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        if x.len() != y.len() {
            return Err(Error::Rows { given: y.len(), needed: x.len() });
        }
        if scratch.len() < Self::WORK {
            return Err(Error::Scratch { given: scratch.len(), needed: Self::WORK });
        }
        let y = MatMut { data: y.as_flattened_mut(), stride: D };
        dispatch(options.backend, Pass { layer: self, x: Mat::new(x), rows: x.len(), y, scratch })
    }

    /// A block of rows; `hidden` has at least `rows` rows. The rows of `y` are padded to whole vectors or not.
    #[inline(always)]
    pub(crate) fn block<S: Simd>(
        &self,
        s: S,
        x: Mat<'_>,
        rows: usize,
        hidden: &mut [f32],
        y: MatMut<'_>,
        padded: bool,
    ) {
        let mut hidden = MatMut { data: hidden, stride: Self::WORK };
        let up = self.up.product(x, hidden.borrow(), rows, true);
        if matches!(A::FUNCTION, Function::Relu) {
            Shared(s).matmul::<F>(up.relu());
        } else {
            Shared(s).matmul::<F>(up);
            // whole vectors: what pads a row may become anything
            let rows = Activate { rows: hidden.borrow(), count: rows, width: Self::WORK, function: PhantomData::<A> };
            shared(s, rows);
        }
        Shared(s).matmul::<D>(self.down.product(hidden.as_mat(), y, rows, padded));
    }
}

/// Rows of a block where there is scratch for them.
const BLOCK: usize = 16;

struct Pass<'a, const D: usize, const F: usize, A> {
    layer: &'a FeedForward<'a, D, F, A>,
    x: Mat<'a>,
    rows: usize,
    y: MatMut<'a>,
    scratch: &'a mut [f32],
}

impl<const D: usize, const F: usize, A: Activation> Kernel for Pass<'_, D, F, A> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let most = (self.scratch.len() / FeedForward::<D, F, A>::WORK).max(1);
        let mut row = 0;
        while row < self.rows {
            let rows = block_rows::<S>(self.rows - row, most);
            self.layer.block(s, self.x.skip_rows(row), rows, self.scratch, self.y.skip_rows(row), false);
            row += rows;
        }
    }
}
