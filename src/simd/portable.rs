//! Four lanes through `wide`: SSE2, NEON and wasm simd128. Fuses where the target it is compiled for fuses (NEON).

use core::mem::transmute;

use wide::{f32x4, u32x4};

use super::{Kernel, Simd};
use crate::kernel::{MatMul, RowSet, Softmax, exp};

/// Whether `wide` has real vectors on this target; elsewhere it emulates them, slower than plain scalar code.
pub(super) const AVAILABLE: bool = cfg!(any(
    target_feature = "sse2",
    target_feature = "simd128",
    all(target_arch = "aarch64", target_feature = "neon")
));

pub(super) const LANES: usize = 4;

/// Masks that keep the first n of four lanes, n = 0 to 4.
const KEEP: [f32x4; 5] = {
    let on = f32::from_bits(u32::MAX);
    [
        f32x4::new([0.0, 0.0, 0.0, 0.0]),
        f32x4::new([on, 0.0, 0.0, 0.0]),
        f32x4::new([on, on, 0.0, 0.0]),
        f32x4::new([on, on, on, 0.0]),
        f32x4::new([on, on, on, on]),
    ]
};

#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Simd for Portable {
    const LANES: usize = LANES;
    // sixteen registers hold 6 x 2 accumulators, two operands, the broadcast and an unfused product
    const TILE_ROWS: [usize; 4] = if cfg!(target_arch = "aarch64") { [12, 12, 8, 6] } else { [8, 6, 0, 0] };
    const EVERY_TILE: bool = true;
    const SPECIALIZE: bool = false;

    type F32 = f32x4;

    #[inline(always)]
    fn enter<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(never)]
    fn matmul(self, product: MatMul<'_>) {
        self.enter(product);
    }

    #[inline(never)]
    fn softmax(self, rows: Softmax<'_>) -> RowSet {
        rows.run(self)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> f32x4 {
        f32x4::splat(x)
    }

    #[inline(always)]
    fn add(self, a: f32x4, b: f32x4) -> f32x4 {
        a + b
    }

    #[inline(always)]
    fn sub(self, a: f32x4, b: f32x4) -> f32x4 {
        a - b
    }

    #[inline(always)]
    fn mul(self, a: f32x4, b: f32x4) -> f32x4 {
        a * b
    }

    #[inline(always)]
    fn mul_add(self, a: f32x4, b: f32x4, c: f32x4) -> f32x4 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn max(self, a: f32x4, b: f32x4) -> f32x4 {
        // not `wide`'s max, whose NaN differs from target to target
        b.simd_lt(a).select(a, b)
    }

    #[inline(always)]
    fn first_or(self, v: f32x4, n: usize, fill: f32x4) -> f32x4 {
        KEEP[n.min(LANES)].select(v, fill)
    }

    #[inline(always)]
    fn scale(self, p: f32x4, biased: f32x4, _: f32x4) -> f32x4 {
        // SAFETY: both are 128 bits of plain data.
        let power: f32x4 = unsafe { transmute(transmute::<f32x4, u32x4>(biased) << 23) };
        p * power * f32x4::splat(exp::UNBIAS)
    }

    #[inline(always)]
    fn reduce_max(self, v: [f32x4; 4]) -> [f32; 4] {
        let [a, b, c, d] = f32x4::transpose(v);
        self.max(self.max(a, c), self.max(b, d)).to_array()
    }

    #[inline(always)]
    fn reduce_add(self, v: [f32x4; 4]) -> [f32; 4] {
        let [a, b, c, d] = f32x4::transpose(v);
        ((a + c) + (b + d)).to_array()
    }

    #[inline(always)]
    unsafe fn load_from(self, from: *const f32) -> f32x4 {
        // SAFETY: the caller has four floats there; an array needs no more alignment than a float.
        f32x4::new(unsafe { *from.cast::<[f32; 4]>() })
    }

    #[inline(always)]
    unsafe fn load_first_from(self, from: *const f32, n: usize) -> f32x4 {
        let lane = |i: usize| {
            if i < n {
                // SAFETY: the caller has n floats there and i < n.
                unsafe { *from.add(i) }
            } else {
                0.0
            }
        };
        f32x4::new([lane(0), lane(1), lane(2), 0.0])
    }

    #[inline(always)]
    unsafe fn store_to(self, to: *mut f32, v: f32x4) {
        // SAFETY: the caller has four floats there; an array needs no more alignment than a float.
        unsafe { *to.cast::<[f32; 4]>() = v.to_array() }
    }

    #[inline(always)]
    unsafe fn store_first_to(self, to: *mut f32, n: usize, v: f32x4) {
        let [a, b, c, _] = v.to_array();
        for (i, x) in [a, b, c].into_iter().enumerate() {
            if i < n {
                // SAFETY: the caller has n floats there and i < n.
                unsafe { *to.add(i) = x }
            }
        }
    }
}
