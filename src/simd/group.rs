use core::marker::PhantomData;

use super::Simd;

/// R rows of as many whole vectors each.
pub(crate) struct Group<'a, const R: usize> {
    first: *mut f32,
    stride: usize,
    vectors: usize,
    rows: PhantomData<&'a mut [f32]>,
}

impl<'a, const R: usize> Group<'a, R> {
    /// The rows at the start of `data`, `stride` apart. None where it is too short.
    #[inline(always)]
    pub(crate) fn new<S: Simd>(data: &'a mut [f32], stride: usize, vectors: usize) -> Option<Self> {
        let end = const { R - 1 }.checked_mul(stride)?.checked_add(vectors.checked_mul(S::LANES)?)?;
        (end <= data.len()).then_some(Self { first: data.as_mut_ptr(), stride, vectors, rows: PhantomData })
    }

    /// Vectors of a row.
    #[inline(always)]
    pub(crate) fn vectors(&self) -> usize {
        self.vectors
    }

    #[inline(always)]
    fn at<S: Simd>(&self, row: usize, vector: usize) -> Option<*mut f32> {
        // SAFETY: the end of this vector was found to be inside the data.
        (row < R && vector < self.vectors).then(|| unsafe { self.first.add(row * self.stride + vector * S::LANES) })
    }

    /// A vector of a row; zeros where it has none.
    #[inline(always)]
    pub(crate) fn load<S: Simd>(&self, s: S, row: usize, vector: usize) -> S::F32 {
        match self.at::<S>(row, vector) {
            // SAFETY: `at` gives vectors inside the data.
            Some(from) => unsafe { s.load_from(from) },
            None => s.splat(0.0),
        }
    }

    /// Writes a vector of a row; nothing where it has none.
    #[inline(always)]
    pub(crate) fn store<S: Simd>(&mut self, s: S, row: usize, vector: usize, v: S::F32) {
        if let Some(to) = self.at::<S>(row, vector) {
            // SAFETY: `at` gives vectors inside the data, which is borrowed for writing.
            unsafe { s.store_to(to, v) }
        }
    }
}
