//! Softmax of rows of scores, in place.
//!
//! The row's maximum is subtracted first, so nothing overflows whatever the scores' size; the exponentials are
//! normalized here and not after the product with V, so that Y stays inside V's range. One division a row.
//!
//! A block goes through in three passes over all its rows: maxima, exponentials with their sums, and the scaling. Row by
//! row each pass would wait for the reduction before it, longer than a processor can look ahead. In each pass four rows
//! go side by side, vector by vector: their chains of operations do not wait for each other.

use super::exp::exp_each;
use super::{MatMut, RowSet};
use crate::simd::{Group, Kernel, Simd};

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

    /// Rows r..r + R, each as many vectors as the last of them has.
    #[inline(always)]
    fn group<S: Simd, const R: usize>(&mut self, r: usize) -> Option<Group<'_, R>> {
        let vectors = self.keys(r + R - 1).div_ceil(S::LANES);
        let data = self.scores.data.get_mut(r * self.scores.stride..)?;
        Group::new::<S>(data, self.scores.stride, vectors)
    }

    /// The largest score of each of R rows; the padding becomes -inf, whose weight is 0.
    #[inline(always)]
    fn maxima<S: Simd, const R: usize>(&mut self, s: S, r: usize) -> [f32; 4] {
        let lowest = s.splat(f32::NEG_INFINITY);
        let mut max = [lowest; 4];
        let mut keys = [0; R];
        for i in 0..R {
            keys[i] = self.keys(r + i);
        }
        let Some(mut group) = self.group::<S, R>(r) else { return [0.0; 4] };
        for i in 0..R {
            for v in keys[i] / S::LANES..group.vectors() {
                let used = keys[i].saturating_sub(v * S::LANES);
                let padded = s.first_or(group.load(s, i, v), used, lowest);
                group.store(s, i, v, padded);
            }
        }
        for v in 0..group.vectors() {
            for i in 0..R {
                max[i] = s.max(max[i], group.load(s, i, v));
            }
        }
        s.reduce_max(max)
    }

    /// The scores of R rows become exponentials; the inverses of their sums.
    #[inline(always)]
    fn exponentials<S: Simd, const R: usize>(&mut self, s: S, r: usize, max: [f32; 4]) -> [f32; 4] {
        let mut sum = [s.splat(0.0); 4];
        if let Some(mut group) = self.group::<S, R>(r) {
            for v in 0..group.vectors() {
                let mut x = [s.splat(0.0); R];
                for i in 0..R {
                    x[i] = s.sub(group.load(s, i, v), s.splat(max[i]));
                }
                let e = exp_each(s, x);
                for i in 0..R {
                    sum[i] = s.add(sum[i], e[i]);
                    group.store(s, i, v, e[i]);
                }
            }
        }
        let mut inverse = s.reduce_add(sum);
        for sum in &mut inverse {
            *sum = 1.0 / *sum;
        }
        inverse
    }

    /// The exponentials of R rows become weights.
    #[inline(always)]
    fn normalize<S: Simd, const R: usize>(&mut self, s: S, r: usize, inverse: [f32; 4]) {
        if let Some(mut group) = self.group::<S, R>(r) {
            for v in 0..group.vectors() {
                for i in 0..R {
                    let weight = s.mul(group.load(s, i, v), s.splat(inverse[i]));
                    group.store(s, i, v, weight);
                }
            }
        }
    }

    /// Of R rows those that have no key, given their maxima.
    #[inline(always)]
    fn find_without_key<const R: usize>(&mut self, found: &mut RowSet, r: usize, max: [f32; 4]) {
        // the maximum of a row that holds a NaN may be anything, this included
        if max.iter().take(R).any(|max| *max == f32::NEG_INFINITY) {
            for r in r..r + R {
                if all_lowest(self.row(r, 1)) {
                    found.insert(r);
                }
            }
        }
    }
}

impl Kernel for Softmax<'_> {
    /// The rows that have no key in use, all their scores being -inf: their weights are zeros.
    type Output = RowSet;

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) -> RowSet {
        let rows = self.rows.min(RowSet::MOST);
        let mut without_key = RowSet::EMPTY;
        let fours = rows / 4 * 4;
        // of each row its maximum, then the inverse of its sum
        let mut of_row = [[0.0; 4]; RowSet::MOST / 4];
        for (four, of_row) in of_row.iter_mut().enumerate().take(fours / 4) {
            *of_row = self.maxima::<S, 4>(s, 4 * four);
            self.find_without_key::<4>(&mut without_key, 4 * four, *of_row);
        }
        for (four, of_row) in of_row.iter_mut().enumerate().take(fours / 4) {
            *of_row = self.exponentials::<S, 4>(s, 4 * four, *of_row);
        }
        for (four, of_row) in of_row.iter().enumerate().take(fours / 4) {
            self.normalize::<S, 4>(s, 4 * four, *of_row);
        }
        for r in fours..rows {
            let max = self.maxima::<S, 1>(s, r);
            self.find_without_key::<1>(&mut without_key, r, max);
            let inverse = self.exponentials::<S, 1>(s, r, max);
            self.normalize::<S, 1>(s, r, inverse);
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
