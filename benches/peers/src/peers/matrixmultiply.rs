use matrixmultiply::sgemm;

use super::by_hand::{self, MatMul};
use crate::{Layer, Peer, Result};

struct MatrixMultiply;

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    by_hand::load::<MatrixMultiply, L, W>(layer)
}

impl MatMul for MatrixMultiply {
    type Plan = ();

    fn plan(_m: usize, _k: usize, _n: usize) {}

    fn matmul<const M: usize, const K: usize, const N: usize>(
        (): &(),
        a: &[[f32; K]; M],
        b: &[[f32; N]; K],
        c: &mut [[f32; N]; M],
    ) {
        let (a, b, c) = (a.as_flattened().as_ptr(), b.as_flattened().as_ptr(), c.as_flattened_mut().as_mut_ptr());
        let [k, n] = [K, N].map(usize::cast_signed);
        // SAFETY: the arrays have the sizes and strides given; C is borrowed mutably, so it overlaps neither A nor B.
        unsafe { sgemm(M, K, N, 1.0, a, k, 1, b, n, 1, 0.0, c, n, 1) }
    }
}
