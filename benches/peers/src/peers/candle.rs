use candle_core::utils::with_threadpool;
use candle_core::{Device, Tensor};
use candle_nn::ops::softmax_last_dim;
// Candle's matrix product, a dependency only for its AVX-512 feature.
use gemm as _;

use crate::{Layer, Peer, Result};

struct Candle {
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    x: Tensor,
    v: Tensor,
    y: Tensor,
}

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    let matrix = |rows, columns, data| Tensor::from_slice(data, (rows, columns), &Device::Cpu);
    let v = matrix(L, W, layer.v.as_flattened())?;
    Ok(Box::new(Candle {
        w1: matrix(W, W, layer.w1.as_flattened())?,
        b1: matrix(1, W, &layer.b1)?,
        w2: matrix(W, L, layer.w2.as_flattened())?,
        b2: matrix(1, L, &layer.b2)?,
        x: matrix(L, W, layer.x.as_flattened())?,
        y: v.clone(), // of the same shape, until the first call
        v,
    }))
}

impl Peer for Candle {
    fn forward(&mut self) -> Result<()> {
        let hidden = self.x.matmul(&self.w1)?.broadcast_add(&self.b1)?.relu()?;
        let scores = hidden.matmul(&self.w2)?.broadcast_add(&self.b2)?;
        self.y = softmax_last_dim(&scores)?.matmul(&self.v)?;
        Ok(())
    }

    fn repeat(&mut self, calls: u32) -> Result<()> {
        with_threadpool(|| (0..calls).try_for_each(|_| self.forward()))
    }

    fn y(&self) -> Result<Vec<f32>> {
        Ok(self.y.flatten_all()?.to_vec1()?)
    }
}
