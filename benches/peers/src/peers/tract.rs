use tract_onnx::prelude::*;

use crate::{Layer, Peer, Result, onnx};

struct Tract {
    state: TypedSimpleState,
    x: TValue,
    v: TValue,
    y: TValue,
}

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    let model = onnx().model_for_read(&mut &onnx::model(layer)[..])?.into_optimized()?.into_runnable()?;
    let x: TValue = Tensor::from_shape(&[L, W], layer.x.as_flattened())?.into();
    let v: TValue = Tensor::from_shape(&[L, W], layer.v.as_flattened())?.into();
    let y = v.clone(); // of the same shape, until the first call
    Ok(Box::new(Tract { state: model.spawn()?, x, v, y }))
}

impl Peer for Tract {
    fn forward(&mut self) -> Result<()> {
        self.y = self.state.run(tvec![self.x.clone(), self.v.clone()])?.remove(0);
        Ok(())
    }

    fn y(&self) -> Result<Vec<f32>> {
        Ok(self.y.try_as_plain_ram()?.as_slice()?.to_vec())
    }
}
