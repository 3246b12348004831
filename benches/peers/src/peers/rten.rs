use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use crate::{Layer, Peer, Result, onnx};

struct Rten {
    model: Model,
    options: RunOptions,
    pool: Arc<ThreadPool>,
    inputs: [(NodeId, NdTensor<f32, 2>); 2],
    output: NodeId,
    y: NdTensor<f32, 2>,
}

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    let model = ModelOptions::with_all_ops().prepack_weights(true).load(onnx::model(layer))?;
    let pool = Arc::new(ThreadPool::with_num_threads(1));
    let [x, v] = [&layer.x, &layer.v].map(|rows| NdTensor::from_data([L, W], rows.as_flattened().to_vec()));
    let y = v.clone(); // of the same shape, until the first call
    Ok(Box::new(Rten {
        inputs: [(model.node_id("x")?, x), (model.node_id("v")?, v)],
        output: model.node_id("y")?,
        model,
        options: RunOptions::default().with_thread_pool(Some(pool.clone())),
        pool,
        y,
    }))
}

impl Peer for Rten {
    fn forward(&mut self) -> Result<()> {
        let inputs = self.inputs.iter().map(|(id, tensor)| (*id, tensor.view().into())).collect();
        let [y] = self.model.run_n(inputs, [self.output], Some(self.options.clone()))?;
        self.y = y.try_into()?;
        Ok(())
    }

    fn repeat(&mut self, calls: u32) -> Result<()> {
        let pool = self.pool.clone();
        pool.run(|| (0..calls).try_for_each(|_| self.forward()))
    }

    fn y(&self) -> Result<Vec<f32>> {
        Ok(self.y.to_vec())
    }
}
