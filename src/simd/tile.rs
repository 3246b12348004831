//! The matrix product: register tiles and the loops over them.
//!
//! A tile of R rows and V vectors of columns of C lives in R V registers while the loop over the terms k runs: V loads
//! of B and R broadcasts of A feed R V multiply-adds. Columns are the outer loop, so that the panel of B a tile reads
//! stays in cache for all rows of the block.
//!
//! The last vector of a row that is no whole number of vectors is moved back until it ends with the row; the columns
//! it shares with its neighbour are computed twice, to the same bits. So there are no masks, except in rows narrower
//! than one vector, and nothing outside the matrices is touched.

use super::Simd;
use crate::kernel::MatMul;

/// What is known of a product's sizes when it is compiled: tiles that they rule out are not compiled at all.
pub(crate) trait Sizes {
    /// The number of rows; 0 where it may be any.
    const ROWS: usize;
    /// The most columns; 0 where it may be any.
    const COLS: usize;
}

/// Sizes that only the call knows.
pub(crate) struct AnySize;

impl Sizes for AnySize {
    const ROWS: usize = 0;
    const COLS: usize = 0;
}

/// See [`MatMul`]. Does nothing if a matrix is too short for the sizes, which no caller in this crate lets happen.
#[inline(always)]
pub(crate) fn matmul<S: Simd, Z: Sizes>(s: S, mut product: MatMul<'_>) {
    if product.rows == 0 || product.cols == 0 {
        return;
    }
    if !fits::<S>(&product) {
        debug_assert!(false, "a matrix is shorter than its sizes: {product:?}");
        return;
    }
    let m = &mut product;
    if m.cols < S::LANES {
        // SAFETY: it fits.
        unsafe { rows::<S, Z, 1, true>(s, m, [0]) }
        return;
    }
    if const { Z::COLS != 0 && Z::COLS < S::LANES } {
        return;
    }
    let last = m.cols - S::LANES;
    let mut left = m.cols.div_ceil(S::LANES);
    let mut col = 0;
    while left > 0 {
        let vectors = share(left, const { widest::<S>() });
        let at = |v: usize| (col + v * S::LANES).min(last);
        // SAFETY: it fits, and every vector of columns ends with the row at the latest.
        unsafe {
            match vectors {
                4 if const { wide::<S, Z>(4) } => rows::<S, Z, 4, false>(s, m, [at(0), at(1), at(2), at(3)]),
                3 if const { wide::<S, Z>(3) } => rows::<S, Z, 3, false>(s, m, [at(0), at(1), at(2)]),
                2 if const { wide::<S, Z>(2) } => rows::<S, Z, 2, false>(s, m, [at(0), at(1)]),
                _ if const { wide::<S, Z>(1) } => rows::<S, Z, 1, false>(s, m, [at(0)]),
                _ => {}
            }
        }
        col += vectors * S::LANES;
        left -= vectors;
    }
}

/// How many of `left` to take at once: the most, but the last two shares are about equal.
#[inline(always)]
pub(crate) const fn share(left: usize, most: usize) -> usize {
    if left <= most {
        left
    } else if left < 2 * most {
        left.div_ceil(2)
    } else {
        most
    }
}

/// Whether every element the product touches lies inside its buffer.
#[inline(always)]
fn fits<S: Simd>(m: &MatMul<'_>) -> bool {
    let length = |rows: usize, stride: usize, width: usize| (rows - 1).saturating_mul(stride).saturating_add(width);
    let written = if m.padded { m.cols.max(S::LANES) } else { m.cols };
    m.a.data.len() >= length(m.rows, m.a.stride, m.terms)
        && (m.terms == 0 || m.b.data.len() >= length(m.terms, m.b.stride, m.cols))
        && m.c.data.len() >= length(m.rows, m.c.stride, written)
        && m.bias.is_none_or(|bias| bias.len() >= m.cols)
        && m.keep.is_none_or(|keep| keep.len() >= m.terms)
}

/// All rows of the columns at `cols`.
///
/// # Safety
/// `fits`, and each of `cols` plus a vector is at most `m.cols`, or NARROW and it is 0.
#[inline(always)]
unsafe fn rows<S: Simd, Z: Sizes, const V: usize, const NARROW: bool>(s: S, m: &mut MatMul<'_>, cols: [usize; V]) {
    let most = S::TILE_ROWS[V - 1];
    let mut row = 0;
    while row < m.rows {
        let left = m.rows - row;
        let count = if S::EVERY_ROW_COUNT {
            share(left, most)
        } else if left >= most {
            most
        } else {
            1
        };
        // SAFETY: as the caller says, and rows row..row + count exist.
        unsafe {
            match count {
                16 if const { has::<S, Z>(16, V) } => tile::<S, 16, V, NARROW>(s, m, row, cols),
                15 if const { has::<S, Z>(15, V) } => tile::<S, 15, V, NARROW>(s, m, row, cols),
                14 if const { has::<S, Z>(14, V) } => tile::<S, 14, V, NARROW>(s, m, row, cols),
                13 if const { has::<S, Z>(13, V) } => tile::<S, 13, V, NARROW>(s, m, row, cols),
                12 if const { has::<S, Z>(12, V) } => tile::<S, 12, V, NARROW>(s, m, row, cols),
                11 if const { has::<S, Z>(11, V) } => tile::<S, 11, V, NARROW>(s, m, row, cols),
                10 if const { has::<S, Z>(10, V) } => tile::<S, 10, V, NARROW>(s, m, row, cols),
                9 if const { has::<S, Z>(9, V) } => tile::<S, 9, V, NARROW>(s, m, row, cols),
                8 if const { has::<S, Z>(8, V) } => tile::<S, 8, V, NARROW>(s, m, row, cols),
                7 if const { has::<S, Z>(7, V) } => tile::<S, 7, V, NARROW>(s, m, row, cols),
                6 if const { has::<S, Z>(6, V) } => tile::<S, 6, V, NARROW>(s, m, row, cols),
                5 if const { has::<S, Z>(5, V) } => tile::<S, 5, V, NARROW>(s, m, row, cols),
                4 if const { has::<S, Z>(4, V) } => tile::<S, 4, V, NARROW>(s, m, row, cols),
                3 if const { has::<S, Z>(3, V) } => tile::<S, 3, V, NARROW>(s, m, row, cols),
                2 if const { has::<S, Z>(2, V) } => tile::<S, 2, V, NARROW>(s, m, row, cols),
                _ if const { has::<S, Z>(1, V) } => tile::<S, 1, V, NARROW>(s, m, row, cols),
                _ => return,
            }
        }
        row += count;
    }
}

/// Whether a product of these sizes has tiles of this many rows at this width.
const fn has<S: Simd, Z: Sizes>(rows: usize, vectors: usize) -> bool {
    let most = S::TILE_ROWS[vectors - 1];
    let exists = rows == most || rows == 1 || (S::EVERY_ROW_COUNT && rows < most);
    most > 0 && exists && (Z::ROWS == 0 || !S::EVERY_ROW_COUNT || occurs(rows, Z::ROWS, most))
}

/// Whether a product of these sizes has tiles of this many vectors of columns. (A call may have fewer columns than the
/// layer; only calls for all of it have constant sizes.)
const fn wide<S: Simd, Z: Sizes>(vectors: usize) -> bool {
    S::TILE_ROWS[vectors - 1] > 0 && (Z::COLS == 0 || occurs(vectors, Z::COLS.div_ceil(S::LANES), widest::<S>()))
}

/// The most vectors of columns that a tile has.
const fn widest<S: Simd>() -> usize {
    let mut vectors = 4;
    while S::TILE_ROWS[vectors - 1] == 0 {
        vectors -= 1;
    }
    vectors
}

/// Whether `part` is among the shares of `all`.
const fn occurs(part: usize, all: usize, most: usize) -> bool {
    let mut left = all;
    while left > 0 {
        let taken = share(left, most);
        if taken == part {
            return true;
        }
        left -= taken;
    }
    false
}

/// Rows row..row + R of the columns at `cols`.
///
/// # Safety
/// As for [`rows`], and row + R <= m.rows.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const V: usize, const NARROW: bool>(
    s: S,
    m: &mut MatMul<'_>,
    row: usize,
    cols: [usize; V],
) {
    // no closures in here: one that is not inlined is compiled without the target features
    let width = m.cols;
    // SAFETY: row < m.rows, so A's row is inside its buffer.
    let a = unsafe { m.a.data.as_ptr().add(row * m.a.stride) };
    let a_stride = m.a.stride;
    let b = m.b.data.as_ptr();
    let b_stride = m.b.stride;

    let mut sums = [[s.splat(0.0); V]; R];
    if let Some(bias) = m.bias {
        for v in 0..V {
            // SAFETY: the bias is as long as a row of C.
            let start = unsafe { vector::<S, NARROW>(s, bias.as_ptr().add(cols[v]), width) };
            for sum in &mut sums {
                sum[v] = start;
            }
        }
    }

    // the terms that all R rows have
    let steps = m.staircase.map_or(m.terms, |first| first.saturating_add(row).min(m.terms));
    let mut k = 0;
    while k < steps {
        let (start, end) = run(m.keep, k, steps);
        for k in start..end {
            // SAFETY: k < m.terms, so the row of B exists and the vectors of `cols` lie in it.
            let b = unsafe { operands::<S, V, NARROW>(s, b.add(k * b_stride), cols, width) };
            for r in 0..R {
                // SAFETY: r < R and k < m.terms, so the element of A exists.
                let a = s.splat(unsafe { *a.add(r * a_stride + k) });
                for v in 0..V {
                    sums[r][v] = s.mul_add(a, b[v], sums[r][v]);
                }
            }
        }
        k = end;
    }
    // and those that only the lower ones have
    if m.staircase.is_some() {
        for k in steps..m.terms.min(steps + R - 1) {
            if m.keep.is_some_and(|keep| keep.get(k) == Some(&false)) {
                continue;
            }
            // SAFETY: k < m.terms, so the row of B exists and the vectors of `cols` lie in it.
            let b = unsafe { operands::<S, V, NARROW>(s, b.add(k * b_stride), cols, width) };
            for r in 1..R {
                if k < steps + r {
                    // SAFETY: r < R and k < m.terms, so the element of A exists.
                    let a = s.splat(unsafe { *a.add(r * a_stride + k) });
                    for v in 0..V {
                        sums[r][v] = s.mul_add(a, b[v], sums[r][v]);
                    }
                }
            }
        }
    }

    let zero = s.splat(0.0);
    // SAFETY: row < m.rows, so C's row is inside its buffer.
    let c = unsafe { m.c.data.as_mut_ptr().add(row * m.c.stride) };
    for (r, sums) in sums.iter().enumerate() {
        for v in 0..V {
            let sum = if m.relu { s.max(zero, sums[v]) } else { sums[v] };
            // SAFETY: r < R; the vector ends with the row, or the row is padded, or only `width` floats are written.
            unsafe {
                let to = c.add(r * m.c.stride + cols[v]);
                if NARROW && !m.padded { s.store_first_to(to, width, sum) } else { s.store_to(to, sum) }
            }
        }
    }
}

/// The vectors of a row of B, which starts at `row`.
///
/// # Safety
/// Each of `cols` plus a vector is inside the row, or NARROW and the row has `width` columns.
#[inline(always)]
unsafe fn operands<S: Simd, const V: usize, const NARROW: bool>(
    s: S,
    row: *const f32,
    cols: [usize; V],
    width: usize,
) -> [S::F32; V] {
    let mut operands = [s.splat(0.0); V];
    for v in 0..V {
        // SAFETY: as the caller says.
        operands[v] = unsafe { vector::<S, NARROW>(s, row.add(cols[v]), width) };
    }
    operands
}

/// A vector, or as much of it as a NARROW row has.
///
/// # Safety
/// A vector, or `width` floats where NARROW, are readable at `from`.
#[inline(always)]
unsafe fn vector<S: Simd, const NARROW: bool>(s: S, from: *const f32, width: usize) -> S::F32 {
    // SAFETY: as the caller says.
    unsafe { if NARROW { s.load_first_from(from, width) } else { s.load_from(from) } }
}

/// The next terms to compute, `from` at the earliest: `start..end`, none of them left out.
#[inline(always)]
fn run(keep: Option<&[bool]>, from: usize, steps: usize) -> (usize, usize) {
    let Some(keep) = keep else { return (from, steps) };
    let kept = |k: usize| keep.get(k).copied().unwrap_or(true);
    let mut start = from;
    while start < steps && !kept(start) {
        start += 1;
    }
    let mut end = start;
    while end < steps && kept(end) {
        end += 1;
    }
    (start, end)
}
