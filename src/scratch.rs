//! How scratch is divided. The length a caller is asked for and the split the pass makes are one definition.

use crate::kernel::{MatMut, RowSet};
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

/// From this many floats a row on, the weights of a layer are more than a core's own cache holds, and are read from
/// further away once a block: larger blocks pay, up to `WIDE_BLOCK` floats.
const WIDE: usize = 768;
const WIDE_BLOCK: usize = 128 * 1024;

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

    /// Floats for the blocks of a layer of at most `max_len` rows where the caller has no wish.
    pub(crate) const fn default_len(self, max_len: usize) -> usize {
        let row = self.scores + self.work;
        let most = if MAX_LANES >= 16 && row >= WIDE { WIDE_BLOCK / row } else { ROWS };
        let most = if most < ROWS {
            ROWS
        } else if most > RowSet::MOST {
            RowSet::MOST
        } else {
            most
        };
        self.len(if max_len < most { max_len } else { most })
    }

    /// The most rows that `scratch` has room for, their scores, and the layer's own part.
    #[inline(always)]
    pub(crate) fn split(self, scratch: &mut [f32]) -> (usize, MatMut<'_>, &mut [f32]) {
        let start = scratch.as_ptr().align_offset(MAX_LANES * size_of::<f32>()).min(SLACK);
        let scratch = scratch.get_mut(start..).unwrap_or(&mut []);
        let rows = (scratch.len() / (self.scores + self.work)).min(RowSet::MOST);
        let (scores, work) = scratch.split_at_mut_checked(rows * self.scores).unwrap_or((&mut [], &mut []));
        (rows, MatMut { data: scores, stride: self.scores }, work)
    }
}
