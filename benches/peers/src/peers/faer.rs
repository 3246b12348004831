use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::by_hand::{self, MatMul};
use crate::{Layer, Peer, Result};

struct Faer;

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    by_hand::load::<Faer, L, W>(layer)
}

impl MatMul for Faer {
    type Plan = ();

    fn plan(_m: usize, _k: usize, _n: usize) {}

    fn matmul<const M: usize, const K: usize, const N: usize>(
        (): &(),
        a: &[[f32; K]; M],
        b: &[[f32; N]; K],
        c: &mut [[f32; N]; M],
    ) {
        let a = MatRef::from_row_major_slice(a.as_flattened(), M, K);
        let b = MatRef::from_row_major_slice(b.as_flattened(), K, N);
        let c = MatMut::from_row_major_slice_mut(c.as_flattened_mut(), M, N);
        matmul(c, Accum::Replace, a, b, 1.0, Par::Seq);
        clear_upper_halves();
    }
}

/// faer's AVX-512 kernel leaves the upper halves of the vector registers in use, which slows the softmax after it, SSE
/// code, up to 2.4 times.
fn clear_upper_halves() {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX.
        unsafe { std::arch::x86_64::_mm256_zeroupper() }
    }
}
