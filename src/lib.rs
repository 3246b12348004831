//! Synthesizer attention.
#![no_std]
#![deny(unsafe_code)]

#[cfg(any(feature = "std", test))]
extern crate std;

mod attend;
#[cfg(feature = "safetensors")]
pub mod checkpoint;
mod dense;
mod dot_product;
mod encoder;
mod error;
mod factorized_dense;
mod frozen;
mod kernel;
mod linear;
mod mixture;
mod multi_head;
mod options;
mod random;
#[cfg(feature = "std")]
pub mod reference;
mod scratch;
mod simd;
mod synthesizer;
pub mod weights;

pub use dense::Dense;
pub use dot_product::{DotProduct, DotProductWithKeys};
pub use encoder::{
    Activation, EncoderBlock, FeedForward, Gelu, GeluTanh, LayerNorm, Norm, Relu, RmsNorm, mean_pool, residual,
};
pub use error::Error;
pub use factorized_dense::FactorizedDense;
pub use frozen::{Frozen, FrozenFor};
pub use linear::Linear;
pub use mixture::{Empty, Mixture};
pub use multi_head::{DenseHeads, Heads, Identity, MultiHead, Projection};
pub use options::Options;
pub use random::{FactorizedRandom, Random};
pub use simd::Backend;
pub use synthesizer::{Positional, Row, Synthesizer};
