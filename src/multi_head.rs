//! Several heads side by side, with the projections around them.

mod heads;
mod projection;

pub use heads::{DenseHeads, Heads};
pub use projection::{Identity, Projection};

use crate::attend::{Output, Pass, check};
use crate::error::Error;
use crate::kernel::{Kernels, Mat, MatMut, Shared, block_rows};
use crate::options::Options;
use crate::scratch::{Plan, padded};
use crate::simd::{Kernel, Simd, dispatch};
use crate::synthesizer::{Row, Synthesizer};

/// Multi-head Synthesizer attention: `V = X Wv + bv`, `Y_i = softmax(B_i) V_i`, `Y = [Y_0 | Y_1 | ...] Wo + bo` (Tay et
/// al., section 3; the projections are those of Vaswani et al., arXiv 1706.03762).
///
/// Heads lie as PyTorch's `reshape` lays them: head i has the columns `i M / HEADS .. (i + 1) M / HEADS` of V and of
/// what goes into the output projection. The scores come from [`DenseHeads`] or from an array of layers, one a head
/// ([`Heads`]); each projection is a [`Linear`](crate::Linear) or [`Identity`].
///
/// # Shapes
/// | matrix | shape | |
/// |---|---|---|
/// | `x` | `[rows, D]` | `T::Row` |
/// | `v` | `[keys, M]` | `V::Out`, M a multiple of the number of heads |
/// | `y` | `[rows, O]` | `O::Out` |
///
/// What [`Synthesizer`] says of numbers holds here: rows do not depend on each other's company, a masked key never
/// contributes. A row without a key comes out of the heads as zeros, and out of the output projection as its bias.
///
/// ```
/// use synthesizer_attention::{DenseHeads, Identity, Linear, MultiHead};
///
/// // two heads over rows of four columns, up to three of them
/// static W1: [[f32; 4]; 4] = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
/// static W2: [[[f32; 3]; 2]; 2] = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]];
/// type Layer = MultiHead<DenseHeads<'static, 3, 4, 4, 2, 2>, Identity<4>, Identity<4>>;
/// static LAYER: Layer =
///     MultiHead::new(DenseHeads::new(Linear::without_bias(&W1), &W2, None), Identity::new(), Identity::new());
///
/// let x = [[9.0, 0.0, 9.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 9.0, 0.0, 9.0]];
/// let mut y = [[0.0; 4]; 3];
/// LAYER.forward(&x, &mut y, &mut [0.0; Layer::SCRATCH])?;
/// assert!(y[0][0] > 8.9); // head 0 of row 0 looks at row 0,
/// assert!(y[0][3] > 8.9); // and head 1 of it at row 2
/// # Ok::<(), synthesizer_attention::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MultiHead<T, V, O> {
    pub(crate) heads: T,
    pub(crate) value: V,
    pub(crate) output: O,
}

impl<T: Heads, V: Projection, O: Projection<In = V::Out>> MultiHead<T, V, O> {
    /// The most keys a call may have.
    pub const MAX_LEN: usize = T::Head::MAX_LEN;
    /// Numbers in the layer's weights.
    pub const PARAMETERS: usize = T::PARAMETERS + V::PARAMETERS + O::PARAMETERS;
    /// Floats of scratch for a call that makes the values itself, for the block size that suits this target.
    pub const SCRATCH: usize = Self::VALUES + Self::SCRATCH_WITH_VALUES;
    /// The same for a call that is given the values, or keeps them in a cache.
    pub const SCRATCH_WITH_VALUES: usize = Self::PLAN.default_len(Self::MAX_LEN);

    /// M
    const WIDTH: usize = <V::Out as Row>::WIDTH;
    /// M / HEADS
    const HEAD_WIDTH: usize = {
        assert!(T::HEADS > 0, "there is at least one head");
        assert!(Self::WIDTH.is_multiple_of(T::HEADS), "the heads share the columns of V equally");
        Self::WIDTH / T::HEADS
    };
    /// Floats a row of the heads' outputs side by side; none where they go to y at once.
    const CONCATENATED: usize = if O::IDENTITY { 0 } else { padded(Self::WIDTH) };
    pub(crate) const PLAN: Plan = Plan::of::<T::Head>().and(T::SHARED + Self::CONCATENATED);
    /// Floats of the values of all keys.
    pub(crate) const VALUES: usize = Self::MAX_LEN * padded(Self::WIDTH);

    /// From what scores the heads, the value projection and the output projection.
    #[must_use]
    pub const fn new(heads: T, value: V, output: O) -> Self {
        const { assert!(Self::HEAD_WIDTH > 0, "a head has at least one column of V") }
        Self { heads, value, output }
    }

    /// Floats of scratch for blocks of `rows` rows (one is the least), where the call makes the values itself.
    #[must_use]
    pub const fn scratch_len(rows: usize) -> usize {
        Self::VALUES.saturating_add(Self::PLAN.len(rows))
    }

    /// `y` from queries `x` and values that are there already: cross-attention, or values that something else computed.
    ///
    /// # Errors
    /// As [`Synthesizer::forward_with`].
    pub fn attend(
        &self,
        options: &Options<'_>,
        x: &[T::Row],
        v: &[V::Out],
        y: &mut [O::Out],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let values = Values::Given(V::Out::mat(v));
        self.checked(options, (T::Row::mat(x), x.len()), v.len(), values, (y.len(), O::Out::mat_mut(y)), scratch)
    }

    /// The attention weights `softmax(B_i)` of all heads, for whoever wants to look at them: `weights` has `rows` rows
    /// for head 0, then as many for head 1, and so on. The columns past the keys are zeros.
    ///
    /// # Errors
    /// As [`Synthesizer::attention_weights`].
    pub fn attention_weights<const N: usize>(
        &self,
        options: &Options<'_>,
        x: &[T::Row],
        keys: usize,
        weights: &mut [[f32; N]],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        const { assert!(N > 0, "a row has at least one column") }
        if keys > N {
            return Err(Error::Keys { given: keys, most: N });
        }
        let needed = x.len().saturating_mul(T::HEADS);
        if weights.len() != needed {
            return Err(Error::Rows { given: weights.len(), needed });
        }
        self.check(options, x.len(), keys, 0, scratch.len())?;
        let (to, x, rows) = (MatMut { data: weights.as_flattened_mut(), stride: N }, T::Row::mat(x), x.len());
        dispatch(options.backend, WeightsPass { layer: self, x, rows, keys, to, width: N, scratch, options: *options })
    }

    /// Checks everything that types can't, but the heights of what the caller has beside x.
    pub(crate) fn check(
        &self,
        options: &Options<'_>,
        rows: usize,
        keys: usize,
        values: usize,
        scratch: usize,
    ) -> Result<(), Error> {
        for head in self.heads.heads() {
            check(head, options, rows, keys)?;
        }
        let needed = values.saturating_add(Self::PLAN.len(1));
        if scratch < needed { Err(Error::Scratch { given: scratch, needed }) } else { Ok(()) }
    }

    fn checked<'a>(
        &self,
        options: &Options<'a>,
        (x, rows): (Mat<'a>, usize),
        keys: usize,
        values: Values<'a>,
        (height, y): (usize, MatMut<'a>),
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        if height != rows {
            return Err(Error::Rows { given: height, needed: rows });
        }
        let own = if matches!(values, Values::Scratch) { Self::VALUES } else { 0 };
        self.check(options, rows, keys, own, scratch.len())?;
        dispatch(options.backend, HeadsPass { layer: self, x, rows, keys, values, y, scratch, options: *options })
    }

    /// Rows that stand at `options.first` and below: `x` `[rows, D]` to `y` `[rows, O]`.
    #[inline(always)]
    pub(crate) fn block<K: Kernels>(&self, k: K, options: &Options<'_>, block: HeadsBlock<'_>) {
        let HeadsBlock { x, rows, v, keys, mut y, mut scores, work } = block;
        let Some((shared, work)) = work.split_at_mut_checked(rows * T::SHARED) else { return };
        let Some((concatenated, work)) = work.split_at_mut_checked(rows * Self::CONCATENATED) else { return };
        let mut shared = MatMut { data: shared, stride: T::SHARED };
        let mut concatenated = MatMut { data: concatenated, stride: Self::CONCATENATED };
        self.heads.share(k, x, rows, shared.borrow());

        for (i, head) in self.heads.heads().iter().enumerate() {
            let col = i * Self::HEAD_WIDTH;
            let to = if O::IDENTITY { y.skip_cols(col) } else { concatenated.skip_cols(col) };
            let output = Output::Y { v: v.skip_cols(col), y: to };
            let x = T::input(x, shared.as_mat(), i);
            let mut pass = Pass::<_, 1>::head(head, options, (x, rows), keys, output, Self::HEAD_WIDTH);
            pass.block(k, 0, rows, scores.borrow(), work);
        }
        if !O::IDENTITY {
            self.output.project(k, concatenated.as_mat(), y, rows, false);
        }
    }
}

/// Self-attention: the values are made of the same rows.
impl<T: Heads, V: Projection<In = T::Row>, O: Projection<In = V::Out>> MultiHead<T, V, O> {
    /// Self-attention over the rows of `x` under the default [`Options`].
    ///
    /// # Errors
    /// As [`forward_with`](Self::forward_with).
    pub fn forward(&self, x: &[T::Row], y: &mut [O::Out], scratch: &mut [f32]) -> Result<(), Error> {
        self.forward_with(&Options::new(), x, y, scratch)
    }

    /// Self-attention over the rows of `x`, with masks or a backend given. `scratch` is at least
    /// [`scratch_len(1)`](Self::scratch_len) floats, better [`SCRATCH`](Self::SCRATCH); what it holds does not matter.
    ///
    /// # Errors
    /// As [`Synthesizer::forward_with`].
    pub fn forward_with(
        &self,
        options: &Options<'_>,
        x: &[T::Row],
        y: &mut [O::Out],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let rows = T::Row::mat(x);
        self.checked(options, (rows, x.len()), x.len(), Values::Scratch, (y.len(), O::Out::mat_mut(y)), scratch)
    }

    /// The next rows of a sequence whose earlier values are in a cache: row i of `x` stands at `options.first + i`, its
    /// values are written to that row of `values`, and it attends to the keys `0 .. first + rows`. Under
    /// [`Options::causal`] the bits are those that one call over the whole sequence gives.
    ///
    /// # Errors
    /// As [`Synthesizer::forward_with`], and [`Error::Keys`] where `values` ends before the last row.
    pub fn forward_cached(
        &self,
        options: &Options<'_>,
        x: &[T::Row],
        values: &mut [V::Out],
        y: &mut [O::Out],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let keys = options.first.saturating_add(x.len());
        if keys > values.len() {
            return Err(Error::Keys { given: keys, most: values.len() });
        }
        let values = Values::Cache(V::Out::mat_mut(values));
        self.checked(options, (T::Row::mat(x), x.len()), keys, values, (y.len(), O::Out::mat_mut(y)), scratch)
    }

    /// `v = x Wv + bv`, for [`attend`](Self::attend).
    ///
    /// # Errors
    /// Before anything is written, where `x` and `v` differ in height or the backend is not there.
    pub fn project_values(&self, options: &Options<'_>, x: &[T::Row], v: &mut [V::Out]) -> Result<(), Error> {
        if x.len() != v.len() {
            return Err(Error::Rows { given: v.len(), needed: x.len() });
        }
        let rows = x.len();
        let project = Project { projection: &self.value, x: T::Row::mat(x), y: V::Out::mat_mut(v), rows };
        dispatch(options.backend, project)
    }
}

/// A block of rows of x and where everything is.
pub(crate) struct HeadsBlock<'a> {
    pub(crate) x: Mat<'a>,
    pub(crate) rows: usize,
    pub(crate) v: Mat<'a>,
    pub(crate) keys: usize,
    pub(crate) y: MatMut<'a>,
    /// As many rows of padded scores.
    pub(crate) scores: MatMut<'a>,
    /// At least `rows` times what the layer's plan has beside the scores.
    pub(crate) work: &'a mut [f32],
}

/// Where the values are to be had.
pub(crate) enum Values<'a> {
    /// Of all keys.
    Given(Mat<'a>),
    /// Of the earlier rows; those of the rows of x are added.
    Cache(MatMut<'a>),
    /// To be made of the rows of x.
    Scratch,
}

/// The values' part of scratch, `[rows, M]`, rows padded, and the rest.
#[inline(always)]
pub(crate) fn split_values(scratch: &mut [f32], floats: usize, width: usize) -> (MatMut<'_>, &mut [f32]) {
    let (values, rest) = scratch.split_at_mut_checked(floats).unwrap_or((&mut [], &mut []));
    (MatMut { data: values, stride: padded(width) }, rest)
}

struct HeadsPass<'a, T, V, O> {
    layer: &'a MultiHead<T, V, O>,
    x: Mat<'a>,
    rows: usize,
    keys: usize,
    values: Values<'a>,
    y: MatMut<'a>,
    scratch: &'a mut [f32],
    options: Options<'a>,
}

impl<T: Heads, V: Projection, O: Projection<In = V::Out>> Kernel for HeadsPass<'_, T, V, O> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { layer, x, rows, keys, mut values, mut y, scratch, mut options } = self;
        let (k, first) = (Shared(s), options.first);
        let own = if matches!(values, Values::Scratch) { MultiHead::<T, V, O>::VALUES } else { 0 };
        let (mut own, scratch) = split_values(scratch, own, MultiHead::<T, V, O>::WIDTH);
        let v = match &mut values {
            Values::Given(v) => *v,
            Values::Scratch if V::IDENTITY => x,
            Values::Scratch => {
                layer.value.project(k, x, own.borrow(), rows, true);
                own.as_mat()
            }
            Values::Cache(cache) => {
                layer.value.project(k, x, cache.skip_rows(first), rows, false);
                cache.as_mat()
            }
        };
        let (most, mut scores, work) = MultiHead::<T, V, O>::PLAN.split(scratch);
        let mut row = 0;
        while row < rows {
            let count = block_rows::<S>(rows - row, most.max(1));
            options.first = first.saturating_add(row);
            let block = HeadsBlock {
                x: x.skip_rows(row),
                rows: count,
                v,
                keys,
                y: y.skip_rows(row),
                scores: scores.borrow(),
                work,
            };
            layer.block(k, &options, block);
            row += count;
        }
    }
}

struct WeightsPass<'a, T, V, O> {
    layer: &'a MultiHead<T, V, O>,
    x: Mat<'a>,
    rows: usize,
    keys: usize,
    /// `[HEADS rows, width]`
    to: MatMut<'a>,
    width: usize,
    scratch: &'a mut [f32],
    options: Options<'a>,
}

impl<T: Heads, V: Projection, O: Projection<In = V::Out>> Kernel for WeightsPass<'_, T, V, O> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { layer, x, rows, keys, mut to, width, scratch, mut options } = self;
        let (k, first) = (Shared(s), options.first);
        let (most, mut scores, work) = MultiHead::<T, V, O>::PLAN.split(scratch);
        let mut row = 0;
        while row < rows {
            let count = block_rows::<S>(rows - row, most.max(1));
            options.first = first.saturating_add(row);
            let Some((shared, work)) = work.split_at_mut_checked(count * T::SHARED) else { return };
            let mut shared = MatMut { data: shared, stride: T::SHARED };
            layer.heads.share(k, x.skip_rows(row), count, shared.borrow());
            for (i, head) in layer.heads.heads().iter().enumerate() {
                let output = Output::Weights(to.skip_rows(i * rows + row));
                let x = T::input(x.skip_rows(row), shared.as_mat(), i);
                let mut pass = Pass::<_, 1>::head(head, &options, (x, count), keys, output, width);
                pass.block(k, 0, count, scores.borrow(), work);
            }
            row += count;
        }
    }
}

struct Project<'a, P> {
    projection: &'a P,
    x: Mat<'a>,
    y: MatMut<'a>,
    rows: usize,
}

impl<P: Projection> Kernel for Project<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.projection.project(Shared(s), self.x, self.y, self.rows, false);
    }
}
