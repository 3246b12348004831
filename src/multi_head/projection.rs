use core::marker::PhantomData;

use crate::kernel::{Kernels, Mat, MatMut};
use crate::linear::Linear;
use crate::synthesizer::Row;

/// What rows go through before or after attention: a [`Linear`] layer, or nothing ([`Identity`]). Sealed.
pub trait Projection {
    /// A row that goes in: `[f32; D]`.
    type In: Row;
    /// A row that comes out: `[f32; M]`.
    type Out: Row;

    /// Numbers in its weights.
    const PARAMETERS: usize;
    /// Whether it does nothing.
    #[doc(hidden)]
    const IDENTITY: bool = false;

    /// Writes the rows of `y`, which are padded to whole vectors or not.
    #[doc(hidden)]
    fn project<K: Kernels>(&self, k: K, x: Mat<'_>, y: MatMut<'_>, rows: usize, padded: bool);
}

impl<const D: usize, const M: usize> Projection for Linear<'_, D, M> {
    type In = [f32; D];
    type Out = [f32; M];

    const PARAMETERS: usize = Self::PARAMETERS;

    #[inline(always)]
    fn project<K: Kernels>(&self, k: K, x: Mat<'_>, y: MatMut<'_>, rows: usize, padded: bool) {
        k.matmul::<M>(self.product(x, y, rows, padded));
    }
}

/// No projection: rows of D columns stay as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<const D: usize>(PhantomData<[f32; D]>);

impl<const D: usize> Identity<D> {
    /// No projection.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<const D: usize> Projection for Identity<D> {
    type In = [f32; D];
    type Out = [f32; D];

    const PARAMETERS: usize = 0;
    const IDENTITY: bool = true;

    #[inline(always)]
    fn project<K: Kernels>(&self, _: K, x: Mat<'_>, mut y: MatMut<'_>, rows: usize, _: bool) {
        for (r, y) in y.rows(rows, D).enumerate() {
            for (y, x) in y.iter_mut().zip(x.skip_rows(r).data) {
                *y = *x;
            }
        }
    }
}
