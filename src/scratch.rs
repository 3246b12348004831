//! How scratch is divided. The length a caller is asked for and the split the pass makes are one definition.

use crate::kernel::MatMut;
use crate::simd::MAX_LANES;
use crate::synthesizer::Synthesizer;

/// Rows of a block where the caller has no wish: enough for the widest tiles, few enough for the nearest cache.
const ROWS: usize = if MAX_LANES >= 16 {
    36
} else if MAX_LANES >= 4 {
    24
} else {
    4
};

/// The most rows of a block: the softmax keeps a float for each on the stack, and reports them in the bits of a `u64`.
pub(crate) const MOST_ROWS: usize = if MAX_LANES >= 4 { 64 } else { 16 };

/// What may be lost in front to start on a whole vector.
const SLACK: usize = MAX_LANES - 1;

/// `width` floats as a row of scratch: whole vectors, so that none is stored in part. (The loads that follow a masked
/// store wait for it.)
pub(crate) const fn padded(width: usize) -> usize {
    width.next_multiple_of(MAX_LANES)
}

/// A block's scratch: for each row its padded scores, then `work` floats of the layer's own.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) scores: usize,
    work: usize,
}

impl Plan {
    pub(crate) const fn of<T: Synthesizer>() -> Self {
        Self { scores: padded(T::MAX_LEN), work: T::WORK }
    }

    /// The same with `floats` more of each row's own, for a layer around the one that scores.
    pub(crate) const fn and(self, floats: usize) -> Self {
        Self { work: self.work + floats, ..self }
    }

    /// Floats for blocks of `rows` rows.
    pub(crate) const fn len(self, rows: usize) -> usize {
        SLACK.saturating_add(rows.saturating_mul(self.scores + self.work))
    }

    /// Rows of a block where the caller has no wish.
    pub(crate) const fn rows(max_len: usize) -> usize {
        if max_len < ROWS { max_len } else { ROWS }
    }

    /// The most rows that `scratch` has room for, their scores, and the layer's own part.
    #[inline(always)]
    pub(crate) fn split(self, scratch: &mut [f32]) -> (usize, MatMut<'_>, &mut [f32]) {
        let start = scratch.as_ptr().align_offset(MAX_LANES * size_of::<f32>()).min(SLACK);
        let scratch = scratch.get_mut(start..).unwrap_or(&mut []);
        let rows = (scratch.len() / (self.scores + self.work)).min(MOST_ROWS);
        let (scores, work) = scratch.split_at_mut_checked(rows * self.scores).unwrap_or((&mut [], &mut []));
        (rows, MatMut { data: scores, stride: self.scores }, work)
    }
}
