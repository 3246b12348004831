//! The naive float64 reference: what the right answer is, and how far a float32 one may be from it.
//!
//! Written to be read beside the equations and never optimised. [`attend`] is `Y = softmax(B) V`, the functions whose
//! names end in `scores` are the variants' `B`, and every one of them carries, beside each float64 value, a bound on
//! how far any straightforward float32 evaluation may lie from it ([`Bounded`]): any order of summation, fused or not,
//! on any backend. So a test needs no tuned tolerance:
//!
//! ```
//! use synthesizer_attention::reference::{Mask, Matrix, attend, random_scores};
//!
//! let r = Matrix::from_rows(&[[0.0, 0.0], [0.0, f32::NEG_INFINITY]]);
//! let v = Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]]);
//! let answer = attend(&random_scores(&r, 0, 2), &v, &Mask::default());
//! assert_eq!(answer.y.value.row(0), [2.0, 3.0]);
//! assert_eq!(answer.y.value.row(1), [1.0, 2.0]);
//! assert!(answer.check(&[2.0, 3.0, 1.0, 2.0]).is_ok());
//! assert!(answer.check(&[2.0, 3.0, 1.0, 2.001]).is_err());
//! ```
//!
//! Weights are input-major, `[in][out]`: the transpose of `torch.nn.Linear`'s `weight`.
//!
//! # Panics
//! Shapes that do not fit panic here; this module checks other code and has no errors of its own to report.

#![allow(clippy::missing_panics_doc, reason = "said once, above")]

mod attend;
mod bounded;
mod matrix;
mod multi_head;
mod scores;
#[cfg(test)]
mod tests;

pub use attend::{Answer, Mask, attend, tolerance};
pub use bounded::{Bounded, Mismatch};
pub use matrix::Matrix;
pub use multi_head::{Head, multi_head_dense};
pub use scores::{
    Scores, TwoLayers, dense_scores, dot_product_scores, factorized_dense_scores, factorized_random_scores, linear,
    mixture_scores, random_scores, relu,
};
