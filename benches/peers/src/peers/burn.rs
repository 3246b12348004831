use burn::tensor::activation::{relu, softmax};
use burn::tensor::{Device, Tensor, TensorData};

use crate::{Layer, Peer, Result};

struct Burn {
    w1: Tensor<2>,
    b1: Tensor<2>,
    w2: Tensor<2>,
    b2: Tensor<2>,
    x: Tensor<2>,
    v: Tensor<2>,
    y: Tensor<2>,
}

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    let device = Device::flex();
    let matrix =
        |rows, columns, data: &[f32]| Tensor::from_data(TensorData::new(data.to_vec(), [rows, columns]), &device);
    let v = matrix(L, W, layer.v.as_flattened());
    Ok(Box::new(Burn {
        w1: matrix(W, W, layer.w1.as_flattened()),
        b1: matrix(1, W, &layer.b1),
        w2: matrix(W, L, layer.w2.as_flattened()),
        b2: matrix(1, L, &layer.b2),
        x: matrix(L, W, layer.x.as_flattened()),
        y: v.clone(), // of the same shape, until the first call
        v,
    }))
}

impl Peer for Burn {
    fn forward(&mut self) -> Result<()> {
        let Self { w1, b1, w2, b2, x, v, .. } = self; // a clone is a reference counted
        let hidden = relu(x.clone().matmul(w1.clone()) + b1.clone());
        let scores = hidden.matmul(w2.clone()) + b2.clone();
        self.y = softmax(scores, 1).matmul(v.clone());
        Ok(())
    }

    fn y(&self) -> Result<Vec<f32>> {
        Ok(self.y.to_data().try_to_vec()?)
    }
}
