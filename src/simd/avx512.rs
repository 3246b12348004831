//! Sixteen lanes with AVX-512F.

#[allow(clippy::wildcard_imports)] // intrinsics carry their own prefix
use core::arch::x86_64::*;

use super::avx2::Avx2;
use super::{Kernel, Simd};
use crate::kernel::{MatMul, RowSet, Softmax, exp};

cpufeatures::new!(features, "avx512f", "avx2", "fma");

/// Proof that the processor has AVX-512F (and AVX2 and FMA, which come with it).
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    #[inline(always)]
    pub(crate) fn detect() -> Option<Self> {
        features::get().then_some(Self(()))
    }

    /// Bits below `n`.
    #[inline(always)]
    fn first(n: usize) -> __mmask16 {
        #[allow(clippy::cast_possible_truncation)] // the low sixteen bits are what is wanted
        let mask = ((1_u32 << (n & 31)) - 1) as __mmask16;
        mask
    }
}

impl Simd for Avx512 {
    const LANES: usize = 16;
    // of 32 registers: 24 accumulators, the operands of a term, and the broadcast; for one vector, as many rows as
    // a block of scores of a 16-row layer has
    const TILE_ROWS: [usize; 4] = [16, 12, 8, 6];
    const EVERY_TILE: bool = true;
    const SPECIALIZE: bool = true;
    const FETCHES_AHEAD: bool = true;

    type F32 = __m512;

    #[inline(always)]
    fn enter<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx2,fma")]
        #[inline(never)]
        fn enabled<K: Kernel>(s: Avx512, kernel: K) -> K::Output {
            kernel.run(s)
        }
        if const { K::NARROW } {
            return Avx2::with(self).enter(kernel);
        }
        // SAFETY: the token proves the features.
        unsafe { enabled(self, kernel) }
    }

    fn matmul(self, product: MatMul<'_>) {
        self.enter(product);
    }

    fn softmax(self, rows: Softmax<'_>) -> RowSet {
        self.enter(rows)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_max_ps(a, b) } // the second operand where either is NaN
    }

    #[inline(always)]
    fn first_or(self, v: __m512, n: usize, fill: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe { _mm512_mask_blend_ps(Self::first(n), fill, v) }
    }

    #[inline(always)]
    fn exp_argument(self, x: __m512) -> __m512 {
        x
    }

    #[inline(always)]
    fn scale(self, p: __m512, biased: __m512, x: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe {
            let n = _mm512_sub_ps(biased, _mm512_set1_ps(exp::MAGIC));
            _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, self.splat(exp::LOWEST)), p, n)
        }
    }

    #[inline(always)]
    fn reduce_max(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        // SAFETY: the token proves AVX-512F.
        unsafe {
            // quarters 0 and 2, 1 and 3 of a and of b, then of c and of d
            let ab =
                _mm512_max_ps(_mm512_shuffle_f32x4::<0b01_00_01_00>(a, b), _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b));
            let cd =
                _mm512_max_ps(_mm512_shuffle_f32x4::<0b01_00_01_00>(c, d), _mm512_shuffle_f32x4::<0b11_10_11_10>(c, d));
            // one quarter for each of a, b, c, d
            let quarters = _mm512_max_ps(
                _mm512_shuffle_f32x4::<0b10_00_10_00>(ab, cd),
                _mm512_shuffle_f32x4::<0b11_01_11_01>(ab, cd),
            );
            let pairs = _mm512_max_ps(quarters, _mm512_permute_ps::<0b01_00_11_10>(quarters));
            first_of_quarters(_mm512_max_ps(pairs, _mm512_permute_ps::<0b10_11_00_01>(pairs)))
        }
    }

    #[inline(always)]
    fn reduce_add(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        // SAFETY: the token proves AVX-512F.
        unsafe {
            // quarters 0 and 2, 1 and 3 of a and of b, then of c and of d
            let ab =
                _mm512_add_ps(_mm512_shuffle_f32x4::<0b01_00_01_00>(a, b), _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b));
            let cd =
                _mm512_add_ps(_mm512_shuffle_f32x4::<0b01_00_01_00>(c, d), _mm512_shuffle_f32x4::<0b11_10_11_10>(c, d));
            // one quarter for each of a, b, c, d
            let quarters = _mm512_add_ps(
                _mm512_shuffle_f32x4::<0b10_00_10_00>(ab, cd),
                _mm512_shuffle_f32x4::<0b11_01_11_01>(ab, cd),
            );
            let pairs = _mm512_add_ps(quarters, _mm512_permute_ps::<0b01_00_11_10>(quarters));
            first_of_quarters(_mm512_add_ps(pairs, _mm512_permute_ps::<0b10_11_00_01>(pairs)))
        }
    }

    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        // SAFETY: a hint, which reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn load_from(self, from: *const f32) -> __m512 {
        // SAFETY: the token proves AVX-512F; the caller has sixteen floats there, aligned or not.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_first_from(self, from: *const f32, n: usize) -> __m512 {
        // SAFETY: the token proves AVX-512F; the caller has n floats there, and masked lanes are not touched.
        unsafe { _mm512_maskz_loadu_ps(Self::first(n), from) }
    }

    #[inline(always)]
    unsafe fn store_to(self, to: *mut f32, v: __m512) {
        // SAFETY: the token proves AVX-512F; the caller has sixteen floats there, aligned or not.
        unsafe { _mm512_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn store_first_to(self, to: *mut f32, n: usize, v: __m512) {
        // SAFETY: the token proves AVX-512F; the caller has n floats there, and masked lanes are not touched.
        unsafe { _mm512_mask_storeu_ps(to, Self::first(n), v) }
    }
}

/// The first lane of each quarter.
///
/// # Safety
/// The processor must have AVX-512F.
#[inline(always)]
unsafe fn first_of_quarters(v: __m512) -> [f32; 4] {
    let mut floats = [0.0; 4];
    // SAFETY: as the caller says, and four floats are writable.
    unsafe {
        let first = _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12), v);
        _mm_storeu_ps(floats.as_mut_ptr(), _mm512_castps512_ps128(first));
    }
    floats
}
