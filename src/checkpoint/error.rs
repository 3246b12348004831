use core::fmt;
use std::{string::String, vec::Vec};

/// What is wrong with a checkpoint.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Not a whole safetensors file.
    File {
        /// What the parser says.
        reason: String,
    },
    /// No such tensor.
    Missing {
        /// The name asked for.
        name: String,
        /// The names there are.
        found: Vec<String>,
    },
    /// The tensor has another shape.
    Shape {
        /// The tensor's name.
        name: String,
        /// The shape asked for, as PyTorch has it.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
    /// The tensor is not of float32, float16 or bfloat16.
    Dtype {
        /// The tensor's name.
        name: String,
        /// The type in the file.
        found: String,
    },
    /// A NaN or an infinity, where finite weights were asked for.
    NotFinite {
        /// The tensor's name.
        name: String,
        /// Its place in the file's order, the last index fastest.
        index: usize,
        /// What is there.
        value: f32,
    },
    /// Two tensors would have one name in Rust.
    Field {
        /// The tensor's name.
        name: String,
        /// The field that another tensor has already.
        field: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { reason } => write!(f, "not a whole safetensors file: {reason}"),
            Self::Missing { name, found } => {
                write!(f, "there is no tensor {name:?}; the file has {}", found.join(", "))
            }
            Self::Shape { name, expected, found } => {
                write!(f, "tensor {name:?}: expected shape {expected:?}, found {found:?}")
            }
            Self::Dtype { name, found } => {
                write!(f, "tensor {name:?}: expected type F32, F16 or BF16, found {found}")
            }
            Self::NotFinite { name, index, value } => {
                write!(f, "tensor {name:?}: expected finite numbers, found {value} at {index}")
            }
            Self::Field { name, field } => {
                write!(f, "tensor {name:?}: another tensor is the field {field} already")
            }
        }
    }
}

impl core::error::Error for Error {}
