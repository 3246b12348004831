//! The vector trait every algorithm is written over, its backends, and the one place where a backend is chosen.
//!
//! A backend is a zero-sized token, and holding one proves that the processor has its instructions: tokens come only
//! from `detect`, so the methods are safe. An algorithm is a [`Kernel`]; [`dispatch`] picks a token and hands the
//! kernel to [`Simd::enter`], the one function that carries the backend's target features. All that a kernel calls from
//! there is `#[inline(always)]`, or it would be compiled without them; the exceptions are the bodies that all instances
//! share ([`Simd::matmul`], [`Simd::softmax`]), which enter anew.
#![allow(unsafe_code)] // the only module that may: intrinsics and unchecked loads live below it

use core::sync::atomic::{Ordering, compiler_fence};

use crate::error::Error;
use crate::kernel::{MatMul, RowSet, Softmax, exp};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod backend;
mod group;
mod portable;
mod scalar;
mod tile;

pub use backend::Backend;
pub(crate) use group::Group;
pub(crate) use tile::{AnySize, Sizes, share};

/// The widest vector of any backend of this target, in lanes: what rows of scratch are padded to.
pub(crate) const MAX_LANES: usize = if cfg!(target_arch = "x86_64") {
    16
} else if portable::AVAILABLE {
    portable::LANES
} else {
    1
};

/// Keeps the compiler from making vectors of a loop over floats on 32-bit Arm, where they flush subnormal numbers to
/// zero whatever the processor's settings. To be called in every loop that computes and may run on the scalar backend.
#[inline(always)]
pub(crate) fn one_at_a_time() {
    if cfg!(target_arch = "arm") {
        compiler_fence(Ordering::SeqCst); // no instruction
    }
}

/// Something to compute, given a backend.
pub(crate) trait Kernel {
    type Output;
    /// Whether the rows are so narrow that vectors of eight lanes hold all that wider ones would. The bits are the same.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // elsewhere none is wider
    const NARROW: bool = false;

    fn run<S: Simd>(self, s: S) -> Self::Output;
}

/// Runs `kernel` on `backend`, or on the fastest one this processor has.
#[inline]
pub(crate) fn dispatch<K: Kernel>(backend: Option<Backend>, kernel: K) -> Result<K::Output, Error> {
    let backend = match backend {
        Some(asked) if !asked.is_available() => return Err(Error::Backend { asked }),
        Some(asked) => asked,
        None => Backend::detect(),
    };
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => {
            if let Some(s) = avx512::Avx512::detect() {
                return Ok(s.enter(kernel));
            }
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => {
            if let Some(s) = avx2::Avx2::detect() {
                return Ok(s.enter(kernel));
            }
        }
        Backend::Portable if portable::AVAILABLE => return Ok(portable::Portable.enter(kernel)),
        _ => {}
    }
    Ok(scalar::Scalar.enter(kernel))
}

/// The operations of one backend on vectors of `LANES` float32.
pub(crate) trait Simd: Copy {
    /// Lanes of a vector.
    const LANES: usize;
    /// Rows of the register tile that is 1, 2, 3 or 4 vectors wide; 0 where the tile would not fit the registers.
    const TILE_ROWS: [usize; 4];
    /// Whether every smaller number of rows has a tile of its own (fast), or only one does (small).
    const EVERY_TILE: bool;
    /// Whether small layers are worth an instance of their own, with their sizes as constants.
    const SPECIALIZE: bool;

    /// Whether large products fetch what they read next.
    const FETCHES_AHEAD: bool = false;

    type F32: Copy;

    /// Runs `kernel` with this backend's target features enabled.
    fn enter<K: Kernel>(self, kernel: K) -> K::Output;

    /// The matrix product, as one body that all instances share.
    fn matmul(self, product: MatMul<'_>);
    /// The softmax of a block of rows, as one body that all instances share.
    fn softmax(self, rows: Softmax<'_>) -> RowSet;

    /// The softmax of rows of `Z::COLS` scores at most.
    #[inline(always)]
    fn softmax_of<Z: Sizes>(self, rows: Softmax<'_>) -> RowSet {
        rows.run(self)
    }

    /// The matrix product, by tiles of vectors.
    #[inline(always)]
    fn product<Z: Sizes>(self, product: MatMul<'_>) {
        tile::matmul::<Self, Z>(self, product);
    }

    fn splat(self, x: f32) -> Self::F32;
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a b + c`, in one rounding where the backend has it.
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// The larger lane; that of `b` where either is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The first `n` lanes of `v`, and `fill` in the others.
    fn first_or(self, v: Self::F32, n: usize, fill: Self::F32) -> Self::F32;
    /// What [`exp`](mod@crate::kernel::exp) computes with where it is asked for exp(x): x, but not below
    /// [`ZERO`](crate::kernel::exp::ZERO) unless [`scale`](Self::scale) selects.
    #[inline(always)]
    fn exp_argument(self, x: Self::F32) -> Self::F32 {
        self.max(self.splat(exp::ZERO), x)
    }
    /// `p 2^n`, rounded once where it is subnormal, for the integer n + [`BIAS`](crate::kernel::exp::BIAS) in the low
    /// bits of `biased`; 0 in the lanes where x is below [`LOWEST`](crate::kernel::exp::LOWEST).
    fn scale(self, p: Self::F32, biased: Self::F32, x: Self::F32) -> Self::F32;
    /// The largest lane of each of four vectors. Four at once, since what they share halves the shuffles.
    fn reduce_max(self, v: [Self::F32; 4]) -> [f32; 4];
    /// The sum of the lanes of each of four vectors, the same for a vector whatever its place and company.
    fn reduce_add(self, v: [Self::F32; 4]) -> [f32; 4];

    /// # Safety
    /// `LANES` floats must be readable at `from`.
    unsafe fn load_from(self, from: *const f32) -> Self::F32;
    /// The first `n < LANES` lanes; the others are zero.
    ///
    /// # Safety
    /// `n` floats must be readable at `from`.
    unsafe fn load_first_from(self, from: *const f32, n: usize) -> Self::F32;
    /// # Safety
    /// `LANES` floats must be writable at `to`.
    unsafe fn store_to(self, to: *mut f32, v: Self::F32);
    /// Writes the first `n < LANES` lanes and nothing else.
    ///
    /// # Safety
    /// `n` floats must be writable at `to`.
    unsafe fn store_first_to(self, to: *mut f32, n: usize, v: Self::F32);

    /// Has what is at `at`, which need not be anything, brought into the core's own cache.
    #[inline(always)]
    fn prefetch(self, _at: *const f32) {}

    /// A vector from the start of `from`; lanes it does not reach are zero.
    #[inline(always)]
    fn load(self, from: &[f32]) -> Self::F32 {
        if from.len() >= Self::LANES {
            // SAFETY: `from` has LANES floats.
            unsafe { self.load_from(from.as_ptr()) }
        } else {
            // SAFETY: `from` has as many floats as are read.
            unsafe { self.load_first_from(from.as_ptr(), from.len()) }
        }
    }

    /// Writes `v` to the start of `to`, as many lanes as it holds.
    #[inline(always)]
    fn store(self, to: &mut [f32], v: Self::F32) {
        if to.len() >= Self::LANES {
            // SAFETY: `to` has LANES floats.
            unsafe { self.store_to(to.as_mut_ptr(), v) }
        } else {
            // SAFETY: `to` has as many floats as are written.
            unsafe { self.store_first_to(to.as_mut_ptr(), to.len(), v) }
        }
    }
}
