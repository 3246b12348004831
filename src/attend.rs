//! The one forward pass: scores of a block of rows, mask, softmax, times V.

use crate::error::Error;
use crate::kernel::{Inline, Kernels, Mat, MatMul, MatMut, RowSet, Shared, Softmax, block_rows};
use crate::options::Options;
use crate::scratch::{Plan, padded};
use crate::simd::{Kernel, Simd};
use crate::synthesizer::{Block, Row, Synthesizer};

/// A checked call. `x` is `[rows, D]`, `v` `[keys, M]`, `y` `[rows, M]` (or the weights, `[rows, keys]`).
pub(crate) struct Pass<'a, T, const M: usize> {
    layer: &'a T,
    x: Mat<'a>,
    rows: usize,
    keys: usize,
    output: Output<'a>,
    scratch: &'a mut [f32],
    options: Options<'a>,
    /// softmax(B) where it is known beforehand, a row for each position.
    frozen: Option<Mat<'a>>,
    /// Columns of `v` and `y`: M, except in a pass over one head's slice of them.
    width: usize,
}

/// What a pass is to write.
pub(crate) enum Output<'a> {
    /// softmax(B) V
    Y { v: Mat<'a>, y: MatMut<'a> },
    /// softmax(B), and zeros in the columns past the last key
    Weights(MatMut<'a>),
}

impl<'a, T: Synthesizer, const M: usize> Pass<'a, T, M> {
    /// Checks everything that types can't. `height` is the number of rows of the output.
    pub(crate) fn new(
        layer: &'a T,
        options: &Options<'a>,
        (x, rows): (Mat<'a>, usize),
        keys: usize,
        (output, height): (Output<'a>, usize),
        scratch: &'a mut [f32],
    ) -> Result<Self, Error> {
        const { assert!(M > 0, "a value row has at least one column") }
        if height != rows {
            return Err(Error::Rows { given: height, needed: rows });
        }
        let frozen = check(layer, options, rows, keys)?;
        let needed = T::MIN_SCRATCH;
        if scratch.len() < needed {
            return Err(Error::Scratch { given: scratch.len(), needed });
        }
        Ok(Self { layer, x, rows, keys, output, scratch, options: *options, frozen, width: M })
    }

    /// A pass over one head's `width` columns of V and Y, for a caller that has checked it and that asks block by block.
    #[inline(always)]
    pub(crate) fn head(
        layer: &'a T,
        options: &Options<'a>,
        (x, rows): (Mat<'a>, usize),
        keys: usize,
        output: Output<'a>,
        width: usize,
    ) -> Self {
        let frozen = layer.frozen(options, rows, keys).unwrap_or(None);
        Self { layer, x, rows, keys, output, scratch: &mut [], options: *options, frozen, width }
    }

    /// Rows `row..row + rows`, in `scores` and `work` of that many rows.
    #[inline(always)]
    pub(crate) fn block<K: Kernels>(&mut self, k: K, row: usize, rows: usize, scores: MatMut<'_>, work: &mut [f32]) {
        let mut scores = scores;
        let position = self.options.first.saturating_add(row);
        // row r of the block sees the keys up to its own position
        let staircase = self.options.causal.then_some(position.saturating_add(1));
        let keys = staircase.map_or(self.keys, |first| self.keys.min(first.saturating_add(rows - 1)));
        let mask = self.options.key_mask;

        let (weights, without_key) = if let Some(frozen) = self.frozen {
            let weights = frozen.skip_rows(position);
            (weights, without_key(weights, rows, keys, staircase))
        } else {
            let x = self.x.skip_rows(row);
            self.layer.scores(k, Block { x, rows, position, keys, work, scores: scores.borrow() });
            if let Some(mask) = mask {
                hide(mask, &mut scores, rows, keys);
            }
            let without_key = k.softmax(Softmax { scores: scores.borrow(), rows, keys, staircase });
            (scores.as_mat(), without_key)
        };

        match &mut self.output {
            Output::Y { v, y } => {
                let mut y = y.skip_rows(row);
                k.matmul::<M>(MatMul {
                    padded: false,
                    staircase,
                    keep: mask,
                    ..MatMul::new(weights, *v, y.borrow(), rows, keys, self.width)
                });
                if !without_key.is_empty() {
                    // a weight of 0 times NaN or infinity would be NaN
                    for (r, y) in y.rows(rows, self.width).enumerate() {
                        if without_key.contains(r) {
                            y.fill(0.0);
                        }
                    }
                }
            }
            Output::Weights(to) => {
                for (r, to) in to.skip_rows(row).rows(rows, self.width).enumerate() {
                    let seen = staircase.map_or(keys, |first| keys.min(first.saturating_add(r)));
                    let from = weights.skip_rows(r);
                    for (j, to) in to.iter_mut().enumerate() {
                        let used = j < seen && mask.is_none_or(|mask| mask.get(j) == Some(&true));
                        *to = if used { from.data.get(j).copied().unwrap_or(0.0) } else { 0.0 };
                    }
                }
            }
        }
    }
}

/// Checks `rows` queries against `keys` keys; gives the attention weights where the layer knows them beforehand.
pub(crate) fn check<'a, T: Synthesizer>(
    layer: &'a T,
    options: &Options<'_>,
    rows: usize,
    keys: usize,
) -> Result<Option<Mat<'a>>, Error> {
    if keys > T::MAX_LEN {
        return Err(Error::Keys { given: keys, most: T::MAX_LEN });
    }
    let end = options.first.saturating_add(rows);
    if end > T::POSITIONS {
        return Err(Error::Position { given: end, most: T::POSITIONS });
    }
    if let Some(mask) = options.key_mask
        && mask.len() != keys
    {
        return Err(Error::KeyMask { given: mask.len(), needed: keys });
    }
    layer.check(keys)?;
    layer.frozen(options, rows, keys)
}

/// The rows of known weights that are all zeros.
fn without_key(weights: Mat<'_>, rows: usize, keys: usize, staircase: Option<usize>) -> RowSet {
    let mut without_key = RowSet::EMPTY;
    for r in 0..rows {
        let seen = staircase.map_or(keys, |first| keys.min(first.saturating_add(r)));
        if weights.skip_rows(r).data.iter().take(seen).all(|weight| *weight == 0.0) {
            without_key.insert(r);
        }
    }
    without_key
}

/// Gives the keys that `mask` leaves out a score of -inf in every row.
fn hide(mask: &[bool], scores: &mut MatMut<'_>, rows: usize, keys: usize) {
    for row in scores.rows(rows, keys) {
        for (score, seen) in row.iter_mut().zip(mask) {
            if !seen {
                *score = f32::NEG_INFINITY;
            }
        }
    }
}

impl<T: Synthesizer, const M: usize> Pass<'_, T, M> {
    /// The whole of a small layer in one block, with every size and stride a constant. None, and nothing done, where
    /// the call is not for all of it.
    #[inline(always)]
    fn whole<S: Simd>(&mut self, s: S, scores: &mut MatMut<'_>, work: &mut [f32]) -> Option<()> {
        let (len, width) = (T::MAX_LEN, T::Row::WIDTH);
        let Output::Y { v, y } = &mut self.output else { return None };
        let plain = !self.options.causal && self.options.key_mask.is_none() && self.frozen.is_none();
        if !plain || self.rows != len || self.keys != len || self.options.first != 0 {
            return None;
        }
        let stride = Plan::of::<T>().scores;
        let scores = MatMut { data: scores.data.get_mut(..len * stride)?, stride };
        let work = work.get_mut(..len * T::WORK)?;
        let v = Mat { data: v.data.get(..len * M)?, stride: M };
        let y = MatMut { data: y.data.get_mut(..len * M)?, stride: M };
        let x = Mat { data: self.x.data.get(..len * width)?, stride: width };
        Pass::<T, M> {
            layer: self.layer,
            x,
            rows: len,
            keys: len,
            output: Output::Y { v, y },
            scratch: &mut [],
            options: Options::new(),
            frozen: None,
            width: M,
        }
        .block(Inline::<S, T>::new(s), 0, len, scores, work);
        Some(())
    }
}

impl<T: Synthesizer, const M: usize> Kernel for Pass<'_, T, M> {
    type Output = ();
    const NARROW: bool = T::MAX_LEN <= 8 && M <= 8 && T::WORK <= padded(1);

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        if self.keys == 0 {
            let (Output::Y { y, .. } | Output::Weights(y)) = &mut self.output;
            return y.rows(self.rows, M).for_each(|row| row.fill(0.0));
        }
        let plan = Plan::of::<T>();
        let scratch = core::mem::take(&mut self.scratch);
        let (most, mut scores, work) = plan.split(scratch);
        let most = if self.frozen.is_some() { RowSet::MOST } else { most };

        if const { S::SPECIALIZE && T::MAX_LEN <= 32 && T::PARAMETERS <= 4096 && M <= 64 } {
            // nested, so that elsewhere none of it is compiled
            if most >= T::MAX_LEN && self.whole(s, &mut scores, work).is_some() {
                return;
            }
        }

        let mut row = 0;
        while row < self.rows {
            let rows = block_rows::<S>(self.rows - row, most);
            self.block(Shared(s), row, rows, scores.borrow(), work);
            row += rows;
        }
    }
}
