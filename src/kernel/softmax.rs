//! Softmax of rows of scores, in place.
//!
//! The row's maximum is subtracted first, so nothing overflows whatever the scores' size; the exponentials are
//! normalized here and not after the product with V, so that Y stays inside V's range. One division a row.
//!
//! A block goes through in three passes over all its rows: maxima, exponentials with their sums, and the scaling. Row by
//! row each pass would wait for the reduction before it, longer than a processor can look ahead.

use super::exp::exp;
use super::{MatMut, RowSet};
use crate::simd::{Kernel, Simd};

/// Rows of scores to normalize. Rows are padded to whole vectors, and the padding is overwritten.
pub struct Softmax<'a> {
    pub(crate) scores: MatMut<'a>,
    /// At most [`RowSet::MOST`].
    pub(crate) rows: usize,
    /// How many scores a row has: at least one.
    pub(crate) keys: usize,
    /// Row r has only this many scores and r more.
    pub(crate) staircase: Option<usize>,
}

impl Softmax<'_> {
    /// How many scores row `r` has.
    #[inline(always)]
    fn keys(&self, r: usize) -> usize {
        self.staircase.map_or(self.keys, |first| self.keys.min(first.saturating_add(r)))
    }

    /// Row `r`, padded to whole vectors.
    #[inline(always)]
    pub(crate) fn row(&mut self, r: usize, lanes: usize) -> &mut [f32] {
        let (start, padded) = (r * self.scores.stride, self.keys(r).next_multiple_of(lanes));
        self.scores.data.get_mut(start..start + padded).unwrap_or(&mut [])
    }
}

impl Kernel for Softmax<'_> {
    /// The rows that have no key in use, all their scores being -inf: their weights are zeros.
    type Output = RowSet;

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) -> RowSet {
        let rows = self.rows.min(RowSet::MOST);
        let lowest = s.splat(f32::NEG_INFINITY);
        let mut without_key = RowSet::EMPTY;
        // of each row its maximum, then the inverse of its sum; reduced four rows at a time
        let mut of_row = [[0.0; 4]; RowSet::MOST / 4];

        for (four, of_row) in of_row.iter_mut().enumerate().take(rows.div_ceil(4)) {
            let mut max = [lowest; 4];
            for (i, max) in max.iter_mut().enumerate().take(rows - 4 * four) {
                let keys = self.keys(4 * four + i);
                let row = self.row(4 * four + i, S::LANES);
                // the padding becomes -inf, whose weight is 0
                let tail = keys % S::LANES;
                if tail != 0
                    && let Some(last) = row.get_mut(keys - tail..)
                {
                    s.store(last, s.first_or(s.load(last), tail, lowest));
                }
                for v in row.chunks_exact(S::LANES) {
                    *max = s.max(*max, s.load(v));
                }
            }
            *of_row = s.reduce_max(max);
            // the maximum of a row that holds a NaN may be anything, this included
            if of_row.contains(&f32::NEG_INFINITY) {
                for r in (4 * four..rows).take(4) {
                    if all_lowest(self.row(r, S::LANES)) {
                        without_key.insert(r);
                    }
                }
            }
        }

        for (four, of_row) in of_row.iter_mut().enumerate().take(rows.div_ceil(4)) {
            let mut sum = [s.splat(0.0); 4];
            for (i, sum) in sum.iter_mut().enumerate().take(rows - 4 * four) {
                let max = s.splat(of_row[i]);
                for v in self.row(4 * four + i, S::LANES).chunks_exact_mut(S::LANES) {
                    let e = exp(s, s.sub(s.load(v), max));
                    *sum = s.add(*sum, e);
                    s.store(v, e);
                }
            }
            let sum = s.reduce_add(sum);
            for i in 0..4 {
                of_row[i] = 1.0 / sum[i];
            }
        }

        for r in 0..rows {
            let scale = s.splat(of_row[r / 4][r % 4]);
            for v in self.row(r, S::LANES).chunks_exact_mut(S::LANES) {
                let e = s.load(v);
                s.store(v, s.mul(e, scale));
            }
        }
        if !without_key.is_empty() {
            for r in (0..rows).filter(|r| without_key.contains(*r)) {
                self.row(r, S::LANES).fill(0.0);
            }
        }
        without_key
    }
}

/// Whether every score of a row is -inf.
#[cold]
#[inline(never)]
fn all_lowest(row: &[f32]) -> bool {
    row.iter().all(|x| *x == f32::NEG_INFINITY)
}
