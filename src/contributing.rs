//! How a variant is added: one file and one re-export. (This page is part of the documentation alone.)
//!
//! A score source only says how a block of score rows is made. Masks, softmax, the product with V, blocks, scratch and
//! the choice of a backend are the business of `attend.rs`, once for all. Say the paper had a *Sinusoid Synthesizer*,
//! whose scores are fixed waves of the hidden layer's sum, `B[i][j] = a_j sum_k relu(x_i W1)_k`:
//!
//! ```ignore
//! // src/sinusoid.rs
//! use crate::kernel::{Kernels, Mat, MatMul, MatMut};
//! use crate::scratch::padded;
//! use crate::synthesizer::{Block, Synthesizer};
//!
//! /// The equation, with its source, the shapes of the weights and their layout.
//! #[derive(Clone, Copy, Debug)]
//! pub struct Sinusoid<'a, const L: usize, const D: usize, const H: usize> {
//!     w1: &'a [[f32; H]; D],
//!     wave: &'a [f32; L],
//! }
//!
//! impl<'a, const L: usize, const D: usize, const H: usize> Sinusoid<'a, L, D, H> {
//!     pub const fn new(w1: &'a [[f32; H]; D], wave: &'a [f32; L]) -> Self {
//!         Self { w1, wave }
//!     }
//! }
//!
//! impl<const L: usize, const D: usize, const H: usize> Synthesizer for Sinusoid<'_, L, D, H> {
//!     type Row = [f32; D];
//!
//!     const MAX_LEN: usize = L;
//!     const PARAMETERS: usize = D * H + L;
//!     const SCORE_MULTIPLY_ADDS: usize = D * H + L;
//!     // floats of scratch a row besides its scores: here the hidden layer, padded to whole vectors
//!     const WORK: usize = padded(H);
//!
//!     #[inline(always)] // or it would be compiled without the backend's target features
//!     fn scores<K: Kernels>(&self, k: K, block: Block<'_>) {
//!         let Block { x, rows, keys, work, mut scores, .. } = block;
//!         let mut hidden = MatMut { data: work, stride: padded(H) };
//!         k.matmul::<H>(MatMul::new(x, Mat::new(self.w1), hidden.borrow(), rows, D, H).relu());
//!         for (row, hidden) in scores.rows(rows, keys).zip(hidden.rows(rows, H)) {
//!             let sum: f32 = hidden.iter().sum();
//!             for (score, wave) in row.iter_mut().zip(self.wave) {
//!                 *score = wave * sum;
//!             }
//!         }
//!     }
//! }
//! ```
//!
//! Then, in `lib.rs`, `mod sinusoid;` and `pub use sinusoid::Sinusoid;`. That is all the library needs: the layer has
//! `forward`, masks, steps, `attention_weights`, and can be a part of a mixture or the source of a head.
//!
//! What keeps it honest comes beside it: a score function in `reference/scores.rs` (float64, with the error its float32
//! evaluation may have), its golden cases, its weights in `tests/common/variants.rs`, and a line in the lists of
//! `tests/common/layers.rs` and of `fuzz/src/variants.rs`.
//!
//! Rules of the house: a row's scores must not depend on the rows that come with it (each element one chain of
//! multiply-adds, as the kernels do); only the first `keys` scores are computed; no `unsafe`, no panic, no allocation; no
//! closures around vector operations.
