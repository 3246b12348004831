use crate::attend::{Output, Pass};
use crate::error::Error;
use crate::frozen::{Frozen, FrozenFor};
use crate::kernel::{Kernels, Mat, MatMut};
use crate::options::Options;
use crate::scratch::Plan;
use crate::simd::dispatch;

/// A layer: something that gives scores B for the rows of X, and so computes `Y = softmax(B) V`.
///
/// # Shapes
/// | matrix | shape | |
/// |---|---|---|
/// | `x` | `[rows, D]` | the query rows; each of them gives one row of scores |
/// | `v` | `[keys, M]` | the values G(X), at most [`MAX_LEN`](Self::MAX_LEN) rows |
/// | `y` | `[rows, M]` | the output |
///
/// In self-attention `rows` and `keys` are equal. They differ in cross-attention, in a chunk of a stream and in a step
/// of one row, which are the same call. With fewer than `MAX_LEN` keys only the first `keys` scores of a row exist, and
/// softmax normalizes over those alone.
///
/// # Numbers
/// The scores' maximum is subtracted before the exponential, so scores of any finite size are safe. A NaN or +inf among
/// a row's scores makes that row of `y` NaN and no other; a score of -inf weighs exactly 0; a row without a key (all
/// masked, or all -inf) is zeros. The bits of a row do not depend on the rows that come with it, nor on the size of
/// `scratch`; they may differ from backend to backend.
///
/// The trait is sealed: its score function takes types that only this crate can name.
pub trait Synthesizer: Sized {
    /// A row of X: `[f32; D]`.
    type Row: Row;

    /// The most keys a call may have: the number of scores in a row of B.
    const MAX_LEN: usize;
    /// Numbers in the layer's weights.
    const PARAMETERS: usize;
    /// Multiply-adds for one row of scores over all `MAX_LEN` keys. Softmax and the product with V come to it: `keys`
    /// exponentials and `keys M` multiply-adds a row.
    const SCORE_MULTIPLY_ADDS: usize;
    /// Positions that have a row of scores; no limit where the scores come from `x`.
    #[doc(hidden)]
    const POSITIONS: usize = usize::MAX;
    /// Floats of scratch that the scores of one row need beside themselves.
    #[doc(hidden)]
    const WORK: usize;
    /// Floats of scratch for the block size that suits this target.
    const SCRATCH: usize = Plan::of::<Self>().default_len(Self::MAX_LEN);
    /// Floats of scratch for one row at a time, the least that a call takes: [`scratch_len(1)`](Self::scratch_len).
    const MIN_SCRATCH: usize = Plan::of::<Self>().len(1);

    /// Floats of scratch for blocks of `rows` rows; one is the least. Bigger blocks (up to 64 rows, 128 on x86-64) read
    /// the weights less often.
    #[must_use]
    fn scratch_len(rows: usize) -> usize {
        Plan::of::<Self>().len(rows)
    }

    /// Whether the layer can be called with this many keys.
    #[doc(hidden)]
    fn check(&self, _keys: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Attention weights that are there already, one row a position.
    #[doc(hidden)]
    fn frozen(&self, _options: &Options<'_>, _rows: usize, _keys: usize) -> Result<Option<Mat<'_>>, Error> {
        Ok(None)
    }

    /// Writes the scores of a block of rows.
    #[doc(hidden)]
    fn scores<K: Kernels>(&self, k: K, block: Block<'_>);

    /// `y = softmax(B) v`: [`forward_with`](Self::forward_with) under the default [`Options`].
    ///
    /// # Errors
    /// Before anything is written: more than `MAX_LEN` keys, `x` and `y` of different heights, too little scratch.
    #[inline]
    fn forward<const M: usize>(
        &self,
        x: &[Self::Row],
        v: &[[f32; M]],
        y: &mut [[f32; M]],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.forward_with(&Options::new(), x, v, y, scratch)
    }

    /// `y = softmax(B) v`, with a position, masks or a backend given.
    ///
    /// `scratch` is at least [`MIN_SCRATCH`](Self::MIN_SCRATCH) floats, better [`SCRATCH`](Self::SCRATCH); what it holds
    /// does not matter.
    ///
    /// # Errors
    /// Before anything is written: more than `MAX_LEN` keys, `x` and `y` of different heights, a key mask whose length
    /// is not the number of keys, a position past the last that has scores, too little scratch, a backend that is not
    /// there.
    #[inline]
    fn forward_with<const M: usize>(
        &self,
        options: &Options<'_>,
        x: &[Self::Row],
        v: &[[f32; M]],
        y: &mut [[f32; M]],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let height = y.len();
        let y = MatMut { data: y.as_flattened_mut(), stride: M };
        let output = Output::Y { v: Mat::new(v), y };
        let pass = Pass::<_, M>::new(self, options, (Self::Row::mat(x), x.len()), v.len(), (output, height), scratch)?;
        dispatch(options.backend, pass)
    }

    /// The attention weights softmax(B) themselves, `[rows, N]`, for whoever wants to look at them.
    ///
    /// `keys` is how many keys the rows see; the columns past them are zeros.
    ///
    /// # Errors
    /// As [`forward_with`](Self::forward_with), and where `keys` exceeds N.
    fn attention_weights<const N: usize>(
        &self,
        options: &Options<'_>,
        x: &[Self::Row],
        keys: usize,
        weights: &mut [[f32; N]],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        if keys > N {
            return Err(Error::Keys { given: keys, most: N });
        }
        let height = weights.len();
        let output = Output::Weights(MatMut { data: weights.as_flattened_mut(), stride: N });
        let pass = Pass::<_, N>::new(self, options, (Self::Row::mat(x), x.len()), keys, (output, height), scratch)?;
        dispatch(options.backend, pass)
    }
}

/// A row of X: `[f32; D]`, D > 0.
pub trait Row: Sized {
    /// Columns: D.
    const WIDTH: usize;

    /// Rows as one matrix.
    #[doc(hidden)]
    fn mat(rows: &[Self]) -> Mat<'_>;

    /// Rows as one matrix to write to.
    #[doc(hidden)]
    fn mat_mut(rows: &mut [Self]) -> MatMut<'_>;
}

impl<const D: usize> Row for [f32; D] {
    const WIDTH: usize = D;

    #[inline(always)]
    fn mat(rows: &[Self]) -> Mat<'_> {
        const { assert!(D > 0, "a row has at least one column") }
        Mat::new(rows)
    }

    #[inline(always)]
    fn mat_mut(rows: &mut [Self]) -> MatMut<'_> {
        MatMut { data: rows.as_flattened_mut(), stride: D }
    }
}

/// A layer whose scores depend on the position alone: its softmax can be taken ahead of time.
pub trait Positional: Synthesizer {
    /// Takes the attention weights of all L positions into `weights`, for a number of keys or for causal use, and gives
    /// the layer that uses them.
    ///
    /// # Errors
    /// [`Error::Keys`] for more than L keys, [`Error::Scratch`] for too little scratch.
    fn freeze<'a, const L: usize, const D: usize>(
        &self,
        to: FrozenFor,
        weights: &'a mut [[f32; L]; L],
        scratch: &mut [f32],
    ) -> Result<Frozen<'a, L, D>, Error>
    where
        Self: Synthesizer<Row = [f32; D]>,
    {
        self.freeze_with(&Options::new(), to, weights, scratch)
    }

    /// The same on a backend of the caller's choice; position and masks do not matter to it.
    ///
    /// # Errors
    /// As [`freeze`](Self::freeze), and where the backend is not there.
    fn freeze_with<'a, const L: usize, const D: usize>(
        &self,
        options: &Options<'_>,
        to: FrozenFor,
        weights: &'a mut [[f32; L]; L],
        scratch: &mut [f32],
    ) -> Result<Frozen<'a, L, D>, Error>
    where
        Self: Synthesizer<Row = [f32; D]>,
    {
        const { assert!(L == Self::MAX_LEN, "the weights are [L, L]") }
        let backend = options.backend;
        let (options, keys) = match to {
            FrozenFor::Keys(keys) => (Options::new(), keys),
            FrozenFor::Causal => (Options::new().causal(), L),
        };
        let output = Output::Weights(MatMut { data: weights.as_flattened_mut(), stride: L });
        let no_rows = Mat { data: &[], stride: 0 };
        dispatch(backend, Pass::<_, L>::new(self, &options, (no_rows, L), keys, (output, L), scratch)?)?;
        Frozen::new(weights, to)
    }
}

/// What a layer is asked for: the first `keys` scores of `rows` rows.
pub struct Block<'a> {
    /// `[rows, D]`
    pub(crate) x: Mat<'a>,
    pub(crate) rows: usize,
    /// The first row's position.
    pub(crate) position: usize,
    pub(crate) keys: usize,
    /// At least `rows` times the layer's `WORK`.
    pub(crate) work: &'a mut [f32],
    /// `[rows, keys]`, rows padded to whole vectors.
    pub(crate) scores: MatMut<'a>,
}

impl Block<'_> {
    /// The same block for a shorter time.
    #[inline(always)]
    pub(crate) fn borrow(&mut self) -> Block<'_> {
        Block { work: self.work, scores: self.scores.borrow(), ..*self }
    }
}
