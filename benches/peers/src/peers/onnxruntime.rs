use std::sync::LazyLock;

use ort::environment::Environment;
use ort::memory::Allocator;
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{IoBinding, Session};
use ort::value::Tensor;

use crate::{Layer, Peer, Result, onnx};

/// A process may have one.
static ENVIRONMENT: LazyLock<std::result::Result<Environment, String>> =
    LazyLock::new(|| environment().map_err(|error| error.to_string()));

/// Inputs and output are bound once, so that a call copies nothing.
struct OnnxRuntime {
    session: Session,
    binding: IoBinding,
    y: Tensor<f32>,
}

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    let environment = ENVIRONMENT.as_ref().map_err(String::as_str)?;
    let session = session(environment, &onnx::model(layer))?;
    let mut binding = session.create_binding()?;
    binding.bind_input("x", &Tensor::from_array(([L, W], layer.x.as_flattened().to_vec()))?)?;
    binding.bind_input("v", &Tensor::from_array(([L, W], layer.v.as_flattened().to_vec()))?)?;
    let mut y = Tensor::new(&Allocator::default(), [L, W])?;
    binding.bind_output("y", &mut y)?;
    Ok(Box::new(OnnxRuntime { session, binding, y }))
}

fn environment() -> Result<Environment> {
    let library = std::env::var_os("ORT_DYLIB_PATH").ok_or("ORT_DYLIB_PATH names no libonnxruntime.so")?;
    Ok(ort::init_from(library)?.build()?)
}

fn session(environment: &Environment, model: &[u8]) -> ort::Result<Session> {
    Session::builder(environment)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_threads(1)?
        .commit_from_memory(model)
}

impl Peer for OnnxRuntime {
    fn forward(&mut self) -> Result<()> {
        self.session.run_binding(&self.binding)?;
        Ok(())
    }

    fn y(&self) -> Result<Vec<f32>> {
        Ok(self.y.extract_tensor().1.to_vec())
    }
}
