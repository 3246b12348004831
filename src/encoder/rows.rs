use crate::error::Error;
use crate::kernel::{Mat, MatMut, add_scaled};
use crate::options::Options;
use crate::simd::{Kernel, Simd, dispatch, one_at_a_time};

/// `y += x`, row by row: a residual connection, or a learned position added to each row.
///
/// # Errors
/// Before anything is written, where `x` and `y` differ in height or the backend is not there.
pub fn residual<const D: usize>(options: &Options<'_>, x: &[[f32; D]], y: &mut [[f32; D]]) -> Result<(), Error> {
    if x.len() != y.len() {
        return Err(Error::Rows { given: y.len(), needed: x.len() });
    }
    let (rows, y) = (x.len(), MatMut { data: y.as_flattened_mut(), stride: D });
    dispatch(options.backend, Residual { x: Mat::new(x), y, rows, width: D })
}

/// The mean of the rows in use, `[D]`: those that [`Options::key_mask`] keeps, or all of them. Zeros where there is
/// none. A row that is left out may hold anything.
///
/// # Errors
/// Before anything is written, where the mask has another length than `x` or the backend is not there.
pub fn mean_pool<const D: usize>(options: &Options<'_>, x: &[[f32; D]], y: &mut [f32; D]) -> Result<(), Error> {
    if let Some(mask) = options.key_mask
        && mask.len() != x.len()
    {
        return Err(Error::KeyMask { given: mask.len(), needed: x.len() });
    }
    let (x, rows) = (Mat::new(x), x.len());
    dispatch(options.backend, MeanPool { x, rows, keep: options.key_mask, y })
}

/// `Y += X`
pub(crate) struct Residual<'a> {
    pub(crate) x: Mat<'a>,
    pub(crate) y: MatMut<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
}

impl Kernel for Residual<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, _: S) {
        // plain loops over slices: the compiler widens them to the backend's vectors
        for (r, y) in self.y.rows(self.rows, self.width).enumerate() {
            add_scaled(y, 1.0, self.x.skip_rows(r).data);
        }
    }
}

struct MeanPool<'a> {
    x: Mat<'a>,
    rows: usize,
    keep: Option<&'a [bool]>,
    y: &'a mut [f32],
}

impl Kernel for MeanPool<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        self.y.fill(0.0);
        let mut count = 0.0;
        for r in 0..self.rows {
            if self.keep.is_none_or(|keep| keep.get(r) == Some(&true)) {
                add_scaled(self.y, 1.0, self.x.skip_rows(r).data);
                count += 1.0;
            }
        }
        if count > 0.0 {
            for y in self.y {
                *y /= count;
                one_at_a_time();
            }
        }
    }
}
