//! Sixteen lanes with AVX-512F.

#[allow(clippy::wildcard_imports)] // intrinsics carry their own prefix
use core::arch::x86_64::*;

use super::{Kernel, Simd};
use crate::kernel::{MatMul, Softmax, exp};

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
    const EVERY_ROW_COUNT: bool = true;
    const SPECIALIZE: bool = true;

    type F32 = __m512;

    #[inline(always)]
    fn enter<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx2,fma")]
        #[inline(never)]
        fn enabled<K: Kernel>(s: Avx512, kernel: K) -> K::Output {
            kernel.run(s)
        }
        // SAFETY: the token proves the features.
        unsafe { enabled(self, kernel) }
    }

    fn matmul(self, product: MatMul<'_>) {
        self.enter(product);
    }

    fn softmax(self, rows: Softmax<'_>) -> u64 {
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
    fn scale(self, p: __m512, biased: __m512, x: __m512, lowest: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512F.
        unsafe {
            let n = _mm512_sub_ps(biased, _mm512_set1_ps(exp::MAGIC));
            _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, lowest), p, n)
        }
    }

    #[inline(always)]
    fn reduce_max(self, v: __m512) -> f32 {
        // SAFETY: the token proves AVX-512F and AVX.
        unsafe {
            let v = _mm256_max_ps(low(v), high(v));
            let v = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_max_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)))
        }
    }

    #[inline(always)]
    fn reduce_add(self, v: __m512) -> f32 {
        // SAFETY: the token proves AVX-512F and AVX.
        unsafe {
            let v = _mm256_add_ps(low(v), high(v));
            let v = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
        }
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

/// # Safety
/// The processor must have AVX-512F.
#[inline(always)]
unsafe fn low(v: __m512) -> __m256 {
    // SAFETY: as the caller says.
    unsafe { _mm512_castps512_ps256(v) }
}

/// # Safety
/// The processor must have AVX-512F.
#[inline(always)]
unsafe fn high(v: __m512) -> __m256 {
    // SAFETY: as the caller says. (The extraction of 256 bits as floats needs AVX-512DQ; as doubles it does not.)
    unsafe { _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v))) }
}
