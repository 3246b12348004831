use crate::error::Error;
use crate::kernel::{Kernels, Mat, MatMul, MatMut, scale};
use crate::linear::Linear;
use crate::options::Options;
use crate::scratch::padded;
use crate::synthesizer::{Block, Synthesizer};

/// The projections of scaled dot-product attention, `B = Q K^T / sqrt(K)`, `Q = X Wq + bq`, `K = X Wk + bk`
/// (Vaswani et al., arXiv 1706.03762), for use alone or in a [`Mixture`](crate::Mixture).
///
/// Unlike a Synthesizer's, these scores need the keys of all rows. The caller owns them, transposed, `[K, L]`, so that
/// a row of scores is computed like any other: [`project_keys`](Self::project_keys) adds columns, for the whole
/// sequence at once or token by token, and [`with_keys`](Self::with_keys) gives the layer.
///
/// ```
/// use synthesizer_attention::{DotProduct, Linear, Synthesizer};
///
/// let w = [[1.0, 0.0], [0.0, 1.0]];
/// let dot = DotProduct::<4, 2, 2>::new(Linear::without_bias(&w), Linear::without_bias(&w));
/// let x = [[1.0, 0.0], [0.0, 1.0]];
/// let v = [[1.0], [3.0]];
/// let mut keys = [[0.0; 4]; 2];
/// dot.project_keys(0, &x, &mut keys)?;
/// let mut y = [[0.0]; 2];
/// let mut scratch = [0.0; 256];
/// dot.with_keys(&keys, 2).forward(&x, &v, &mut y, &mut scratch)?;
/// assert!(y[0][0] < 2.0 && y[1][0] > 2.0); // each row attends most to itself
/// # Ok::<(), synthesizer_attention::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DotProduct<'a, const L: usize, const D: usize, const K: usize> {
    query: Linear<'a, D, K>,
    key: Linear<'a, D, K>,
}

impl<'a, const L: usize, const D: usize, const K: usize> DotProduct<'a, L, D, K> {
    /// From the projections of queries and of keys.
    #[must_use]
    pub const fn new(query: Linear<'a, D, K>, key: Linear<'a, D, K>) -> Self {
        const { assert!(L > 0, "every size of a layer is at least 1") }
        Self { query, key }
    }

    /// Writes the keys of the rows `x` into the columns `first..first + rows` of the cache.
    ///
    /// # Errors
    /// Before anything is written, if there are more than L of them.
    pub fn project_keys(&self, first: usize, x: &[[f32; D]], keys: &mut [[f32; L]; K]) -> Result<(), Error> {
        self.project_keys_with(&Options::new(), first, x, keys)
    }

    /// The same on a backend of the caller's choice; position and masks do not matter to it.
    ///
    /// # Errors
    /// Before anything is written, if there are more than L of them or the backend is not there.
    pub fn project_keys_with(
        &self,
        options: &Options<'_>,
        first: usize,
        x: &[[f32; D]],
        keys: &mut [[f32; L]; K],
    ) -> Result<(), Error> {
        let end = first.saturating_add(x.len());
        if end > L {
            return Err(Error::Keys { given: end, most: L });
        }
        for (i, x) in x.iter().enumerate() {
            let mut key = [[0.0; K]];
            self.key.forward_with(options, core::slice::from_ref(x), &mut key)?;
            for (column, key) in keys.iter_mut().zip(&key[0]) {
                if let Some(at) = column.get_mut(first + i) {
                    *at = *key;
                }
            }
        }
        Ok(())
    }

    /// The layer over the first `count` keys of the cache.
    #[must_use]
    pub const fn with_keys(self, keys: &'a [[f32; L]; K], count: usize) -> DotProductWithKeys<'a, L, D, K> {
        DotProductWithKeys { query: self.query, keys, count }
    }
}

/// Scaled dot-product attention over keys that have been projected: what [`DotProduct::with_keys`] gives.
///
/// A call may have no more keys than there are in the cache.
#[derive(Clone, Copy, Debug)]
pub struct DotProductWithKeys<'a, const L: usize, const D: usize, const K: usize> {
    query: Linear<'a, D, K>,
    keys: &'a [[f32; L]; K],
    count: usize,
}

impl<const L: usize, const D: usize, const K: usize> Synthesizer for DotProductWithKeys<'_, L, D, K> {
    type Row = [f32; D];

    const MAX_LEN: usize = L;
    const PARAMETERS: usize = 2 * Linear::<D, K>::PARAMETERS;
    const SCORE_MULTIPLY_ADDS: usize = D * K + K * L;
    const WORK: usize = padded(K);

    fn check(&self, keys: usize) -> Result<(), Error> {
        if keys > self.count { Err(Error::Keys { given: keys, most: self.count }) } else { Ok(()) }
    }

    #[inline(always)]
    fn scores<S: Kernels>(&self, k: S, block: Block<'_>) {
        let Block { x, rows, keys, work, scores, .. } = block;
        let mut query = MatMut { data: work, stride: padded(K) };
        k.matmul::<K>(self.query.product(x, query.borrow(), rows, true));
        query.rows(rows, K).for_each(|row| scale(row, const { inverse_square_root(K) }));
        k.matmul::<L>(MatMul::new(query.as_mat(), Mat::new(self.keys), scores, rows, K, keys));
    }
}

/// 1 / sqrt(n), by Newton's iteration in float64 when the crate is compiled.
const fn inverse_square_root(n: usize) -> f32 {
    let n = n as f64;
    let mut root = n;
    let mut steps = 0;
    while steps < 64 {
        root = 0.5 * (root + n / root);
        steps += 1;
    }
    #[allow(clippy::cast_possible_truncation)] // the rounding that is wanted
    let inverse = (1.0 / root) as f32;
    inverse
}
