//! The algorithms: safe, generic over [`Simd`](crate::simd::Simd), and ignorant of any variant's name.

pub(crate) mod activation;
pub(crate) mod exp;
pub(crate) mod norm;
mod row_set;
mod softmax;

pub(crate) use row_set::RowSet;
pub(crate) use softmax::Softmax;

use core::marker::PhantomData;
use core::sync::atomic::{Ordering, compiler_fence};

use crate::simd::{AnySize, Kernel, Simd, Sizes, one_at_a_time, share};
use crate::synthesizer::Synthesizer;

/// A matrix in somebody's buffer: row i starts at `data[i * stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) stride: usize,
}

impl<'a> Mat<'a> {
    pub(crate) fn new<const C: usize>(rows: &'a [[f32; C]]) -> Self {
        Self { data: rows.as_flattened(), stride: C }
    }

    /// The matrix without its first `rows` rows; empty where it has no more.
    #[inline(always)]
    pub(crate) fn skip_rows(self, rows: usize) -> Self {
        Self { data: self.data.get(rows * self.stride..).unwrap_or(&[]), ..self }
    }

    /// The matrix without its first `cols` columns.
    #[inline(always)]
    pub(crate) fn skip_cols(self, cols: usize) -> Self {
        Self { data: self.data.get(cols..).unwrap_or(&[]), ..self }
    }
}

/// A matrix to write to: row i starts at `data[i * stride]`.
#[derive(Debug)]
pub struct MatMut<'a> {
    pub(crate) data: &'a mut [f32],
    pub(crate) stride: usize,
}

impl MatMut<'_> {
    #[inline(always)]
    pub(crate) fn as_mat(&self) -> Mat<'_> {
        Mat { data: self.data, stride: self.stride }
    }

    /// The same matrix for a shorter time.
    #[inline(always)]
    pub(crate) fn borrow(&mut self) -> MatMut<'_> {
        MatMut { data: self.data, stride: self.stride }
    }

    /// The first `width` columns of the first `count` rows, row by row.
    #[inline(always)]
    pub(crate) fn rows(&mut self, count: usize, width: usize) -> impl Iterator<Item = &mut [f32]> {
        let stride = self.stride;
        let mut rest = &mut *self.data;
        (0..count).map_while(move |_| {
            let at = stride.min(rest.len());
            let (row, below) = core::mem::take(&mut rest).split_at_mut_checked(at)?;
            rest = below;
            row.get_mut(..width)
        })
    }

    /// The matrix without its first `rows` rows; empty where it has no more.
    #[inline(always)]
    pub(crate) fn skip_rows(&mut self, rows: usize) -> MatMut<'_> {
        MatMut { data: self.data.get_mut(rows * self.stride..).unwrap_or(&mut []), stride: self.stride }
    }

    /// The matrix without its first `cols` columns.
    #[inline(always)]
    pub(crate) fn skip_cols(&mut self, cols: usize) -> MatMut<'_> {
        MatMut { data: self.data.get_mut(cols..).unwrap_or(&mut []), stride: self.stride }
    }
}

/// `C = f(bias + A B)`, every element one chain of multiply-adds over the terms k in rising order, so that its bits do
/// not depend on how many rows and columns are computed with it.
#[derive(Debug)]
pub struct MatMul<'a> {
    /// `[rows, terms]`
    pub(crate) a: Mat<'a>,
    /// `[terms, cols]`
    pub(crate) b: Mat<'a>,
    /// `[rows, cols]`
    pub(crate) c: MatMut<'a>,
    /// `[cols]`; zeros where there is none.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) rows: usize,
    pub(crate) terms: usize,
    pub(crate) cols: usize,
    /// f is ReLU (a NaN stays one), else the identity.
    pub(crate) relu: bool,
    /// Rows of C are padded to whole vectors, which may be written.
    pub(crate) padded: bool,
    /// Row r stops after this many terms and r more. Not together with ReLU: some terms may be added after it.
    pub(crate) staircase: Option<usize>,
    /// Terms that are false here are left out, whatever A and B hold there.
    pub(crate) keep: Option<&'a [bool]>,
}

impl<'a> MatMul<'a> {
    /// A plain product into rows of scratch.
    #[inline(always)]
    pub(crate) fn new(a: Mat<'a>, b: Mat<'a>, c: MatMut<'a>, rows: usize, terms: usize, cols: usize) -> Self {
        Self { a, b, c, bias: None, rows, terms, cols, relu: false, padded: true, staircase: None, keep: None }
    }

    #[inline(always)]
    pub(crate) fn bias<const N: usize>(self, bias: Option<&'a [f32; N]>) -> Self {
        Self { bias: bias.map(<[f32; N]>::as_slice), ..self }
    }

    #[inline(always)]
    pub(crate) fn relu(self) -> Self {
        Self { relu: true, ..self }
    }
}

impl Kernel for MatMul<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        s.product::<AnySize>(self);
    }
}

/// `row = alpha row`
#[inline(always)]
pub(crate) fn scale(row: &mut [f32], alpha: f32) {
    for x in row {
        *x *= alpha;
        one_at_a_time();
    }
}

/// `row += alpha other`
#[inline(always)]
pub(crate) fn add_scaled(row: &mut [f32], alpha: f32, other: &[f32]) {
    for (x, other) in row.iter_mut().zip(other) {
        *x += alpha * other;
        one_at_a_time();
    }
}

/// How a pass reaches the kernels: [`Inline`] or [`Shared`].
pub trait Kernels: Copy {
    /// The product, of at most `COLS` columns.
    fn matmul<const COLS: usize>(self, product: MatMul<'_>);
    fn softmax(self, rows: Softmax<'_>) -> RowSet;
}

/// Kernels inlined into a pass over all rows of the layer T, for layers so small that constant sizes pay.
pub(crate) struct Inline<S, T>(S, PhantomData<T>);

impl<S: Simd, T> Inline<S, T> {
    #[inline(always)]
    pub(crate) fn new(s: S) -> Self {
        Self(s, PhantomData)
    }
}

impl<S: Copy, T> Clone for Inline<S, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Copy, T> Copy for Inline<S, T> {}

/// The sizes of a product where they are constant: as many rows as T has positions, and COLS columns.
struct Whole<T, const COLS: usize>(PhantomData<T>);

impl<T: Synthesizer, const COLS: usize> Sizes for Whole<T, COLS> {
    const ROWS: usize = T::MAX_LEN;
    const COLS: usize = COLS;
}

/// The sizes of the scores of a whole layer.
struct Scores<T>(PhantomData<T>);

impl<T: Synthesizer> Sizes for Scores<T> {
    const ROWS: usize = T::MAX_LEN;
    const COLS: usize = T::MAX_LEN;
}

/// Kernels that all layers share, with their sizes as arguments.
#[derive(Clone, Copy)]
pub(crate) struct Shared<S>(pub(crate) S);

impl<S: Simd, T: Synthesizer> Kernels for Inline<S, T> {
    #[inline(always)]
    fn matmul<const COLS: usize>(self, product: MatMul<'_>) {
        // A is read from where the step before has stored it: loads broadcast an element for nothing, while the compiler,
        // knowing it still in a register, would shuffle for every one of them. (The fence is no instruction.)
        compiler_fence(Ordering::SeqCst);
        self.0.product::<Whole<T, COLS>>(product);
    }

    #[inline(always)]
    fn softmax(self, rows: Softmax<'_>) -> RowSet {
        self.0.softmax_of::<Scores<T>>(rows)
    }
}

impl<S: Simd> Kernels for Shared<S> {
    #[inline(always)]
    fn matmul<const COLS: usize>(self, product: MatMul<'_>) {
        self.0.matmul(product);
    }

    #[inline(always)]
    fn softmax(self, rows: Softmax<'_>) -> RowSet {
        self.0.softmax(rows)
    }
}

/// How many of `left` rows make the next block of at most `most`: about equal ones where every number of rows has a
/// tile of its own, else whole tiles as long as there are any.
#[inline(always)]
pub(crate) fn block_rows<S: Simd>(left: usize, most: usize) -> usize {
    if S::EVERY_TILE { share(left, most) } else { left.min(most) }
}

/// Runs a kernel as one body that all its callers share.
#[inline(never)]
pub(crate) fn shared<S: Simd, K: Kernel>(s: S, kernel: K) -> K::Output {
    s.enter(kernel)
}
