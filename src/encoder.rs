//! What an encoder block needs besides attention, and the block itself.

mod feed_forward;
mod norm;
mod rows;

pub use feed_forward::{Activation, FeedForward, Gelu, GeluTanh, Relu};
pub use norm::{LayerNorm, Norm, RmsNorm};
pub use rows::{mean_pool, residual};

use crate::error::Error;
use crate::kernel::{Mat, MatMut, Shared, block_rows, shared};
use crate::multi_head::{Heads, HeadsBlock, MultiHead, Projection, split_values};
use crate::options::Options;
use crate::scratch::{Plan, padded};
use crate::simd::{Kernel, Simd, dispatch};
use crate::synthesizer::Row;
use rows::Residual;

/// An encoder block: multi-head attention and a feed-forward layer, each with a residual connection and a norm.
///
/// - [`post_norm`](Self::post_norm), the original Transformer's: `x = norm1(x + attention(x))`, `x = norm2(x +
///   feed_forward(x))`.
/// - [`pre_norm`](Self::pre_norm): `x = x + attention(norm1(x))`, `x = x + feed_forward(norm2(x))`.
///
/// `A` is a [`MultiHead`] layer from rows of D columns to rows of D columns, `N` a [`LayerNorm`] or [`RmsNorm`], `F` a
/// [`FeedForward`] layer. Rows are replaced in place, so that blocks follow each other over one buffer, and go through
/// the whole block a few at a time: beside the values of all keys, scratch holds a few rows of everything else.
#[derive(Clone, Copy, Debug)]
pub struct EncoderBlock<A, N, F> {
    attention: A,
    norm1: N,
    feed_forward: F,
    norm2: N,
    order: Order,
}

/// Where the norms stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Post,
    Pre,
}

impl<A, N, F> EncoderBlock<A, N, F> {
    /// `x = norm1(x + attention(x))`, then `x = norm2(x + feed_forward(x))`.
    #[must_use]
    pub const fn post_norm(attention: A, norm1: N, feed_forward: F, norm2: N) -> Self {
        Self { attention, norm1, feed_forward, norm2, order: Order::Post }
    }

    /// `x = x + attention(norm1(x))`, then `x = x + feed_forward(norm2(x))`.
    #[must_use]
    pub const fn pre_norm(norm1: N, attention: A, norm2: N, feed_forward: F) -> Self {
        Self { attention, norm1, feed_forward, norm2, order: Order::Pre }
    }

    /// The attention layer, for its weights.
    pub const fn attention(&self) -> &A {
        &self.attention
    }
}

impl<'a, T, V, O, N, const D: usize, const H: usize, A> EncoderBlock<MultiHead<T, V, O>, N, FeedForward<'a, D, H, A>>
where
    T: Heads<Row = [f32; D]>,
    V: Projection<In = [f32; D]>,
    O: Projection<In = V::Out, Out = [f32; D]>,
    N: Norm<Row = [f32; D]>,
    A: Activation,
{
    /// The most rows a sequence may have.
    pub const MAX_LEN: usize = MultiHead::<T, V, O>::MAX_LEN;
    /// Numbers in the block's weights.
    pub const PARAMETERS: usize =
        MultiHead::<T, V, O>::PARAMETERS + FeedForward::<'a, D, H, A>::PARAMETERS + 2 * N::PARAMETERS;
    /// Floats of scratch for [`forward`](Self::forward), for the block size that suits this target.
    pub const SCRATCH: usize = MultiHead::<T, V, O>::VALUES + Self::SCRATCH_WITH_VALUES;
    /// The same for [`forward_cached`](Self::forward_cached).
    pub const SCRATCH_WITH_VALUES: usize = Self::PLAN.default_len(Self::MAX_LEN);

    /// A row of attention's own, of its input and its output (of D columns each), and of the hidden layer.
    const PLAN: Plan = MultiHead::<T, V, O>::PLAN.and(2 * padded(D) + FeedForward::<'a, D, H, A>::WORK);

    /// Floats of scratch for blocks of `rows` rows; one is the least.
    #[must_use]
    pub const fn scratch_len(rows: usize) -> usize {
        MultiHead::<T, V, O>::VALUES.saturating_add(Self::PLAN.len(rows))
    }

    /// Replaces the rows of a whole sequence, `x` `[rows, D]`, under the default [`Options`].
    ///
    /// # Errors
    /// As [`forward_with`](Self::forward_with).
    pub fn forward(&self, x: &mut [[f32; D]], scratch: &mut [f32]) -> Result<(), Error> {
        self.forward_with(&Options::new(), x, scratch)
    }

    /// Replaces the rows of a whole sequence, `x` `[rows, D]`, with masks or a backend given. `scratch` is at least
    /// [`scratch_len(1)`](Self::scratch_len) floats, better [`SCRATCH`](Self::SCRATCH).
    ///
    /// # Errors
    /// Before anything is written: more than `MAX_LEN` rows, a key mask whose length is not the number of rows, a
    /// position past the last that has scores, too little scratch, a backend that is not there.
    pub fn forward_with(&self, options: &Options<'_>, x: &mut [[f32; D]], scratch: &mut [f32]) -> Result<(), Error> {
        let rows = x.len();
        self.check(options, rows, rows, MultiHead::<T, V, O>::VALUES, scratch.len())?;
        let x = MatMut { data: x.as_flattened_mut(), stride: D };
        dispatch(options.backend, Pass { block: self, x, rows, keys: rows, cache: None, scratch, options: *options })
    }

    /// Replaces the next rows of a sequence whose earlier values are in a cache of this block: row i of `x` stands at
    /// `options.first + i`, its values are written to that row of `values`, and it attends to the keys
    /// `0 .. first + rows`. Under [`Options::causal`] the bits are those that one call over the whole sequence gives.
    ///
    /// # Errors
    /// As [`forward_with`](Self::forward_with), and [`Error::Keys`] where `values` ends before the last row.
    pub fn forward_cached(
        &self,
        options: &Options<'_>,
        x: &mut [[f32; D]],
        values: &mut [V::Out],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let rows = x.len();
        let keys = options.first.saturating_add(rows);
        if keys > values.len() {
            return Err(Error::Keys { given: keys, most: values.len() });
        }
        self.check(options, rows, keys, 0, scratch.len())?;
        let x = MatMut { data: x.as_flattened_mut(), stride: D };
        let cache = Some(V::Out::mat_mut(values));
        dispatch(options.backend, Pass { block: self, x, rows, keys, cache, scratch, options: *options })
    }

    fn check(
        &self,
        options: &Options<'_>,
        rows: usize,
        keys: usize,
        values: usize,
        scratch: usize,
    ) -> Result<(), Error> {
        self.attention.check(options, rows, keys, values, scratch)?;
        let needed = values.saturating_add(Self::PLAN.len(1));
        if scratch < needed { Err(Error::Scratch { given: scratch, needed }) } else { Ok(()) }
    }
}

struct Pass<'a, M, N, F> {
    block: &'a EncoderBlock<M, N, F>,
    x: MatMut<'a>,
    rows: usize,
    keys: usize,
    /// The values of earlier rows, if they are kept.
    cache: Option<MatMut<'a>>,
    scratch: &'a mut [f32],
    options: Options<'a>,
}

impl<'a, T, V, O, N, const D: usize, const H: usize, A> Kernel
    for Pass<'a, MultiHead<T, V, O>, N, FeedForward<'a, D, H, A>>
where
    T: Heads<Row = [f32; D]>,
    V: Projection<In = [f32; D]>,
    O: Projection<In = V::Out, Out = [f32; D]>,
    N: Norm<Row = [f32; D]>,
    A: Activation,
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { block, mut x, rows, keys, cache, scratch, mut options } = self;
        let EncoderBlock { attention, norm1, feed_forward, norm2, order } = block;
        let (k, first) = (Shared(s), options.first);
        let pre = *order == Order::Pre;
        let add = |x: Mat<'_>, y: MatMut<'_>, rows: usize| shared(s, Residual { x, y, rows, width: D });

        // values: in the cache from `first` on, or in scratch
        let own = if cache.is_some() { 0 } else { MultiHead::<T, V, O>::VALUES };
        let (own, scratch) = split_values(scratch, own, <V::Out as Row>::WIDTH);
        let (mut v, skip, whole) = match cache {
            Some(cache) => (cache, first, false),
            None => (own, 0, true),
        };

        let (most, mut scores, work) =
            EncoderBlock::<MultiHead<T, V, O>, N, FeedForward<'a, D, H, A>>::PLAN.split(scratch);
        let most = most.max(1);
        let Some((normed, work)) = work.split_at_mut_checked(most * padded(D)) else { return };
        let Some((sum, work)) = work.split_at_mut_checked(most * padded(D)) else { return };
        let Some((hidden, work)) = work.split_at_mut_checked(most * FeedForward::<'a, D, H, A>::WORK) else { return };
        let mut normed = MatMut { data: normed, stride: padded(D) };
        let mut sum = MatMut { data: sum, stride: padded(D) };

        // every row's values, before any row is replaced
        let mut row = 0;
        while row < rows {
            let count = if pre { block_rows::<S>(rows - row, most) } else { rows };
            let x = x.as_mat().skip_rows(row);
            if pre {
                shared(s, norm1.normalize(x, normed.borrow(), count));
            }
            let x = if pre { normed.as_mat() } else { x };
            attention.value.project(k, x, v.skip_rows(skip + row), count, whole);
            row += count;
        }

        let mut row = 0;
        while row < rows {
            let count = block_rows::<S>(rows - row, most);
            options.first = first.saturating_add(row);
            let mut x = x.skip_rows(row);
            if pre {
                shared(s, norm1.normalize(x.as_mat(), normed.borrow(), count));
            }
            let input = if pre { normed.as_mat() } else { x.as_mat() };
            let (scores, y) = (scores.borrow(), sum.borrow());
            attention.block(k, &options, HeadsBlock { x: input, rows: count, v: v.as_mat(), keys, y, scores, work });
            if pre {
                add(sum.as_mat(), x.borrow(), count);
                shared(s, norm2.normalize(x.as_mat(), normed.borrow(), count));
                feed_forward.block(s, normed.as_mat(), count, hidden, sum.borrow(), true);
                add(sum.as_mat(), x.borrow(), count);
            } else {
                add(x.as_mat(), sum.borrow(), count);
                shared(s, norm1.normalize(sum.as_mat(), x.borrow(), count));
                feed_forward.block(s, x.as_mat(), count, hidden, sum.borrow(), true);
                add(x.as_mat(), sum.borrow(), count);
                shared(s, norm2.normalize(sum.as_mat(), x.borrow(), count));
            }
            row += count;
        }
    }
}
