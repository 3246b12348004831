//! The matrix product on one float at a time: tiles of four columns and four rows or one, in registers.
//!
//! Written out where [`super::super::tile`] loops over a tile's rows and vectors: at opt-level "s" such loops stay
//! loops, and the sums would live in memory. The last four columns of a row that is no multiple of four are moved back
//! until they end with the row; those they share with their neighbours are computed twice, to the same bits.

use super::super::tile::{fits, run};
use super::{Scalar, one_at_a_time};
use crate::kernel::MatMul;

/// Columns of a tile.
const COLS: usize = 4;

/// See [`MatMul`]. Does nothing if a matrix is too short for the sizes, which no caller in this crate lets happen.
pub(super) fn matmul(mut product: MatMul<'_>) {
    let m = &mut product;
    if m.rows == 0 || m.cols == 0 || !fits::<Scalar>(m) {
        return;
    }
    let mut row = 0;
    while row < m.rows {
        let rows = if m.rows - row < 4 { 1 } else { 4 };
        let steps = m.staircase.map_or(m.terms, |first| first.saturating_add(row).min(m.terms));
        // SAFETY: it fits, and the rows, columns and terms exist.
        unsafe {
            let done = if m.cols < COLS {
                start(m, row, rows);
                0
            } else {
                let mut next = 0;
                while next < m.cols {
                    let col = next.min(m.cols - COLS);
                    if rows == 4 {
                        four_rows(m, row, col, steps);
                    } else {
                        one_row(m, row, col, steps);
                    }
                    next += COLS;
                }
                steps
            };
            for r in 0..rows {
                // row r of a staircase has r terms more
                add_terms(m, row + r, done, steps.saturating_add(r).min(m.terms));
            }
            if m.relu {
                relu(m, row, rows);
            }
        }
        row += rows;
    }
}

/// The terms of these columns. One load after the other: four sums in a vector would be made from a load of four.
///
/// # Safety
/// COLS floats are readable at `b`.
#[inline(always)]
unsafe fn terms(b: *const f32) -> [f32; COLS] {
    // SAFETY: as the caller says.
    unsafe {
        let b0 = *b;
        one_at_a_time();
        let b1 = *b.add(1);
        one_at_a_time();
        let b2 = *b.add(2);
        one_at_a_time();
        [b0, b1, b2, *b.add(3)]
    }
}

/// `sum + a b`, column by column.
#[inline(always)]
fn mul_add(a: f32, b: [f32; COLS], sum: [f32; COLS]) -> [f32; COLS] {
    let ([b0, b1, b2, b3], [s0, s1, s2, s3]) = (b, sum);
    [a * b0 + s0, a * b1 + s1, a * b2 + s2, a * b3 + s3]
}

/// A tile of the given rows: for each a name for its sums, one for its place in A, and its number.
macro_rules! tile {
    ($name:ident: $($sum:ident $a:ident $r:literal),+) => {
        /// These rows from `row` on, COLS columns from `col` on, and the first `steps` terms.
        ///
        /// # Safety
        /// The product fits, and has these rows, columns and terms.
        #[inline(never)]
        unsafe fn $name(m: &mut MatMul<'_>, row: usize, col: usize, steps: usize) {
            // SAFETY: as the caller says; pointers past the last term are made and not read.
            unsafe {
                let start = m.bias.map_or([0.0; COLS], |bias| *bias.as_ptr().add(col).cast());
                $(let mut $sum = start;)+
                let mut k = 0;
                loop {
                    let (first, end) = m.keep.map_or((k, steps), |keep| run(keep, k, steps));
                    let mut b = m.b.data.as_ptr().wrapping_add(first * m.b.stride + col);
                    $(let mut $a = m.a.data.as_ptr().wrapping_add((row + $r) * m.a.stride + first);)+
                    for _ in first..end {
                        let terms = terms(b);
                        $($sum = mul_add(*$a, terms, $sum);)+
                        b = b.wrapping_add(m.b.stride);
                        $($a = $a.wrapping_add(1);)+
                    }
                    k = end;
                    if k >= steps {
                        break;
                    }
                }
                let c = m.c.data.as_mut_ptr().add(row * m.c.stride + col);
                $(*c.add($r * m.c.stride).cast() = $sum;)+
            }
        }
    };
}

tile!(four_rows: s0 a0 0, s1 a1 1, s2 a2 2, s3 a3 3);
tile!(one_row: s0 a0 0);

/// Writes the bias.
///
/// # Safety
/// The product fits, and has these rows.
unsafe fn start(m: &mut MatMul<'_>, row: usize, rows: usize) {
    for r in row..row + rows {
        for col in 0..m.cols {
            // SAFETY: as the caller says, and the column exists.
            unsafe {
                *m.c.data.as_mut_ptr().add(r * m.c.stride + col) = m.bias.map_or(0.0, |bias| *bias.as_ptr().add(col));
            }
        }
    }
}

/// Adds terms `from..to` to a row that has been written.
///
/// # Safety
/// The product fits, and has this row and these terms.
unsafe fn add_terms(m: &mut MatMul<'_>, row: usize, from: usize, to: usize) {
    for k in from..to {
        if m.keep.is_some_and(|keep| keep.get(k) == Some(&false)) {
            continue;
        }
        // SAFETY: as the caller says, and the column exists.
        unsafe {
            let a = *m.a.data.as_ptr().add(row * m.a.stride + k);
            for col in 0..m.cols {
                *m.c.data.as_mut_ptr().add(row * m.c.stride + col) += a * *m.b.data.as_ptr().add(k * m.b.stride + col);
                one_at_a_time();
            }
        }
    }
}

/// ReLU of rows that have been written; a NaN stays one.
///
/// # Safety
/// The product fits, and has these rows.
unsafe fn relu(m: &mut MatMul<'_>, row: usize, rows: usize) {
    for r in row..row + rows {
        for col in 0..m.cols {
            // SAFETY: as the caller says, and the column exists.
            let c = unsafe { &mut *m.c.data.as_mut_ptr().add(r * m.c.stride + col) };
            if *c < 0.0 {
                *c = 0.0;
            }
            one_at_a_time();
        }
    }
}
