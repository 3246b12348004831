//! Softmax of rows of at most four scores, two rows to a vector: their maxima, exponentials and sums are taken together.
//!
//! The bits are those of [`Softmax`], whose sum of a row takes the same steps but for adding zeros.

#![allow(clippy::unused_self)] // the token proves the features

#[allow(clippy::wildcard_imports)] // intrinsics carry their own prefix
use core::arch::x86_64::*;

use super::Avx2;
use crate::kernel::{RowSet, Softmax, exp::exp};
use crate::simd::Simd;

/// Lanes of one row: half a vector.
const WIDTH: usize = 4;

impl Avx2 {
    #[inline(always)]
    pub(super) fn softmax_of_pairs(self, rows: Softmax<'_>) -> RowSet {
        let (count, keys, stride) = (rows.rows, rows.keys, rows.scores.stride);
        let end = count.saturating_sub(1).saturating_mul(stride).saturating_add(WIDTH);
        if rows.staircase.is_some() || keys > WIDTH || end > rows.scores.data.len() {
            return self.softmax(rows);
        }
        let lowest = self.splat(f32::NEG_INFINITY);
        for row in (0..count).step_by(2) {
            let next = (row + 1).min(count - 1); // the last of an odd number goes with itself
            let scores = rows.scores.data.as_mut_ptr();
            // SAFETY: both rows exist, with WIDTH floats each; the token proves AVX.
            let (first, second, v) = unsafe {
                let (first, second) = (scores.add(row * stride), scores.add(next * stride));
                (first, second, _mm256_set_m128(_mm_loadu_ps(second), _mm_loadu_ps(first)))
            };
            let v = if keys < WIDTH { self.first_of_each(v, keys, lowest) } else { v };
            let max = self.max_of_each(v);
            if self.any_equal(max, lowest) {
                return self.perhaps_without_key(rows, row);
            }
            let e = exp(self, self.sub(v, max));
            // SAFETY: as above; where the rows are one, so are the halves.
            unsafe {
                let weights = self.mul(e, _mm256_div_ps(self.splat(1.0), self.sum_of_each(e)));
                _mm_storeu_ps(first, _mm256_castps256_ps128(weights));
                _mm_storeu_ps(second, _mm256_extractf128_ps::<1>(weights));
            }
        }
        RowSet::EMPTY
    }

    /// The softmax of rows `done` and on, of which one may have no key.
    #[cold]
    #[inline(never)]
    fn perhaps_without_key(self, mut rows: Softmax<'_>, done: usize) -> RowSet {
        let (left, keys) = (rows.rows - done, rows.keys);
        let found = self.softmax(Softmax { scores: rows.scores.skip_rows(done), rows: left, keys, staircase: None });
        let mut without_key = RowSet::EMPTY;
        (0..left).filter(|r| found.contains(*r)).for_each(|r| without_key.insert(done + r));
        without_key
    }

    /// The first `keys` lanes of each half, and `fill` in the others.
    #[inline(always)]
    fn first_of_each(self, v: __m256, keys: usize, fill: __m256) -> __m256 {
        let half = Self::first(keys);
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(_mm256_permute2x128_si256::<0>(half, half))) }
    }

    /// In every lane the largest of its half.
    #[inline(always)]
    fn max_of_each(self, v: __m256) -> __m256 {
        // SAFETY: the token proves AVX.
        unsafe {
            let v = self.max(v, _mm256_permute_ps::<0b01_00_11_10>(v));
            self.max(v, _mm256_permute_ps::<0b10_11_00_01>(v))
        }
    }

    /// In every lane the sum of its half.
    #[inline(always)]
    fn sum_of_each(self, v: __m256) -> __m256 {
        // SAFETY: the token proves AVX.
        unsafe {
            let v = self.add(v, _mm256_permute_ps::<0b01_00_11_10>(v));
            self.add(v, _mm256_permute_ps::<0b10_11_00_01>(v))
        }
    }

    /// Whether any lane of `a` is equal to its like of `b`.
    #[inline(always)]
    fn any_equal(self, a: __m256, b: __m256) -> bool {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(a, b)) != 0 }
    }
}
