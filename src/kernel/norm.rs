//! Layer norm and RMS norm of rows.
//!
//! Layer norm looks at each row more than once, so that a large common offset does not cancel: the mean is subtracted
//! first, what is left has a mean of its own (the rounding of the first one), which is subtracted too, and the variance
//! is that of the differences. An offset of a million times the spread costs no more than the rounding of the input.

use super::{Mat, MatMut};
use crate::simd::{Kernel, Simd};

/// `y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, row by row, with the biased variance; or, not centred,
/// `y = x / sqrt(mean(x^2) + eps) * weight`.
pub struct Normalize<'a> {
    /// `[rows, width]`
    pub(crate) x: Mat<'a>,
    /// `[rows, width]`
    pub(crate) y: MatMut<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// `[width]`; ones where there is none.
    pub(crate) weight: Option<&'a [f32]>,
    /// `[width]`; zeros where there is none.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) eps: f32,
    /// Layer norm, else RMS norm.
    pub(crate) centred: bool,
}

impl Kernel for Normalize<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        for (r, y) in self.y.rows(self.rows, self.width).enumerate() {
            let Some(x) = self.x.skip_rows(r).data.get(..self.width) else { return };
            if self.centred {
                let rounding = subtract(s, mean(s, x), x, y);
                let inverse = inverse_root(mean_square(s, rounding, y) + self.eps);
                scale(s, y, rounding, inverse, self.weight, self.bias);
            } else {
                let inverse = inverse_root(mean_square(s, 0.0, x) + self.eps);
                subtract(s, 0.0, x, y);
                scale(s, y, 0.0, inverse, self.weight, self.bias);
            }
        }
    }
}

fn inverse_root(x: f32) -> f32 {
    1.0 / libm::sqrtf(x)
}

/// The sum of the lanes.
#[inline(always)]
fn total<S: Simd>(s: S, v: S::F32) -> f32 {
    let zero = s.splat(0.0);
    let [sum, ..] = s.reduce_add([v, zero, zero, zero]);
    sum
}

#[inline(always)]
fn mean<S: Simd>(s: S, x: &[f32]) -> f32 {
    let mut sum = s.splat(0.0);
    for v in x.chunks(S::LANES) {
        sum = s.add(sum, s.load(v));
    }
    total(s, sum) / x.len() as f32
}

/// `y = x - mean`; gives the mean of y.
#[inline(always)]
fn subtract<S: Simd>(s: S, mean: f32, x: &[f32], y: &mut [f32]) -> f32 {
    let (mean, zero) = (s.splat(mean), s.splat(0.0));
    let mut sum = zero;
    for (x, y) in x.chunks(S::LANES).zip(y.chunks_mut(S::LANES)) {
        let d = s.sub(s.load(x), mean);
        s.store(y, d);
        sum = s.add(sum, if x.len() < S::LANES { s.first_or(d, x.len(), zero) } else { d });
    }
    total(s, sum) / x.len() as f32
}

/// The mean of `(x - c)^2`.
#[inline(always)]
fn mean_square<S: Simd>(s: S, c: f32, x: &[f32]) -> f32 {
    let (c, zero) = (s.splat(c), s.splat(0.0));
    let mut sum = zero;
    for x in x.chunks(S::LANES) {
        let d = s.sub(s.load(x), c);
        let d = if x.len() < S::LANES { s.first_or(d, x.len(), zero) } else { d };
        sum = s.mul_add(d, d, sum);
    }
    total(s, sum) / x.len() as f32
}

/// `y = (y - c) inverse weight + bias`
#[inline(always)]
fn scale<S: Simd>(s: S, y: &mut [f32], c: f32, inverse: f32, weight: Option<&[f32]>, bias: Option<&[f32]>) {
    let (c, inverse) = (s.splat(c), s.splat(inverse));
    let mut weights = weight.map(|w| w.chunks(S::LANES));
    let mut biases = bias.map(|b| b.chunks(S::LANES));
    for y in y.chunks_mut(S::LANES) {
        let mut v = s.mul(s.sub(s.load(y), c), inverse);
        if let Some(w) = weights.as_mut().and_then(Iterator::next) {
            v = s.mul(v, s.load(w));
        }
        if let Some(b) = biases.as_mut().and_then(Iterator::next) {
            v = s.add(v, s.load(b));
        }
        s.store(y, v);
    }
}
