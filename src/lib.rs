//! Synthesizer attention, `Y = softmax(F(X)) G(X)`, as allocation-free `no_std` kernels of fixed size.
//!
//! Tay et al., *Synthesizer: Rethinking Self-Attention in Transformer Models* (arXiv 2005.00743), replace the products of
//! queries and keys by scores that each position makes from its own row alone, or from nothing but its place:
//!
//! | layer | scores B | type |
//! |---|---|---|
//! | Dense | `B[i] = W2 relu(W1 x_i + b1) + b2` | [`Dense`] |
//! | Random | `B = R`, trained or drawn once | [`Random`] |
//! | factorized Random | `B = R1 R2^T` | [`FactorizedRandom`] |
//! | factorized Dense | `B[:, j] = A[:, j mod a] C[:, j div a]` | [`FactorizedDense`] |
//! | scaled dot product | `B = Q K^T / sqrt(d_k)` | [`DotProduct`] |
//! | mixture | `B = sum_i alpha_i S_i(X)` | [`Mixture`] |
//! | any positional one, ahead of time | softmax(B) kept | [`Frozen`] |
//!
//! All are [`Synthesizer`]s: one forward pass serves them, with causal and key masks and any position
//! ([`Options`]). Around it stand [`Linear`] (the value projection G), [`MultiHead`] and [`EncoderBlock`].
//!
//! ```
//! use synthesizer_attention::{Dense, Synthesizer};
//!
//! // at most 3 keys, rows of 2 columns, 2 hidden units; weights are input-major and may live in flash
//! static LAYER: Dense<3, 2, 2> =
//!     Dense::new(&[[1.0, -1.0], [0.5, 2.0]], &[0.0, 0.1], &[[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]], &[0.0; 3]);
//!
//! let x = [[1.0, 2.0], [3.0, -4.0], [0.0, 0.5]];
//! let v = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
//! let mut y = [[0.0; 2]; 3];
//! let mut scratch = [0.0; Dense::<3, 2, 2>::SCRATCH];
//! LAYER.forward(&x, &v, &mut y, &mut scratch)?;
//! # Ok::<(), synthesizer_attention::Error>(())
//! ```
//!
//! # What people ask about this layer
//!
//! **What is F, and what does it see?** In the Dense Synthesizer F is a perceptron with one hidden layer. It sees one row
//! of X at a time: row i of B is F of row i of X and of nothing else. No token is compared with another; F says, from a
//! token's content, how much weight each *position* gets.
//!
//! **Which Dense is the right one?** Two readings are about. In the paper W1 keeps the width (d -> d) and W2 maps to the L
//! scores; many implementations map to L at once (d -> L, then L -> L). The hidden width is a parameter of its own here,
//! so both are instances: `Dense<L, D, D>` is the paper's, `Dense<L, D, L>` the other.
//!
//! **How is it different from a multilayer perceptron with two inputs?** Such a perceptron would score a pair `(x_i, x_j)`.
//! F never sees `x_j`. Its L outputs are not L classes but the weights of a convex combination of the rows of V, and V is
//! where the other tokens come in.
//!
//! **And from dot-product attention?** There `B[i][j]` compares the query of row i with the key of row j, so scores follow
//! content wherever it stands, and any length will do. Here they follow positions: cheaper (no keys), but bound to them.
//!
//! **Why is there a maximum length?** F has L outputs, R has L rows and columns: the weights fix how many positions
//! there are. [`Synthesizer::MAX_LEN`] is L, and more keys are an error.
//!
//! **What does a shorter sequence do?** With n < L keys the first n scores of a row are computed and softmax normalizes
//! over those n alone. Nothing is padded, and the other columns of W2 are not read.
//!
//! # Numbers
//! Everything is float32. [`Synthesizer`] says what NaN, infinities, masks and empty rows give. With the feature `std`,
//! [`reference`](self#features) is a naive float64 implementation that also bounds what float32 rounding may do to each
//! output; the tests, the fuzzing and the benches compare with that bound on every backend.
//!
//! # Features
//! Without any, the crate is `no_std` and never allocates. `std` adds the module `reference`; `safetensors` adds
//! `checkpoint`, which builds layers from a checkpoint of PyTorch's.
//!
//! # Backends
//! On x86-64 a default build finds AVX-512 or AVX2 at run time; elsewhere NEON, SSE2 or wasm's simd128 are taken when the
//! crate is compiled for them, and plain scalar code on cores without vectors. [`Backend`] names them.
//!
//! # Further pages
//! [`microcontroller`]: what a layer needs on a small core, and what to set. [`contributing`]: how a variant is added.
#![no_std]
#![deny(unsafe_code)]

#[cfg(any(feature = "std", test))]
extern crate std;

mod attend;
#[cfg(feature = "safetensors")]
pub mod checkpoint;
#[cfg(any(doc, doctest))]
pub mod contributing;
mod dense;
mod dot_product;
mod encoder;
mod error;
mod factorized_dense;
mod frozen;
mod kernel;
mod linear;
#[cfg(any(doc, doctest))]
pub mod microcontroller;
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

/// The README's examples are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
