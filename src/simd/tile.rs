//! The matrix product: register tiles and the loops over them.
//!
//! A tile of R rows and V vectors of columns of C lives in R V registers while the loop over the terms k runs: V loads
//! of B and R broadcasts of A feed R V multiply-adds. Columns are the outer loop, so that the panel of B a tile reads
//! stays in cache for all rows of the block.
//!
//! The last vector of a row that is no whole number of vectors is moved back until it ends with the row; the columns
//! it shares with its neighbour are computed twice, to the same bits. So there are no masks, except in rows narrower
//! than one vector, and nothing outside the matrices is touched.

use core::hint::black_box;
use core::marker::PhantomData;

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
pub(super) fn matmul<S: Simd, Z: Sizes>(s: S, mut product: MatMul<'_>) {
    if product.rows == 0 || product.cols == 0 {
        return;
    }
    debug_assert!(!product.relu || product.staircase.is_none(), "ReLU before the last terms: {product:?}");
    if !fits::<S>(&product) {
        debug_assert!(false, "a matrix is shorter than its sizes: {product:?}");
        return;
    }
    let m = &mut product;
    if m.cols < S::LANES {
        // SAFETY: it fits.
        unsafe { rows::<S, Z, 1, true>(s, m, Cols { first: 0, last: 0 }) }
        return;
    }
    if const { Z::COLS != 0 && Z::COLS < S::LANES } {
        return;
    }
    let end = m.cols - S::LANES;
    let mut left = m.cols.div_ceil(S::LANES);
    let mut first = 0;
    while left > 0 {
        let vectors = share(left, const { widest::<S>() });
        let cols = Cols { first, last: (first + (vectors - 1) * S::LANES).min(end) };
        // SAFETY: it fits, and the last vector of columns ends with the row at the latest.
        unsafe {
            match vectors {
                4 if const { wide::<S, Z>(4) } => rows::<S, Z, 4, false>(s, m, cols),
                3 if const { wide::<S, Z>(3) } => rows::<S, Z, 3, false>(s, m, cols),
                2 if const { wide::<S, Z>(2) } => rows::<S, Z, 2, false>(s, m, cols),
                _ if const { wide::<S, Z>(1) } => rows::<S, Z, 1, false>(s, m, cols),
                _ => {}
            }
        }
        first += vectors * S::LANES;
        left -= vectors;
    }
}

/// The columns of a tile of V vectors: one beside the other from `first` on, but for the last, which starts at `last`.
#[derive(Clone, Copy)]
struct Cols {
    first: usize,
    last: usize,
}

impl Cols {
    /// Where vector `v` starts.
    #[inline(always)]
    fn at<S: Simd, const V: usize>(self, v: usize) -> usize {
        if v + 1 < V { self.first + v * S::LANES } else { self.last }
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

/// Whether a buffer of `len` floats holds a matrix of at least one row.
#[inline(always)]
fn holds(len: usize, rows: usize, stride: usize, width: usize) -> bool {
    let last = (rows - 1).checked_mul(stride);
    last.is_some_and(|last| last.checked_add(width).is_some_and(|end| end <= len))
}

/// Whether every element the product touches lies inside its buffer.
#[inline(always)]
pub(super) fn fits<S: Simd>(m: &MatMul<'_>) -> bool {
    let written = if m.padded { m.cols.max(S::LANES) } else { m.cols };
    holds(m.a.data.len(), m.rows, m.a.stride, m.terms)
        && (m.terms == 0 || holds(m.b.data.len(), m.terms, m.b.stride, m.cols))
        && holds(m.c.data.len(), m.rows, m.c.stride, written)
        && m.bias.is_none_or(|bias| bias.len() >= m.cols)
        && m.keep.is_none_or(|keep| keep.len() >= m.terms)
}

/// All rows of the columns at `cols`.
///
/// # Safety
/// `fits`, and the last of the V vectors at `cols` ends with the row at the latest, or NARROW and `cols` is 0.
#[inline(always)]
unsafe fn rows<S: Simd, Z: Sizes, const V: usize, const NARROW: bool>(s: S, m: &mut MatMul<'_>, cols: Cols) {
    let mut ahead = Ahead::new::<S, V>(m, cols);
    let mut row = 0;
    while row < m.rows {
        let count = share(m.rows - row, S::TILE_ROWS[V - 1]);
        // SAFETY: as the caller says, and rows row..row + count exist.
        unsafe {
            match count {
                6 if const { fetches::<S, Z>(6, V) } && ahead.rows > 0 => {
                    tile::<S, Z, 6, V, NARROW, true>(s, m, row, cols, &mut ahead);
                }
                16 if const { has::<S, Z>(16, V) } => tile::<S, Z, 16, V, NARROW, false>(s, m, row, cols, &mut ahead),
                15 if const { has::<S, Z>(15, V) } => tile::<S, Z, 15, V, NARROW, false>(s, m, row, cols, &mut ahead),
                14 if const { has::<S, Z>(14, V) } => tile::<S, Z, 14, V, NARROW, false>(s, m, row, cols, &mut ahead),
                13 if const { has::<S, Z>(13, V) } => tile::<S, Z, 13, V, NARROW, false>(s, m, row, cols, &mut ahead),
                12 if const { has::<S, Z>(12, V) } => tile::<S, Z, 12, V, NARROW, false>(s, m, row, cols, &mut ahead),
                11 if const { has::<S, Z>(11, V) } => tile::<S, Z, 11, V, NARROW, false>(s, m, row, cols, &mut ahead),
                10 if const { has::<S, Z>(10, V) } => tile::<S, Z, 10, V, NARROW, false>(s, m, row, cols, &mut ahead),
                9 if const { has::<S, Z>(9, V) } => tile::<S, Z, 9, V, NARROW, false>(s, m, row, cols, &mut ahead),
                8 if const { has::<S, Z>(8, V) } => tile::<S, Z, 8, V, NARROW, false>(s, m, row, cols, &mut ahead),
                7 if const { has::<S, Z>(7, V) } => tile::<S, Z, 7, V, NARROW, false>(s, m, row, cols, &mut ahead),
                6 if const { has::<S, Z>(6, V) } => tile::<S, Z, 6, V, NARROW, false>(s, m, row, cols, &mut ahead),
                5 if const { has::<S, Z>(5, V) } => tile::<S, Z, 5, V, NARROW, false>(s, m, row, cols, &mut ahead),
                4 if const { has::<S, Z>(4, V) } => tile::<S, Z, 4, V, NARROW, false>(s, m, row, cols, &mut ahead),
                3 if const { has::<S, Z>(3, V) } => tile::<S, Z, 3, V, NARROW, false>(s, m, row, cols, &mut ahead),
                2 if const { has::<S, Z>(2, V) } => tile::<S, Z, 2, V, NARROW, false>(s, m, row, cols, &mut ahead),
                _ if const { has::<S, Z>(1, V) } => tile::<S, Z, 1, V, NARROW, false>(s, m, row, cols, &mut ahead),
                _ => return,
            }
            if let Some(first) = m.staircase {
                stairs::<S, V, NARROW>(s, m, row, count, cols, first.saturating_add(row));
            }
        }
        row += count;
    }
}

/// Whether a product of these sizes has tiles of this many rows at this width.
const fn has<S: Simd, Z: Sizes>(rows: usize, vectors: usize) -> bool {
    let most = S::TILE_ROWS[vectors - 1];
    rows <= most && (Z::ROWS == 0 || occurs(rows, Z::ROWS, most))
}

/// Whether these tiles have a twin that fetches ahead: the largest, of which a large product has little else.
const fn fetches<S: Simd, Z: Sizes>(rows: usize, vectors: usize) -> bool {
    S::FETCHES_AHEAD && Z::COLS == 0 && vectors == widest::<S>() && rows == S::TILE_ROWS[vectors - 1]
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

/// The next columns' rows of B, fetched a row at a time while these columns' tiles run: B may be larger than the core's
/// own cache, and its rows are too far apart for the processor to foresee.
struct Ahead {
    next: *const f32,
    stride: usize,
    /// Rows still to fetch.
    rows: usize,
}

impl Ahead {
    /// Floats of B from which on it pays.
    const LEAST: usize = 64 * 1024;
    /// Floats of a cache line.
    const LINE: usize = 16;
    /// Terms between two rows: often enough for the tiles of a block to fetch all, far enough apart for the memory.
    const TERMS: usize = 8;

    #[inline(always)]
    fn new<S: Simd, const V: usize>(m: &MatMul<'_>, cols: Cols) -> Self {
        let next = cols.last + S::LANES;
        let worth = const { S::FETCHES_AHEAD && V == widest::<S>() }
            && m.terms.saturating_mul(m.b.stride) >= Self::LEAST
            && next + V * S::LANES <= m.cols;
        Self { next: m.b.data.as_ptr().wrapping_add(next), stride: m.b.stride, rows: if worth { m.terms } else { 0 } }
    }

    /// Fetches a row, if one is left; where to fetch the next, of terms `from..end`.
    #[inline(always)]
    fn fetch<S: Simd, const V: usize>(&mut self, s: S, from: usize, end: usize) -> usize {
        if self.rows == 0 {
            return end;
        }
        for float in (0..V * S::LANES).step_by(Self::LINE) {
            s.prefetch(self.next.wrapping_add(float));
        }
        self.next = self.next.wrapping_add(self.stride);
        self.rows -= 1;
        end.min(from + Self::TERMS)
    }
}

/// R rows of A at one term.
///
/// Where their stride is no constant, they are reached from a pointer to every third of them: an x86 load adds the stride
/// or twice that for nothing, while the compiler, given one pointer, adds it anew for every row and term. A core that
/// works for two threads at once feels it.
struct A<Z, const R: usize> {
    thirds: [*const f32; MOST_ROWS.div_ceil(3)],
    stride: usize,
    term: usize,
    sizes: PhantomData<Z>,
}

/// The most rows of any backend's tile.
const MOST_ROWS: usize = 16;

impl<Z: Sizes, const R: usize> A<Z, R> {
    /// More pointers than four would not fit the registers.
    const BY_THREES: bool = cfg!(target_arch = "x86_64") && Z::ROWS == 0 && 3 < R && R <= 12;

    #[inline(always)]
    fn new(first: *const f32, stride: usize) -> Self {
        let mut thirds = [first; MOST_ROWS.div_ceil(3)];
        if const { Self::BY_THREES } {
            for i in 1..R.div_ceil(3) {
                thirds[i] = black_box(first.wrapping_add(3 * i * stride)); // or the compiler would see through it
            }
        }
        Self { thirds, stride, term: 0, sizes: PhantomData }
    }

    #[inline(always)]
    fn skip(&mut self, terms: usize) {
        if const { Self::BY_THREES } {
            for i in 0..R.div_ceil(3) {
                self.thirds[i] = self.thirds[i].wrapping_add(terms);
            }
        } else {
            self.term += terms;
        }
    }

    #[inline(always)]
    fn row(&self, r: usize) -> *const f32 {
        if const { Self::BY_THREES } {
            self.thirds[r / 3].wrapping_add(r % 3 * self.stride)
        } else {
            self.thirds[0].wrapping_add(r * self.stride + self.term)
        }
    }
}

/// Rows row..row + R of the columns at `cols`, over the terms that all of these rows have.
///
/// # Safety
/// As for [`rows`], and row + R <= m.rows.
#[inline(always)]
unsafe fn tile<S: Simd, Z: Sizes, const R: usize, const V: usize, const NARROW: bool, const FETCHES: bool>(
    s: S,
    m: &mut MatMul<'_>,
    row: usize,
    cols: Cols,
    ahead: &mut Ahead,
) {
    // no closures in here: one that is not inlined is compiled without the target features
    let width = m.cols;
    // SAFETY: row < m.rows, so A's row is inside its buffer.
    let a = unsafe { m.a.data.as_ptr().add(row * m.a.stride) };
    let a_stride = m.a.stride;
    let b = m.b.data.as_ptr();
    let b_stride = m.b.stride;

    let steps = match m.staircase {
        Some(first) => first.saturating_add(row).min(m.terms),
        None => m.terms,
    };
    // before there are sums: a call would put them all on the stack
    let (mut start, mut end) = match m.keep {
        Some(keep) => run(keep, 0, steps),
        None => (0, steps),
    };

    let mut sums = [[s.splat(0.0); V]; R];
    if let Some(bias) = m.bias {
        // SAFETY: the bias is as long as a row of C.
        sums = [unsafe { vectors::<S, V, NARROW>(s, bias.as_ptr(), cols, width) }; R];
    }

    // where to fetch ahead, or where the run ends
    let mut stop = if FETCHES { start } else { end };
    let mut a = A::<Z, R>::new(a, a_stride);
    a.skip(start);
    loop {
        for k in start..stop {
            // SAFETY: k < m.terms, so the row of B exists and the vectors of `cols` lie in it.
            let b = unsafe { vectors::<S, V, NARROW>(s, b.add(k * b_stride), cols, width) };
            for r in 0..R {
                // SAFETY: r < R and k < m.terms, so the element of A exists.
                let a = s.splat(unsafe { *a.row(r) });
                for v in 0..V {
                    sums[r][v] = s.mul_add(a, b[v], sums[r][v]);
                }
            }
            a.skip(1);
        }
        if FETCHES && stop < end {
            start = stop;
            stop = ahead.fetch::<S, V>(s, stop, end);
            continue;
        }
        if end >= steps {
            break;
        }
        let done = end;
        (start, end) = next_run(m.keep, end, steps);
        a.skip(start - done);
        stop = end;
    }

    let zero = s.splat(0.0);
    for r in 0..R {
        if m.relu {
            for v in 0..V {
                sums[r][v] = s.max(zero, sums[r][v]);
            }
        }
        // SAFETY: row + r < m.rows, so C's row is inside its buffer.
        unsafe {
            let to = m.c.data.as_mut_ptr().add((row + r) * m.c.stride);
            write::<S, V, NARROW>(s, to, cols, width, m.padded, sums[r]);
        }
    }
}

/// The terms of a staircase that only some rows of a tile have, added to what the tile has written: none for row `row`,
/// one for the next, and so on to row + count - 1. `steps` is how many terms row `row` has.
///
/// # Safety
/// As for [`rows`], and row + count <= m.rows.
#[inline(always)]
unsafe fn stairs<S: Simd, const V: usize, const NARROW: bool>(
    s: S,
    m: &mut MatMul<'_>,
    row: usize,
    count: usize,
    cols: Cols,
    steps: usize,
) {
    for r in 1..count {
        // SAFETY: row + r < m.rows, so the rows of A and C are inside their buffers, and k < m.terms.
        unsafe {
            let a = m.a.data.as_ptr().add((row + r) * m.a.stride);
            let c = m.c.data.as_mut_ptr().add((row + r) * m.c.stride);
            let mut sums = vectors::<S, V, NARROW>(s, c, cols, m.cols);
            for k in steps..steps.saturating_add(r).min(m.terms) {
                if m.keep.is_some_and(|keep| keep.get(k) == Some(&false)) {
                    continue;
                }
                let b = vectors::<S, V, NARROW>(s, m.b.data.as_ptr().add(k * m.b.stride), cols, m.cols);
                for v in 0..V {
                    sums[v] = s.mul_add(s.splat(*a.add(k)), b[v], sums[v]);
                }
            }
            write::<S, V, NARROW>(s, c, cols, m.cols, m.padded, sums);
        }
    }
}

/// The vectors at `cols` of the row that starts at `row`; where NARROW, the row's `width` columns.
///
/// # Safety
/// The last of the vectors is inside the row, or NARROW and the row has `width` columns.
#[inline(always)]
unsafe fn vectors<S: Simd, const V: usize, const NARROW: bool>(
    s: S,
    row: *const f32,
    cols: Cols,
    width: usize,
) -> [S::F32; V] {
    let mut vectors = [s.splat(0.0); V];
    for v in 0..V {
        // SAFETY: as the caller says.
        vectors[v] = unsafe {
            let from = row.add(cols.at::<S, V>(v));
            if NARROW { s.load_first_from(from, width) } else { s.load_from(from) }
        };
    }
    vectors
}

/// Writes the vectors at `cols` of the row that starts at `row`, of which NARROW rows have `width` columns unless they
/// are padded.
///
/// # Safety
/// As for [`vectors`], and a whole vector is writable where `padded`.
#[inline(always)]
unsafe fn write<S: Simd, const V: usize, const NARROW: bool>(
    s: S,
    row: *mut f32,
    cols: Cols,
    width: usize,
    padded: bool,
    vectors: [S::F32; V],
) {
    for v in 0..V {
        // SAFETY: as the caller says.
        unsafe {
            let to = row.add(cols.at::<S, V>(v));
            if NARROW && !padded { s.store_first_to(to, width, vectors[v]) } else { s.store_to(to, vectors[v]) }
        }
    }
}

/// The same after the first.
#[cold]
#[inline(never)]
fn next_run(keep: Option<&[bool]>, from: usize, steps: usize) -> (usize, usize) {
    match keep {
        Some(keep) => run(keep, from, steps),
        None => (steps, steps),
    }
}

/// The next terms to compute, `from` at the earliest: `start..end`, none of them left out.
#[inline(never)]
pub(super) fn run(keep: &[bool], from: usize, steps: usize) -> (usize, usize) {
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
