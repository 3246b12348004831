//! The Dense Synthesizer, `Y = softmax(relu(X W1 + b1) W2 + b2) V`, through this crate and through what people would
//! use instead: the same float32 weights and inputs, one thread, each peer in its fastest form. The programs:
//!
//! - `peers` checks each answer against this crate's float64 reference, then prints the table or writes the figure;
//! - `minimal` loads and calls the peers that it is built with, for `costs` to build with one at a time.

mod layer;
#[cfg(any(feature = "onnxruntime", feature = "tract", feature = "rten"))]
mod onnx;
mod peers;

pub use layer::{Aligned, Layer};
pub use peers::{Candidate, Peer, Result, all};

/// Tells the peers that ask the environment how many threads to use that it is one.
///
/// To be called first in `main`.
pub fn one_thread() {
    // SAFETY: there is no other thread yet that could read the environment.
    unsafe { std::env::set_var("RAYON_NUM_THREADS", "1") }
}
