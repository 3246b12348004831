//! Layers from a safetensors checkpoint, and its weights as Rust source for firmware. Needs the `safetensors` feature.
//!
//! A [`Checkpoint`] gives tensors by name, in the orientation that the layers want. Shapes are those of the types asked
//! for, and a file that has another is an error that names the tensor, what was expected and what was found; float16
//! and bfloat16 become float32. Layers borrow their weights, so the caller keeps the boxes:
//!
//! ```no_run
//! use synthesizer_attention::{Dense, checkpoint::Checkpoint};
//!
//! let file = std::fs::read("model.safetensors")?;
//! let checkpoint = Checkpoint::new(&file)?.finite();
//! let w1 = checkpoint.linear::<12, 32>("layers.0.w1")?; // layers.0.w1.weight [32, 12], .bias [32] if there is one
//! let w2 = checkpoint.linear::<32, 29>("layers.0.w2")?;
//! let layer = Dense::with_biases(&w1.weight, w1.bias.as_deref(), &w2.weight, w2.bias.as_deref());
//! # let _ = layer;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | layer | weights |
//! |---|---|
//! | [`Linear`], and so [`Dense`](crate::Dense), [`DotProduct`](crate::DotProduct), [`FeedForward`](crate::FeedForward) | [`linear`](Checkpoint::linear) |
//! | [`Random`](crate::Random), [`Frozen`](crate::Frozen) | [`tensor`](Checkpoint::tensor) of `[[f32; L]; L]` |
//! | [`FactorizedRandom`](crate::FactorizedRandom) | `tensor` of R1, `[[f32; K]; L]`; [`input_major`](Checkpoint::input_major) of R2, `[[f32; L]; K]` |
//! | [`DenseHeads`](crate::DenseHeads) | `linear` of the hidden layer; `input_major` of W2, `[[[f32; L]; H]; HEADS]`; `tensor` of b2, `[[f32; L]; HEADS]` |
//! | [`LayerNorm`], [`RmsNorm`](crate::RmsNorm) | [`layer_norm`](Checkpoint::layer_norm), `tensor` of `[f32; D]` |
//! | the weights of a [`Mixture`](crate::Mixture) | `tensor` of `[f32; PARTS]` |

mod error;
mod source;
mod tensor;

use std::{borrow::ToOwned, boxed::Box, format, string::ToString, vec::Vec};

use safetensors::{Dtype, SafeTensors};

pub use error::Error;
pub use source::RustSource;
pub use tensor::Tensor;

use crate::encoder::LayerNorm;
use crate::linear::Linear;

/// The tensors of a safetensors file.
#[derive(Debug)]
pub struct Checkpoint<'a> {
    tensors: SafeTensors<'a>,
    finite: bool,
}

impl<'a> Checkpoint<'a> {
    /// From the bytes of the file, at any address.
    ///
    /// # Errors
    /// [`Error::File`] if they are not a whole safetensors file.
    pub fn new(file: &'a [u8]) -> Result<Self, Error> {
        let tensors = SafeTensors::deserialize(file).map_err(|e| Error::File { reason: e.to_string() })?;
        Ok(Self { tensors, finite: false })
    }

    /// From here on a tensor that holds a NaN or an infinity is [`Error::NotFinite`].
    #[must_use]
    pub fn finite(self) -> Self {
        Self { finite: true, ..self }
    }

    /// The names in the file, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names = self.tensors.names();
        names.sort_unstable();
        names
    }

    /// A tensor as it is stored: nested arrays, the first dimension outermost.
    ///
    /// # Errors
    /// No such tensor, another shape, a type that is not a float, or a number that is not finite where that matters.
    pub fn tensor<T: Tensor>(&self, name: &str) -> Result<Box<T>, Error> {
        Ok(T::boxed(&mut self.values(name, &T::shape())?.into_iter()))
    }

    /// A tensor with its last two dimensions exchanged: the `[[f32; OUT]; IN]` of PyTorch's weight `[OUT, IN]`, and the
    /// same for each head of `[HEADS, OUT, IN]`.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn input_major<T: Tensor>(&self, name: &str) -> Result<Box<T>, Error> {
        const { assert!(T::RANK >= 2, "only a matrix has another orientation") }
        let mut stored = T::shape();
        let rank = stored.len();
        stored.swap(rank - 2, rank - 1);
        let values = transpose_last(&self.values(name, &stored)?, &stored);
        Ok(T::boxed(&mut values.into_iter()))
    }

    /// An `nn.Linear`: `{name}.weight`, `[OUT, IN]` there, and `{name}.bias` if the file has one.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn linear<const IN: usize, const OUT: usize>(&self, name: &str) -> Result<LinearWeights<IN, OUT>, Error> {
        let bias = format!("{name}.bias");
        let bias = if self.tensors.tensor(&bias).is_ok() { Some(self.tensor(&bias)?) } else { None };
        Ok(LinearWeights { weight: self.input_major(&format!("{name}.weight"))?, bias })
    }

    /// An `nn.LayerNorm`: `{name}.weight` and `{name}.bias`, `[D]`, with PyTorch's default eps.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn layer_norm<const D: usize>(&self, name: &str) -> Result<LayerNormWeights<D>, Error> {
        let part = |part: &str| self.tensor(&format!("{name}.{part}"));
        Ok(LayerNormWeights { weight: part("weight")?, bias: part("bias")? })
    }

    /// The values of a tensor that must have this shape.
    fn values(&self, name: &str, expected: &[usize]) -> Result<Vec<f32>, Error> {
        let (shape, values) = self.any_shape(name)?;
        if shape != expected {
            return Err(Error::Shape { name: name.to_owned(), expected: expected.to_vec(), found: shape });
        }
        Ok(values)
    }

    /// The shape and the values of a tensor.
    fn any_shape(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>), Error> {
        let missing = |_| Error::Missing {
            name: name.to_owned(),
            found: self.names().into_iter().map(ToOwned::to_owned).collect(),
        };
        let view = self.tensors.tensor(name).map_err(missing)?;
        let two = |convert: fn(u16) -> f32| {
            view.data().as_chunks().0.iter().map(|b| convert(u16::from_le_bytes(*b))).collect::<Vec<_>>()
        };
        let values = match view.dtype() {
            Dtype::F32 => view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Dtype::F16 => two(tensor::from_f16),
            Dtype::BF16 => two(tensor::from_bf16),
            found => return Err(Error::Dtype { name: name.to_owned(), found: format!("{found:?}") }),
        };
        if self.finite
            && let Some((index, value)) = values.iter().enumerate().find(|(_, x)| !x.is_finite())
        {
            return Err(Error::NotFinite { name: name.to_owned(), index, value: *value });
        }
        Ok((view.shape().to_vec(), values))
    }
}

/// The weights of a [`Linear`] layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearWeights<const IN: usize, const OUT: usize> {
    /// `[IN, OUT]`
    pub weight: Box<[[f32; OUT]; IN]>,
    /// `[OUT]`
    pub bias: Option<Box<[f32; OUT]>>,
}

impl<const IN: usize, const OUT: usize> LinearWeights<IN, OUT> {
    /// The layer over them.
    #[must_use]
    pub fn layer(&self) -> Linear<'_, IN, OUT> {
        Linear::with_bias(&self.weight, self.bias.as_deref())
    }
}

/// The weights of a [`LayerNorm`].
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNormWeights<const D: usize> {
    /// `[D]`
    pub weight: Box<[f32; D]>,
    /// `[D]`
    pub bias: Box<[f32; D]>,
}

impl<const D: usize> LayerNormWeights<D> {
    /// The norm over them.
    #[must_use]
    pub fn layer(&self) -> LayerNorm<'_, D> {
        LayerNorm::new(&self.weight, &self.bias)
    }
}

/// The values of a tensor of this shape with its last two dimensions exchanged.
fn transpose_last(values: &[f32], shape: &[usize]) -> Vec<f32> {
    let [.., rows, cols] = *shape else { return values.to_vec() };
    let mut transposed = Vec::with_capacity(values.len());
    for matrix in values.chunks(Ord::max(rows * cols, 1)) {
        for col in 0..cols {
            transposed.extend(matrix.iter().skip(col).step_by(cols));
        }
    }
    transposed
}
