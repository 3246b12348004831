use core::fmt;

use crate::{Backend, FrozenFor};

/// Why a call was refused. Nothing has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// `v` has more rows (keys) than the layer's maximum length.
    Keys {
        /// Keys given.
        given: usize,
        /// The most there may be.
        most: usize,
    },
    /// The output has another number of rows than `x`.
    Rows {
        /// Rows of the output.
        given: usize,
        /// Rows of `x`.
        needed: usize,
    },
    /// A layer whose scores depend on the position alone was asked for a position past its last.
    Position {
        /// The position after the last row asked for.
        given: usize,
        /// The positions it has.
        most: usize,
    },
    /// The key mask has another length than there are keys.
    KeyMask {
        /// Length of the mask.
        given: usize,
        /// Number of keys.
        needed: usize,
    },
    /// The scratch buffer is too small for even one row.
    Scratch {
        /// Floats given.
        given: usize,
        /// Floats needed.
        needed: usize,
    },
    /// Frozen weights were used in another way than they were taken for.
    Frozen {
        /// What they were taken for.
        to: FrozenFor,
    },
    /// The backend asked for is not to be had on this processor.
    Backend {
        /// The backend asked for.
        asked: Backend,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Keys { given, most } => write!(f, "{given} keys given, the layer takes at most {most}"),
            Self::Rows { given, needed } => write!(f, "the output has {given} rows, x has {needed}"),
            Self::Position { given, most } => {
                write!(f, "rows up to position {given} asked for, the layer has scores for {most}")
            }
            Self::KeyMask { given, needed } => write!(f, "the key mask has {given} entries for {needed} keys"),
            Self::Scratch { given, needed } => {
                write!(f, "scratch of {given} floats given, at least {needed} are needed")
            }
            Self::Frozen { to: FrozenFor::Keys(n) } => {
                write!(f, "these weights were frozen for exactly {n} keys, without masks")
            }
            Self::Frozen { to: FrozenFor::Causal } => {
                write!(f, "these weights were frozen for causal use, with a key for every row and no key mask")
            }
            Self::Backend { asked } => write!(f, "this processor has no backend {asked}"),
        }
    }
}

impl core::error::Error for Error {}
