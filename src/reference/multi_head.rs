use super::{Bounded, Mask, Matrix, attend, linear, relu};

/// A linear map of input-major weights `[in][out]` and its bias: a head's second layer, or a projection.
pub type Head<'a> = (&'a Matrix, Option<&'a [f32]>);

/// Multi-head Dense: the hidden layer `relu(X W1 + b1)` and the values `X Wv + bv` are cut into one slice of columns a
/// head; head `i` scores its slice with its own `w2` in `[d / heads][L]`, and the heads' answers go side by side
/// through `Wo`.
#[must_use]
pub fn multi_head_dense(
    x: &Matrix,
    w1: Head<'_>,
    w2: &[Head<'_>],
    wv: Head<'_>,
    wo: Head<'_>,
    mask: &Mask<'_>,
) -> Bounded {
    let hidden = relu(&linear(x, w1.0, w1.1));
    let value = linear(x, wv.0, wv.1);
    let (h, m) = (hidden.cols() / w2.len(), value.cols() / w2.len());
    let heads: std::vec::Vec<Bounded> = (w2.iter().enumerate())
        .map(|(i, (w, b))| {
            let scores = linear(hidden.columns(i * h..(i + 1) * h), w, *b);
            attend(&scores, value.columns(i * m..(i + 1) * m), mask).y
        })
        .collect();
    let y = Bounded::from_fn(x.rows(), value.cols(), |i, j| heads[j / m].at(i, j % m));
    linear(y, wo.0, wo.1)
}
