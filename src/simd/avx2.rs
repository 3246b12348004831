//! Eight lanes with AVX2 and FMA.

#[allow(clippy::wildcard_imports)] // intrinsics carry their own prefix
use core::arch::x86_64::*;

use super::avx512::Avx512;
use super::{Kernel, Simd, Sizes};
use crate::kernel::{MatMul, RowSet, Softmax, exp};

mod pairs;

cpufeatures::new!(features, "avx2", "fma");

/// Proof that the processor has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    #[inline(always)]
    pub(crate) fn detect() -> Option<Self> {
        features::get().then_some(Self(()))
    }

    /// AVX-512's token proves AVX2 and FMA too.
    #[inline(always)]
    pub(super) fn with(_: Avx512) -> Self {
        Self(())
    }

    /// Lanes below `n` have all bits set.
    #[inline(always)]
    fn first(n: usize) -> __m256i {
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // n <= 8
        // SAFETY: only methods of the token call this, and it proves AVX2.
        unsafe {
            let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lane)
        }
    }
}

impl Simd for Avx2 {
    const LANES: usize = 8;
    // of sixteen registers: 12 accumulators, the operands of a term, and the broadcast
    const TILE_ROWS: [usize; 4] = [12, 6, 0, 0];
    const EVERY_TILE: bool = true;
    const SPECIALIZE: bool = true;
    const FETCHES_AHEAD: bool = true;

    type F32 = __m256;

    #[inline(always)]
    fn enter<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma")]
        #[inline(never)]
        fn enabled<K: Kernel>(s: Avx2, kernel: K) -> K::Output {
            kernel.run(s)
        }
        // SAFETY: the token proves AVX2 and FMA.
        unsafe { enabled(self, kernel) }
    }

    fn matmul(self, product: MatMul<'_>) {
        self.enter(product);
    }

    fn softmax(self, rows: Softmax<'_>) -> RowSet {
        self.enter(rows)
    }

    #[inline(always)]
    fn softmax_of<Z: Sizes>(self, rows: Softmax<'_>) -> RowSet {
        if const { Z::COLS <= 4 } { self.softmax_of_pairs(rows) } else { rows.run(self) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the token proves FMA.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_max_ps(a, b) } // the second operand where either is NaN
    }

    #[inline(always)]
    fn first_or(self, v: __m256, n: usize, fill: __m256) -> __m256 {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(Self::first(n))) }
    }

    #[inline(always)]
    fn scale(self, p: __m256, biased: __m256, _: __m256) -> __m256 {
        // SAFETY: the token proves AVX2.
        let power = unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_castps_si256(biased))) };
        self.mul(self.mul(p, power), self.splat(exp::UNBIAS))
    }

    #[inline(always)]
    fn reduce_max(self, [a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        // SAFETY: the token proves AVX.
        unsafe {
            // halves of a and b, then of c and d, side by side
            let ab = _mm256_max_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
            let cd = _mm256_max_ps(_mm256_permute2f128_ps::<0x20>(c, d), _mm256_permute2f128_ps::<0x31>(c, d));
            let pairs =
                _mm256_max_ps(_mm256_shuffle_ps::<0b01_00_01_00>(ab, cd), _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd));
            first_of_pairs(_mm256_max_ps(pairs, _mm256_permute_ps::<0b10_11_00_01>(pairs)))
        }
    }

    #[inline(always)]
    fn reduce_add(self, [a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        // SAFETY: the token proves AVX.
        unsafe {
            // halves of a and b, then of c and d, side by side
            let ab = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
            let cd = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(c, d), _mm256_permute2f128_ps::<0x31>(c, d));
            let pairs =
                _mm256_add_ps(_mm256_shuffle_ps::<0b01_00_01_00>(ab, cd), _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd));
            first_of_pairs(_mm256_add_ps(pairs, _mm256_permute_ps::<0b10_11_00_01>(pairs)))
        }
    }

    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        // SAFETY: a hint, which reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn load_from(self, from: *const f32) -> __m256 {
        // SAFETY: the token proves AVX; the caller has eight floats there, aligned or not.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_first_from(self, from: *const f32, n: usize) -> __m256 {
        // SAFETY: the token proves AVX; the caller has n floats there, and masked lanes are not touched.
        unsafe { _mm256_maskload_ps(from, Self::first(n)) }
    }

    #[inline(always)]
    unsafe fn store_to(self, to: *mut f32, v: __m256) {
        // SAFETY: the token proves AVX; the caller has eight floats there, aligned or not.
        unsafe { _mm256_storeu_ps(to, v) }
    }

    /// By halves: AMD's processors have AVX's masked store in microcode, at a dozen cycles each.
    #[inline(always)]
    unsafe fn store_first_to(self, to: *mut f32, n: usize, v: __m256) {
        // SAFETY: the token proves AVX; the caller has n floats there, and the parts written add up to n.
        unsafe {
            let (mut to, mut part) = (to, _mm256_castps256_ps128(v));
            if n & 4 != 0 {
                _mm_storeu_ps(to, part);
                (to, part) = (to.add(4), _mm256_extractf128_ps::<1>(v));
            }
            if n & 2 != 0 {
                _mm_storel_pd(to.cast(), _mm_castps_pd(part));
                (to, part) = (to.add(2), _mm_movehl_ps(part, part));
            }
            if n & 1 != 0 {
                _mm_store_ss(to, part);
            }
        }
    }
}

/// Of `[a, a, c, c, b, b, d, d]` each once: `[a, b, c, d]`.
///
/// # Safety
/// The processor must have AVX.
#[inline(always)]
unsafe fn first_of_pairs(v: __m256) -> [f32; 4] {
    let mut floats = [0.0; 4];
    // SAFETY: as the caller says, and four floats are writable.
    unsafe {
        let (ac, bd) = (_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        _mm_storeu_ps(floats.as_mut_ptr(), _mm_blend_ps::<0b1010>(ac, bd));
    }
    floats
}
