//! One float at a time, for cores without vectors. Multiplies and adds are left as two operations: a fused one in
//! software costs hundreds of instructions, and the compiler picks what the core does best with the pair.

mod softmax;
mod tile;

use super::{Kernel, Simd, Sizes, one_at_a_time};
use crate::kernel::{MatMul, RowSet, Softmax, exp};

#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Simd for Scalar {
    const LANES: usize = 1;
    const TILE_ROWS: [usize; 4] = [0; 4]; // `product` has tiles of its own
    const EVERY_TILE: bool = false;
    const SPECIALIZE: bool = false;

    type F32 = f32;

    #[inline(always)]
    fn enter<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(never)]
    fn matmul(self, product: MatMul<'_>) {
        tile::matmul(product);
    }

    #[inline(always)]
    fn product<Z: Sizes>(self, product: MatMul<'_>) {
        self.matmul(product);
    }

    #[inline(never)]
    fn softmax(self, rows: Softmax<'_>) -> RowSet {
        softmax::softmax(rows)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> f32 {
        x
    }

    #[inline(always)]
    fn add(self, a: f32, b: f32) -> f32 {
        a + b
    }

    #[inline(always)]
    fn sub(self, a: f32, b: f32) -> f32 {
        a - b
    }

    #[inline(always)]
    fn mul(self, a: f32, b: f32) -> f32 {
        a * b
    }

    #[inline(always)]
    fn mul_add(self, a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }

    #[inline(always)]
    fn max(self, a: f32, b: f32) -> f32 {
        if a > b { a } else { b }
    }

    #[inline(always)]
    fn first_or(self, v: f32, n: usize, fill: f32) -> f32 {
        if n > 0 { v } else { fill }
    }

    #[inline(always)]
    fn exp_argument(self, x: f32) -> f32 {
        x
    }

    #[inline(always)]
    fn scale(self, p: f32, biased: f32, x: f32) -> f32 {
        if x < exp::LOWEST {
            return 0.0;
        }
        p * f32::from_bits(biased.to_bits() << 23) * exp::UNBIAS
    }

    #[inline(always)]
    fn reduce_max(self, v: [f32; 4]) -> [f32; 4] {
        v
    }

    #[inline(always)]
    fn reduce_add(self, v: [f32; 4]) -> [f32; 4] {
        v
    }

    #[inline(always)]
    unsafe fn load_from(self, from: *const f32) -> f32 {
        one_at_a_time(); // whatever the loop does with it
        // SAFETY: the caller has one float there.
        unsafe { *from }
    }

    #[inline(always)]
    unsafe fn load_first_from(self, _: *const f32, _: usize) -> f32 {
        0.0 // fewer than one lane is none
    }

    #[inline(always)]
    unsafe fn store_to(self, to: *mut f32, v: f32) {
        // SAFETY: the caller has one float there.
        unsafe { *to = v }
    }

    #[inline(always)]
    unsafe fn store_first_to(self, _: *mut f32, _: usize, _: f32) {}
}
