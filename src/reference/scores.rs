use super::{
    Bounded, Matrix,
    bounded::{Approx, TINY, U, dot},
};

/// Scores `B`, one row a query and one column a key, before mask and softmax.
pub type Scores = Bounded;

/// The two layers of `F`: `w1` in `[d][h]`, `b1` in `[h]`, `w2` in `[h][L]`, `b2` in `[L]`.
pub type TwoLayers<'a> = (&'a Matrix, Option<&'a [f32]>, &'a Matrix, Option<&'a [f32]>);

/// `X W + b`, with `w` in `[in][out]`: one layer of `F`, a projection, or the values `G(X)`.
pub fn linear(x: impl Into<Bounded>, w: &Matrix, b: Option<&[f32]>) -> Bounded {
    let x = x.into();
    assert_eq!(x.cols(), w.rows(), "X's width and the rows of W");
    assert!(b.is_none_or(|b| b.len() == w.cols()), "one bias a column of W");
    Bounded::from_fn(x.rows(), w.cols(), |i, j| {
        let products = (0..w.rows()).map(|k| (x.at(i, k), Approx::exact(w.at(k, j))));
        let bias = b.map(|b| (Approx::exact(b[j].into()), Approx::exact(1.0)));
        dot(products.chain(bias))
    })
}

/// `max(x, 0)`, and NaN of NaN. It brings values together and never apart: the error does not grow, and a value that is
/// surely negative is exactly 0.
#[must_use]
pub fn relu(x: &Bounded) -> Bounded {
    Bounded::from_fn(x.rows(), x.cols(), |i, j| {
        let Approx { value, error } = x.at(i, j);
        match x.at(i, j) {
            x if x.is_anything() || x.is_nan() => x,
            _ => Approx { value: value.max(0.0), error: error.min((value + error).max(0.0)) },
        }
    })
}

/// Dense: `F(X) = relu(X W1 + b1) W2 + b2`.
#[must_use]
pub fn dense_scores(x: &Matrix, w1: &Matrix, b1: Option<&[f32]>, w2: &Matrix, b2: Option<&[f32]>) -> Scores {
    linear(relu(&linear(x, w1, b1)), w2, b2)
}

/// Random: rows `first..first + rows` of `R`.
#[must_use]
pub fn random_scores(r: &Matrix, first: usize, rows: usize) -> Scores {
    Bounded::from_fn(rows, r.cols(), |i, j| Approx::exact(r.at(first + i, j)))
}

/// Factorized random: rows `first..first + rows` of `R1 R2^T`, with `r1` and `r2` in `[L][k]`.
#[must_use]
pub fn factorized_random_scores(r1: &Matrix, r2: &Matrix, first: usize, rows: usize) -> Scores {
    linear(random_scores(r1, first, rows), &r2.transposed(), None)
}

/// Factorized dense: column `j` is `A[j mod a] C[j div a]`, with `A = F_A(X)` in `R^a` and `C = F_C(X)` in `R^b`, `a b
/// = L`.
#[must_use]
pub fn factorized_dense_scores(x: &Matrix, a: TwoLayers<'_>, c: TwoLayers<'_>) -> Scores {
    let [a, c] = [a, c].map(|(w1, b1, w2, b2)| dense_scores(x, w1, b1, w2, b2));
    Bounded::from_fn(x.rows(), a.cols() * c.cols(), |i, j| dot([(a.at(i, j % a.cols()), c.at(i, j / a.cols()))]))
}

/// Scaled dot product: `Q K^T / sqrt(d_k)` with `Q = Xq Wq + bq` and `K = Xk Wk + bk`; columns past the keys, up to
/// `max_len`, are 0.
///
/// The scale may be applied to `Q`, to `K`, to a root of each, or to their product. Its value and its multiplication
/// are four roundings at most, which are put down to both sides, with the underflow of a scaled `Q` or `K` (in units of
/// the unscaled one) and of the scaled products. Overflow is judged before scaling.
#[must_use]
pub fn dot_product_scores(
    xq: &Matrix,
    xk: &Matrix,
    wq: &Matrix,
    bq: Option<&[f32]>,
    wk: &Matrix,
    bk: Option<&[f32]>,
    max_len: usize,
) -> Scores {
    let (q, k) = (linear(xq, wq, bq), linear(xk, wk, bk));
    assert!(k.rows() <= max_len && q.cols() == k.cols(), "keys that fit the queries and the maximum length");
    let root = (q.cols() as f64).sqrt();
    let scaled = |x: Approx| Approx { error: x.error + 4.0 * U * x.magnitude() + root * TINY, ..x };
    Bounded::from_fn(q.rows(), max_len, |i, j| {
        if j >= k.rows() {
            return Approx::exact(0.0);
        }
        let s = dot((0..q.cols()).map(|c| (scaled(q.at(i, c)), scaled(k.at(j, c)))));
        Approx { value: s.value / root, error: s.error / root + q.cols() as f64 * TINY }
    })
}

/// Mixture: `sum_i alpha_i S_i`.
#[must_use]
pub fn mixture_scores(parts: &[(f32, &Scores)]) -> Scores {
    let (rows, cols) = parts.first().map_or((0, 0), |(_, s)| (s.rows(), s.cols()));
    Bounded::from_fn(rows, cols, |i, j| {
        dot(parts.iter().map(|(alpha, s)| (Approx::exact((*alpha).into()), s.at(i, j))))
    })
}
