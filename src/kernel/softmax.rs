//! Softmax of rows of scores, in place.
//!
//! The row's maximum is subtracted first, so nothing overflows whatever the scores' size; the exponentials are
//! normalized here and not after the product with V, so that Y stays inside V's range. One division a row.

use super::MatMut;
use super::exp::exp;
use crate::simd::{Kernel, Simd};

/// Rows of scores to normalize. Rows are padded to whole vectors, and the padding is overwritten.
pub struct Softmax<'a> {
    pub(crate) scores: MatMut<'a>,
    /// At most 64.
    pub(crate) rows: usize,
    /// How many scores a row has: at least one.
    pub(crate) keys: usize,
    /// Row r has only this many scores and r more.
    pub(crate) staircase: Option<usize>,
}

impl Kernel for Softmax<'_> {
    /// Bit r is set where row r has no key in use: all its scores are -inf.
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) -> u64 {
        let mut without_key = 0;
        let padded = self.keys.next_multiple_of(S::LANES);
        for (r, row) in self.scores.rows(self.rows, padded).enumerate() {
            let keys = self.staircase.map_or(self.keys, |first| self.keys.min(first.saturating_add(r)));
            if let Some(row) = row.get_mut(..keys.next_multiple_of(S::LANES)) {
                without_key |= u64::from(softmax(s, row, keys)) << (r & 63);
            }
        }
        without_key
    }
}

/// Softmax of the first `keys` floats of a row padded to whole vectors. True if every score is -inf: then the weights
/// are zeros.
#[inline(always)]
fn softmax<S: Simd>(s: S, row: &mut [f32], keys: usize) -> bool {
    let lowest = s.splat(f32::NEG_INFINITY);

    // the padding becomes -inf, whose weight is 0
    let tail = keys % S::LANES;
    if tail != 0
        && let Some(last) = row.get_mut(keys - tail..)
    {
        s.store(last, s.first_or(s.load(last), tail, lowest));
    }

    let mut max = lowest;
    for v in row.chunks_exact(S::LANES) {
        max = s.max(max, s.load(v));
    }
    let max = s.reduce_max(max);
    // the maximum of a row that holds a NaN may be anything, this included
    if max == f32::NEG_INFINITY && row.iter().all(|x| *x == f32::NEG_INFINITY) {
        row.fill(0.0);
        return true;
    }

    let max = s.splat(max);
    let mut sum = s.splat(0.0);
    for v in row.chunks_exact_mut(S::LANES) {
        let e = exp(s, s.sub(s.load(v), max));
        sum = s.add(sum, e);
        s.store(v, e);
    }
    let scale = s.splat(1.0 / s.reduce_add(sum));
    for v in row.chunks_exact_mut(S::LANES) {
        let e = s.load(v);
        s.store(v, s.mul(e, scale));
    }
    false
}
