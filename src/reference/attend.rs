use core::f64::consts::LN_2;
use std::{vec, vec::Vec};

use super::{
    Bounded, Mismatch, Scores,
    bounded::{Approx, TINY, U, gamma},
};

/// Which keys a query sees. The default is all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mask<'a> {
    /// A query sees its own position and those before it.
    pub causal: bool,
    /// The position of the first query row: row `i` stands at `first + i`.
    pub first: usize,
    /// Per key, whether any query sees it.
    pub keys: Option<&'a [bool]>,
}

impl Mask<'_> {
    /// Whether query row `i` sees key `j`.
    #[must_use]
    pub fn allows(&self, i: usize, j: usize) -> bool {
        (!self.causal || j <= self.first + i) && self.keys.is_none_or(|keys| keys[j])
    }
}

/// `Y` and the attention weights it came from, with the bounds on a float32 evaluation of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// `Y`, rows of `V`'s width.
    pub y: Bounded,
    /// `softmax(B)`, one column a key. Masked keys have weight 0.
    pub weights: Bounded,
}

impl Answer {
    /// Compares a float32 `Y`, row after row; gives the worst error in units of its bound.
    ///
    /// # Errors
    /// The first entry outside its bound.
    pub fn check(&self, y: &[f32]) -> Result<f64, Mismatch> {
        assert_eq!(y.len(), self.y.rows() * self.y.cols(), "as many values as Y has");
        self.y.check(y, self.y.cols())
    }

    /// Compares float32 attention weights, whose row `i` starts at `weights[i * stride]`.
    ///
    /// # Errors
    /// The first weight outside its bound.
    pub fn check_weights(&self, weights: &[f32], stride: usize) -> Result<f64, Mismatch> {
        self.weights.check(weights, stride)
    }

    /// Whether anything may be found somewhere in row `i` of `Y`.
    #[must_use]
    pub fn uncertain(&self, i: usize) -> bool {
        self.y.uncertain(i)
    }
}

/// `Y = softmax(B) V`, over the first `n = v.rows()` columns of the scores and the keys that the mask allows.
///
/// Row by row:
/// - a NaN or +inf logit among the keys in use: the whole row is NaN;
/// - no key in use, or every logit -inf: zeros, whatever `V` holds;
/// - a logit of -inf, or so far below the row's maximum that its weight is 0 in float32: weight 0;
/// - a masked key is not there at all; a key in use with weight 0 still meets its row of `V`, where 0 times NaN or
///   infinity is NaN by IEEE. Where float32 can't tell whether a weight is 0 and `V` holds an infinity there, anything
///   may be found.
pub fn attend(scores: &Scores, v: impl Into<Bounded>, mask: &Mask<'_>) -> Answer {
    let v = v.into();
    let (rows, n, m) = (scores.rows(), v.rows(), v.cols());
    assert!(n <= scores.cols(), "{n} keys and {} scores a row", scores.cols());
    let mut weights = vec![vec![Approx::exact(0.0); n]; rows];
    let mut y = vec![vec![Approx::exact(0.0); m]; rows];
    for i in 0..rows {
        let keys: Vec<usize> = (0..n).filter(|&j| mask.allows(i, j)).collect();
        let logits: Vec<Approx> = keys.iter().map(|&j| scores.at(i, j)).collect();
        let any = |is: fn(&Approx) -> bool| logits.iter().any(is);
        let special = if any(|s| s.is_nan() || (s.value == f64::INFINITY && !s.is_anything())) {
            Some(Approx::exact(f64::NAN))
        } else if any(|s| s.is_anything()) {
            Some(Approx::ANYTHING)
        } else if !any(|s| s.value.is_finite()) {
            Some(Approx::exact(0.0))
        } else {
            None
        };
        if let Some(entry) = special {
            for j in keys {
                weights[i][j] = entry;
            }
            y[i].fill(entry);
            continue;
        }
        let (weight, drift) = softmax(&logits);
        for (&j, entry) in keys.iter().zip(with_bounds(&weight, &drift)) {
            weights[i][j] = entry;
        }
        for c in 0..m {
            let column: Vec<Approx> = keys.iter().map(|&j| v.at(j, c)).collect();
            let unclear = keys.iter().zip(&column).any(|(&j, v)| {
                let Approx { value, error } = weights[i][j];
                v.is_anything() || (v.value.is_infinite() && error > 0.0 && value <= error)
            });
            y[i][c] = match weighted_sum(&weight, &drift, &column) {
                y if unclear && !column.iter().any(|v| v.is_nan()) => Approx { error: f64::INFINITY, ..y },
                y => y,
            };
        }
    }
    Answer { y: Bounded::from_fn(rows, m, |i, c| y[i][c]), weights: Bounded::from_fn(rows, n, |i, j| weights[i][j]) }
}

/// The attention weights of one row, and how far each may drift: see [`tolerance`].
///
/// No logit is NaN, +inf or without a bound, and one at least is finite. With `m` the largest logit and `s'`, `m'`
/// those that float32 finds, `p'_j = exp(s'_j - m')` for `p_j = exp(s_j - m)`:
/// - `m'` lies between the largest `s_j - e_j` and the largest `s_j + e_j`, as `m` does;
/// - the subtraction rounds by `u |s'_j - m'|`, so the argument of exp is off by `delta_j`, apart from `m - m'`, which
///   all keys share and normalising cancels: `c = exp(m - m')`;
/// - exp is off by two units in the last place, `4 u` relative, or a subnormal step:
///   `|p'_j - c p_j| <= c p_j (exp(delta_j) (1 + 4u) - 1) + 2^-149`, and `1 / c <= exp(highest - m)`.
///
/// That, over `c sum p`, is the drift. A key whose exp stays below a quarter of the smallest subnormal is 0 in float32
/// for sure: weight and drift are 0.
fn softmax(logits: &[Approx]) -> (Vec<f64>, Vec<f64>) {
    let largest = |f: fn(&Approx) -> f64| logits.iter().map(f).fold(f64::NEG_INFINITY, f64::max);
    let [lowest, max, highest] = [largest(|s| s.value - s.error), largest(|s| s.value), largest(|s| s.value + s.error)];
    let delta = |s: &Approx| s.error + U * (max - s.value + s.error + highest - lowest);
    let is_zero = |s: &Approx| s.value == f64::NEG_INFINITY || s.value + delta(s) - lowest < -151.0 * LN_2;
    let p = |s: &Approx| if is_zero(s) { 0.0 } else { (s.value - max).exp() };
    let sum: f64 = logits.iter().map(p).sum();
    let drift = |s: &Approx| {
        if is_zero(s) {
            return 0.0;
        }
        // p (exp(delta) - 1), without 0 times infinity where delta is huge.
        let moved = if delta(s) < 1.0 { p(s) * delta(s).exp_m1() } else { (s.value - max + delta(s)).exp() };
        (moved * (1.0 + 4.0 * U) + 4.0 * U * p(s) + TINY * (highest - max).exp()) / sum
    };
    (logits.iter().map(|s| p(s) / sum).collect(), logits.iter().map(drift).collect())
}

/// The weights with their bounds: [`tolerance`] for values of 1 at the weight's key and 0 at the others, written out so
/// that all of them take no longer than one.
fn with_bounds(weight: &[f64], drift: &[f64]) -> Vec<Approx> {
    let live = weight.iter().zip(drift).filter(|(p, drift)| **p > 0.0 || **drift > 0.0).count();
    let total: f64 = drift.iter().sum();
    let bound = |p: f64, drift: f64| {
        let farthest = p.max(1.0 - p);
        let moved = drift * (1.0 - p) + (total - drift) * p;
        let drifted = if total < 1.0 { farthest.min(moved / (1.0 - total)) } else { farthest };
        drifted + gamma(2 * live + 3) * (p + drifted).min(1.0) + 2.0 * TINY
    };
    let entry = |(&p, &drift)| Approx { value: p, error: if p > 0.0 || drift > 0.0 { bound(p, drift) } else { 0.0 } };
    weight.iter().zip(drift).map(entry).collect()
}

/// `sum_j P_j v_j` by IEEE, infinities and NaN included, with its bound.
fn weighted_sum(weight: &[f64], drift: &[f64], v: &[Approx]) -> Approx {
    let value = weight.iter().zip(v).map(|(p, v)| p * v.value).sum::<f64>();
    // What the finite values may do besides: overflow the other way.
    let finite: Vec<Approx> = v.iter().map(|&v| if v.value.is_finite() { v } else { Approx::exact(0.0) }).collect();
    let each = |f: fn(&Approx) -> f64| finite.iter().map(f).collect::<Vec<f64>>();
    let bound = tolerance(weight, drift, &each(|v| v.value), &each(|v| v.error));
    let certain = value.is_nan() || (value.is_infinite() && bound.is_finite());
    Approx { value, error: if certain { 0.0 } else { bound } }
}

/// How far float32 may be from `y = sum_j P_j v_j`: the one place where the bound on an answer is derived.
///
/// Over the keys in use, `weight` is `P`, `drift` bounds `|p'_j - c p_j| / (c sum p)` (the unnormalised weight `p'`
/// that float32 finds against the right `p`, up to a factor `c` that all keys share), and float32 has the values only
/// to within `v_error`.
///
/// 1. *Drift of the softmax.* With exact arithmetic from `p'` on, `y' = sum p'_j v_j / sum p'_j`. Exactly, then, `y' -
///    y = sum (p'_j - c p_j)(v_j - y) / sum p'_j`, because `sum p_j (v_j - y) = 0`. With `sum p' >= c sum p (1 - sum
///    drift)`, where that is positive, `|y' - y| <= sum drift_j |v_j - y| / (1 - sum drift)`. `y'` is also a convex
///    combination of the `v_j`, so never farther from `y` than the farthest of them, however wrong the logits. A key
///    whose weight is surely 0 (`weight` and `drift` both 0) has no part in either.
/// 2. *Values.* They add `sum P'_j v_error_j`, and `P'` is a softmax that has drifted: step 1 with `v_error` in place
///    of `v`.
/// 3. *Rounding.* Of `k` keys, the sum of `p'` rounds `k - 1` times, its reciprocal, the product with `p'_j`, and in
///    between at most one more; then `k` for the product with `v_j` and the sum. Together `2k + 3` at most:
///    `gamma_{2k+3} sum P'_j (|v_j| + v_error_j)`, again by step 1, and at most the largest value. Zeros add exactly
///    and do not count.
/// 4. *Underflow.* Each normalised weight and each product may lose `2^-150`; `2^-149` leaves room for the roundings
///    after it.
/// 5. *Overflow.* Every partial sum is at most the sum of absolute values of step 3 with its rounding. Beyond the
///    largest float32 the answer may be anything, and the bound infinite; for values up to half of that it can't be.
#[must_use]
pub fn tolerance(weight: &[f64], drift: &[f64], v: &[f64], v_error: &[f64]) -> f64 {
    let keys: Vec<usize> = (0..v.len()).filter(|&j| weight[j] > 0.0 || drift[j] > 0.0).collect();
    let sum = |f: &dyn Fn(usize) -> f64| keys.iter().map(|&j| f(j)).sum::<f64>();
    let largest = |f: &dyn Fn(usize) -> f64| keys.iter().map(|&j| f(j)).fold(0.0, f64::max);
    let mean = |z: &dyn Fn(usize) -> f64| sum(&|j| weight[j] * z(j));
    let left = 1.0 - sum(&|j| drift[j]);
    // Step 1 for any z in place of v.
    let drifted = |z: &dyn Fn(usize) -> f64| {
        let y = mean(z);
        let farthest = largest(&|j| (z(j) - y).abs());
        if left > 0.0 { farthest.min(sum(&|j| drift[j] * (z(j) - y).abs()) / left) } else { farthest }
    };
    let error = |j: usize| v_error[j];
    let size = |j: usize| v[j].abs() + v_error[j];
    let mass = (mean(&size) + drifted(&size)).min(largest(&size));
    let rounding = gamma(2 * keys.len() + 3) * mass;
    let underflow = sum(&|j| if size(j) > 0.0 { TINY * (1.0 + size(j)) } else { 0.0 });
    if mass + rounding + underflow > f32::MAX.into() {
        return f64::INFINITY;
    }
    drifted(&|j| v[j]) + mean(&error) + drifted(&error) + rounding + underflow
}
