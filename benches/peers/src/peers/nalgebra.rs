use nalgebra::{SMatrixView, SMatrixViewMut};

use super::by_hand::{self, MatMul};
use crate::{Layer, Peer, Result};

struct Nalgebra;

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    by_hand::load::<Nalgebra, L, W>(layer)
}

/// Its matrices are column-major: row-major `C = A B` is column-major `C^T = B^T A^T`.
impl MatMul for Nalgebra {
    type Plan = ();

    fn plan(_m: usize, _k: usize, _n: usize) {}

    fn matmul<const M: usize, const K: usize, const N: usize>(
        (): &(),
        a: &[[f32; K]; M],
        b: &[[f32; N]; K],
        c: &mut [[f32; N]; M],
    ) {
        let a = SMatrixView::<f32, K, M>::from_slice(a.as_flattened());
        let b = SMatrixView::<f32, N, K>::from_slice(b.as_flattened());
        SMatrixViewMut::<f32, N, M>::from_slice(c.as_flattened_mut()).gemm(1.0, &b, &a, 0.0);
    }
}
