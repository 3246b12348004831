//! The softmax on one float at a time: row by row, since there are no reductions to wait for.

use super::{Scalar, one_at_a_time};
use crate::kernel::{RowSet, Softmax, exp};

/// See [`Softmax`].
pub(super) fn softmax(mut rows: Softmax<'_>) -> RowSet {
    let mut without_key = RowSet::EMPTY;
    for r in 0..rows.rows.min(RowSet::MOST) {
        if !softmax_of_row(rows.row(r, 1)) {
            without_key.insert(r);
        }
    }
    without_key
}

/// Whether the row has a key.
fn softmax_of_row(row: &mut [f32]) -> bool {
    let mut max = f32::NEG_INFINITY;
    // NaN, which no comparison finds, and which the sum takes up
    for x in &*row {
        if *x > max {
            max = *x;
        }
    }
    if max == f32::NEG_INFINITY && row.iter().all(|x| *x == max) {
        row.fill(0.0);
        return false;
    }
    let mut sum = 0.0;
    for x in &mut *row {
        *x = exp::exp(Scalar, *x - max);
        sum += *x;
        one_at_a_time();
    }
    let scale = 1.0 / sum;
    for x in row {
        *x *= scale;
        one_at_a_time();
    }
    true
}
