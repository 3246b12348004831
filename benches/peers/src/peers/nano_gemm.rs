use nano_gemm::Plan;

use super::by_hand::{self, MatMul};
use crate::{Layer, Peer, Result};

struct NanoGemm;

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    by_hand::load::<NanoGemm, L, W>(layer)
}

/// Its fastest plans want column-major matrices: row-major `C = A B` is column-major `C^T = B^T A^T`.
impl MatMul for NanoGemm {
    type Plan = Plan<f32>;

    fn plan(m: usize, k: usize, n: usize) -> Self::Plan {
        Plan::new_colmajor_lhs_and_dst_f32(n, m, k)
    }

    fn matmul<const M: usize, const K: usize, const N: usize>(
        plan: &Self::Plan,
        a: &[[f32; K]; M],
        b: &[[f32; N]; K],
        c: &mut [[f32; N]; M],
    ) {
        let (a, b, c) = (a.as_flattened().as_ptr(), b.as_flattened().as_ptr(), c.as_flattened_mut().as_mut_ptr());
        let [k, n] = [K, N].map(usize::cast_signed);
        // SAFETY: the arrays have the sizes and strides given, which are the plan's; C is borrowed mutably, so it
        // overlaps neither A nor B.
        unsafe { plan.execute_unchecked(N, M, K, c, 1, n, b, 1, n, a, 1, k, 0.0, 1.0, false, false) }
    }
}
