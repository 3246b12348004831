//! Softmax of rows of at most four scores, two rows to a vector: their maxima, exponentials and sums are taken together.
//!
//! The bits are those of [`Softmax`], whose sum of a row takes the same steps but for adding zeros.

#[allow(clippy::wildcard_imports)] // intrinsics carry their own prefix
use core::arch::x86_64::*;

use super::Avx2;
use crate::kernel::{RowSet, Softmax, exp::exp};
use crate::simd::Simd;

/// Lanes of one row.
const WIDTH: usize = 4;

#[inline(always)]
pub(super) fn softmax(s: Avx2, rows: Softmax<'_>) -> RowSet {
    let (count, keys, stride) = (rows.rows, rows.keys, rows.scores.stride);
    let end = count.saturating_sub(1).saturating_mul(stride).saturating_add(WIDTH);
    if rows.staircase.is_some() || keys > WIDTH || end > rows.scores.data.len() {
        return s.softmax(rows);
    }
    let lowest = s.splat(f32::NEG_INFINITY);
    for first in (0..count).step_by(2) {
        let second = (first + 1).min(count - 1); // the last row of an odd number goes with itself
        let scores = rows.scores.data.as_mut_ptr();
        // SAFETY: both rows exist, WIDTH floats each; the token proves AVX.
        let (first_row, second_row) = unsafe { (scores.add(first * stride), scores.add(second * stride)) };
        // SAFETY: as above.
        let v = unsafe { _mm256_set_m128(_mm_loadu_ps(second_row), _mm_loadu_ps(first_row)) };
        let v = if keys < WIDTH { first_of_each(s, v, keys, lowest) } else { v };
        let max = max_of_each(s, v);
        if any_equal(s, max, lowest) {
            return perhaps_without_key(s, rows, first);
        }
        let e = exp(s, s.sub(v, max));
        // SAFETY: the token proves AVX.
        let scale = unsafe { _mm256_div_ps(s.splat(1.0), sum_of_each(s, e)) };
        let weights = s.mul(e, scale);
        // SAFETY: as above; where the rows are one, so are the halves.
        unsafe {
            _mm_storeu_ps(first_row, _mm256_castps256_ps128(weights));
            _mm_storeu_ps(second_row, _mm256_extractf128_ps::<1>(weights));
        }
    }
    RowSet::EMPTY
}

/// Rows `done` and on, among them perhaps one without a key.
#[cold]
#[inline(never)]
fn perhaps_without_key(s: Avx2, mut rows: Softmax<'_>, done: usize) -> RowSet {
    let (left, keys) = (rows.rows - done, rows.keys);
    let found = s.softmax(Softmax { scores: rows.scores.skip_rows(done), rows: left, keys, staircase: None });
    let mut without_key = RowSet::EMPTY;
    (0..left).filter(|r| found.contains(*r)).for_each(|r| without_key.insert(done + r));
    without_key
}

/// The first `keys` lanes of each half, and `fill` in the others.
#[inline(always)]
fn first_of_each(s: Avx2, v: __m256, keys: usize, fill: __m256) -> __m256 {
    // SAFETY: the token proves AVX2.
    unsafe {
        let half = Avx2::first(keys);
        let _ = s;
        _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(_mm256_permute2x128_si256::<0>(half, half)))
    }
}

/// In every lane the largest of its half.
#[inline(always)]
fn max_of_each(s: Avx2, v: __m256) -> __m256 {
    // SAFETY: the token proves AVX.
    let v = s.max(v, unsafe { _mm256_permute_ps::<0b01_00_11_10>(v) });
    // SAFETY: as above.
    s.max(v, unsafe { _mm256_permute_ps::<0b10_11_00_01>(v) })
}

/// In every lane the sum of its half.
#[inline(always)]
fn sum_of_each(s: Avx2, v: __m256) -> __m256 {
    // SAFETY: the token proves AVX.
    let v = s.add(v, unsafe { _mm256_permute_ps::<0b01_00_11_10>(v) });
    // SAFETY: as above.
    s.add(v, unsafe { _mm256_permute_ps::<0b10_11_00_01>(v) })
}

#[inline(always)]
fn any_equal(_: Avx2, a: __m256, b: __m256) -> bool {
    // SAFETY: the token proves AVX.
    unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(a, b)) != 0 }
}
