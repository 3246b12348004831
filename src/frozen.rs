use core::marker::PhantomData;

use crate::error::Error;
use crate::kernel::{Kernels, Mat};
use crate::options::Options;
use crate::synthesizer::{Block, Synthesizer};

/// Attention weights taken ahead of time, of a layer whose scores do not depend on X: only the product with V is left.
///
/// Made at start-up by [`Positional::freeze`](crate::Positional::freeze), or by whoever exports the model
/// ([`Frozen::new`]). The weights are those of one number of keys, or of causal use, which covers every prefix of a
/// sequence; any other use is [`Error::Frozen`].
#[derive(Clone, Copy, Debug)]
pub struct Frozen<'a, const L: usize, const D: usize> {
    weights: &'a [[f32; L]; L],
    to: FrozenFor,
    row: PhantomData<[f32; D]>,
}

/// What attention weights were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrozenFor {
    /// All rows see this many keys.
    Keys(usize),
    /// The row at position p sees the keys 0 to p.
    Causal,
}

impl<'a, const L: usize, const D: usize> Frozen<'a, L, D> {
    /// From the weights: row p for the row at position p. What a row holds past its last key is not read.
    ///
    /// # Errors
    /// [`Error::Keys`] where they are said to be for more than L keys.
    pub const fn new(weights: &'a [[f32; L]; L], to: FrozenFor) -> Result<Self, Error> {
        const { assert!(L > 0 && D > 0, "every size of a layer is at least 1") }
        if let FrozenFor::Keys(keys) = to
            && keys > L
        {
            return Err(Error::Keys { given: keys, most: L });
        }
        Ok(Self { weights, to, row: PhantomData })
    }
}

impl<const L: usize, const D: usize> Synthesizer for Frozen<'_, L, D> {
    type Row = [f32; D];

    const MAX_LEN: usize = L;
    const PARAMETERS: usize = L * L;
    const SCORE_MULTIPLY_ADDS: usize = 0;
    const POSITIONS: usize = L;
    const WORK: usize = 0;
    const SCRATCH: usize = 0;
    const MIN_SCRATCH: usize = 0;

    fn scratch_len(_rows: usize) -> usize {
        0
    }

    fn frozen(&self, options: &Options<'_>, rows: usize, keys: usize) -> Result<Option<Mat<'_>>, Error> {
        let fits = options.key_mask.is_none()
            && match self.to {
                FrozenFor::Keys(n) => !options.causal && keys == n,
                // every row sees all keys up to its own position
                FrozenFor::Causal => options.causal && keys >= options.first.saturating_add(rows),
            };
        if fits { Ok(Some(Mat::new(self.weights))) } else { Err(Error::Frozen { to: self.to }) }
    }

    fn scores<K: Kernels>(&self, _: K, _: Block<'_>) {} // never asked: the weights are there
}
