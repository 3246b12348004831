use core::{error::Error, fmt, ops::Range};

use super::Matrix;

/// The unit roundoff of float32, `2^-24`, widened by a part in a million.
///
/// The excess pays for the reference's own rounding: `gamma` is convex, so `gamma_n(2^-24) + gamma_n(2^-53)`, float32's
/// error and float64's, is below `gamma_n(2^-24 + 2^-53)`, and the excess is `2^-44`.
pub(super) const U: f64 = (1.0 + 1.0 / (1 << 20) as f64) / (1 << 24) as f64;

/// The smallest subnormal float32, `2^-149`: twice what one operation may lose by underflow.
pub(super) const TINY: f64 = f32::from_bits(1) as f64;

/// The relative error of a value that went through `n` roundings: `n u / (1 - n u)`.
///
/// Higham, "Accuracy and Stability of Numerical Algorithms", lemma 3.1.
pub(super) fn gamma(n: usize) -> f64 {
    let nu = n as f64 * U;
    if nu < 1.0 { nu / (1.0 - nu) } else { f64::INFINITY }
}

/// One float64 value and what a float32 evaluation may be away from it; see [`Bounded`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Approx {
    pub(super) value: f64,
    pub(super) error: f64,
}

impl Approx {
    pub(super) const ANYTHING: Self = Self { value: f64::NAN, error: f64::INFINITY };

    pub(super) fn exact(value: f64) -> Self {
        Self { value, error: 0.0 }
    }

    pub(super) fn is_anything(self) -> bool {
        self.error.is_infinite()
    }

    /// NaN in every float32 evaluation too.
    pub(super) fn is_nan(self) -> bool {
        self.value.is_nan() && !self.is_anything()
    }

    pub(super) fn magnitude(self) -> f64 {
        self.value.abs() + self.error
    }

    /// A float32 evaluation may find 0, or the other sign: times an infinity that is another kind of answer, not a near
    /// one.
    fn may_vanish(self) -> bool {
        self.error > 0.0 && self.value.abs() <= self.error
    }
}

/// `sum_k a_k b_k` with its running error bound; a bias `b` is the term `b * 1`.
///
/// With `a'`, `b'` at most `ea`, `eb` away, `|a' b' - a b| <= |a| eb + |b| ea + ea eb`. In a sum of `n` products each
/// goes through its own rounding and at most `n - 1` of additions, whatever the order, and a fused multiply-add leaves
/// one out: relative error `gamma_n` of `sum (|a| + ea)(|b| + eb)`. Additions are exact among subnormals; each product
/// may underflow by `2^-150`.
pub(super) fn dot(terms: impl IntoIterator<Item = (Approx, Approx)>) -> Approx {
    let (mut value, mut error, mut magnitude, mut n) = (0.0, 0.0, 0.0, 0);
    let (mut nan, mut anything) = (false, false);
    for (a, b) in terms {
        let product = a.value * b.value;
        value += product;
        n += 1;
        nan |= a.is_nan() || b.is_nan();
        anything |= a.is_anything() || b.is_anything();
        if product.is_finite() {
            error += a.value.abs() * b.error + b.value.abs() * a.error + a.error * b.error;
            magnitude += a.magnitude() * b.magnitude();
        } else {
            anything |= a.may_vanish() || b.may_vanish();
        }
    }
    // Every partial sum, in any order, is at most this.
    let overflow = magnitude * (1.0 + gamma(n)) > f64::from(f32::MAX);
    if nan {
        Approx::exact(f64::NAN)
    } else if anything || overflow {
        Approx { value, error: f64::INFINITY }
    } else if value.is_finite() {
        Approx { value, error: error + gamma(n) * magnitude + n as f64 * TINY }
    } else {
        Approx::exact(value)
    }
}

/// A float64 matrix and, for each entry, a bound on how far any float32 evaluation may be from it.
///
/// A NaN or an infinity of error 0 is one that every evaluation must find. An infinite error means that anything may be
/// found, NaN included: a float32 partial sum may overflow in one order and not in another, or a factor that float32
/// can't tell from 0 meets an infinity.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounded {
    /// The value in float64.
    pub value: Matrix,
    /// The bound on the absolute error of a float32 evaluation.
    pub error: Matrix,
}

impl Bounded {
    pub(super) fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> Approx) -> Self {
        let mut error = std::vec::Vec::new();
        let value = Matrix::from_fn(rows, cols, |i, j| {
            let entry = f(i, j);
            error.push(entry.error);
            entry.value
        });
        Self { value, error: Matrix::from_fn(rows, cols, |i, j| error[i * cols + j]) }
    }

    pub(super) fn at(&self, i: usize, j: usize) -> Approx {
        Approx { value: self.value.at(i, j), error: self.error.at(i, j) }
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.value.rows()
    }

    /// The number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.value.cols()
    }

    /// The columns in `range`: a head's slice of the hidden layer or of the values.
    #[must_use]
    pub fn columns(&self, range: Range<usize>) -> Self {
        Self::from_fn(self.rows(), range.len(), |i, j| self.at(i, range.start + j))
    }

    /// Whether anything may be found somewhere in row `i`.
    #[must_use]
    pub fn uncertain(&self, i: usize) -> bool {
        self.error.row(i).contains(&f64::INFINITY)
    }

    /// Compares a float32 evaluation, whose row `i` starts at `found[i * stride]`; gives the worst error in units of
    /// its bound.
    ///
    /// # Errors
    /// The first entry outside its bound, or not the NaN or the infinity that it must be.
    #[allow(clippy::float_cmp, reason = "equal infinities have no difference to compare")]
    pub fn check(&self, found: &[f32], stride: usize) -> Result<f64, Mismatch> {
        assert!(self.rows() == 0 || found.len() >= (self.rows() - 1) * stride + self.cols(), "{} values", found.len());
        let mut worst = 0.0_f64;
        for row in 0..self.rows() {
            for column in 0..self.cols() {
                let Approx { value: expected, error: bound } = self.at(row, column);
                let found = found[row * stride + column];
                let off = (f64::from(found) - expected).abs();
                let same = f64::from(found) == expected || (found.is_nan() && expected.is_nan());
                if same || bound.is_infinite() {
                    continue;
                }
                if off.is_nan() || off > bound {
                    return Err(Mismatch { row, column, expected, found, bound });
                }
                worst = worst.max(off / bound);
            }
        }
        Ok(worst)
    }
}

/// Taken as exact: inputs and weights.
impl From<&Matrix> for Bounded {
    fn from(value: &Matrix) -> Self {
        Self { value: value.clone(), error: Matrix::from_fn(value.rows(), value.cols(), |_, _| 0.0) }
    }
}

impl From<&Bounded> for Bounded {
    fn from(computed: &Bounded) -> Self {
        computed.clone()
    }
}

/// An entry of a float32 evaluation outside its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mismatch {
    /// The entry's row.
    pub row: usize,
    /// The entry's column.
    pub column: usize,
    /// The float64 value.
    pub expected: f64,
    /// The float32 evaluation's.
    pub found: f32,
    /// How far apart they may be.
    pub bound: f64,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, column, expected, found, bound } = self;
        let off = f64::from(*found) - expected;
        write!(f, "row {row}, column {column}: found {found:e}, expected {expected:e}, off by {off:e}, bound {bound:e}")
    }
}

impl Error for Mismatch {}
