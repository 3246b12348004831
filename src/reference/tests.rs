#![allow(clippy::float_cmp, reason = "worked by hand and exact, or exactly what the contract says")]

use std::{vec, vec::Vec};

use super::*;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn answer(scores: &[f32], v: &[f32], mask: &Mask<'_>) -> Answer {
    let scores = Matrix::from_f32(1, scores.len(), scores);
    attend(&random_scores(&scores, 0, 1), &Matrix::from_f32(v.len(), 1, v), mask)
}

/// The one entry of `Y`, with its bound, for one query and values one wide.
fn one(scores: &[f32], v: &[f32]) -> (f64, f64) {
    let y = answer(scores, v, &Mask::default()).y;
    (y.value.at(0, 0), y.error.at(0, 0))
}

#[test]
fn dense_worked_by_hand() {
    // Hidden: relu(1 - 2, 3 + 1) = (0, 4). Scores: (4 * 0.5, 4 * -1 + 2) = (2, -2).
    let x = Matrix::from_rows(&[[1.0]]);
    let w1 = Matrix::from_rows(&[[1.0, 3.0]]);
    let w2 = Matrix::from_rows(&[[7.0, 9.0], [0.5, -1.0]]);
    let scores = dense_scores(&x, &w1, Some(&[-2.0, 1.0]), &w2, Some(&[0.0, 2.0]));
    assert_eq!(scores.value.row(0), [2.0, -2.0]);
    let y = attend(&scores, &Matrix::from_rows(&[[1.0], [0.0]]), &Mask::default()).y;
    assert!((y.value.at(0, 0) - 1.0 / (1.0 + f64::exp(-4.0))).abs() < 1e-15);
}

#[test]
fn factorized_dense_takes_every_pair_once() {
    // Biases alone: A = (2, 3, 5), C = (7, 11).
    let x = Matrix::from_rows(&[[1.0]]);
    let (w1, a, c) = (Matrix::from_rows(&[[0.0]]), Matrix::from_rows(&[[0.0; 3]]), Matrix::from_rows(&[[0.0; 2]]));
    let scores =
        factorized_dense_scores(&x, (&w1, None, &a, Some(&[2.0, 3.0, 5.0])), (&w1, None, &c, Some(&[7.0, 11.0])));
    assert_eq!(scores.value.row(0), [14.0, 21.0, 35.0, 22.0, 33.0, 55.0]);
}

#[test]
fn dot_product_and_mixture_worked_by_hand() {
    let x = Matrix::from_rows(&[[1.0, 0.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0]]);
    let identity = Matrix::from_fn(4, 4, |i, j| f64::from(i == j));
    let dot = dot_product_scores(&x, &x, &identity, None, &identity, None, 3);
    assert_eq!(dot.value, Matrix::from_rows(&[[0.5, 0.5, 0.0], [0.5, 2.5, 0.0]]));
    let mixed = mixture_scores(&[(2.0, &dot), (-1.0, &dot)]);
    assert_eq!(mixed.value, dot.value);
    let r1 = Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(factorized_random_scores(&r1, &r1, 1, 1).value.row(0), [11.0, 25.0]);
}

#[test]
fn masks() {
    let [scores, v] = [[0.0; 3], [1.0, 3.0, NAN]];
    let causal = |first| answer(&scores, &v, &Mask { causal: true, first, keys: None }).y.value.at(0, 0);
    assert_eq!((causal(0), causal(1)), (1.0, 2.0));
    assert!(causal(2).is_nan());
    let keys = |keys: &[bool]| answer(&scores, &v, &Mask { keys: Some(keys), ..Mask::default() }).y.value.at(0, 0);
    assert_eq!(keys(&[false, true, false]), 3.0);
    assert_eq!(keys(&[false; 3]), 0.0);
}

#[test]
fn special_values() {
    let nan = |(y, bound): (f64, f64)| y.is_nan() && bound == 0.0;
    assert!(nan(one(&[0.0, NAN], &[1.0, 1.0])));
    assert!(nan(one(&[0.0, INF], &[1.0, 1.0])));
    assert_eq!(one(&[-INF, -INF], &[NAN, 1.0]), (0.0, 0.0));
    assert_eq!(one(&[0.0, -INF], &[3.0, 1.0]).0, 3.0);
    assert_eq!(one(&[0.0, -200.0], &[3.0, 1.0]).0, 3.0);
    assert_eq!(one(&[f32::MAX, -f32::MAX], &[3.0, 1.0]).0, 3.0);
    // Weight 0 meets a NaN or an infinity.
    assert!(nan(one(&[0.0, -INF], &[3.0, INF])));
    assert!(nan(one(&[0.0, -200.0], &[3.0, INF])));
    assert!(nan(one(&[0.0, -200.0], &[3.0, NAN])));
    // A weight that surely isn't 0, one that may be, and two infinities.
    assert_eq!(one(&[0.0, -50.0], &[3.0, INF]), (f64::INFINITY, 0.0));
    assert_eq!(one(&[0.0, -103.5], &[3.0, -INF]).1, f64::INFINITY);
    assert!(nan(one(&[0.0, 0.0], &[INF, -INF])));
    // The largest values may overflow in the sum, half of them can't.
    assert_eq!(one(&[0.0, 0.0], &[f32::MAX, f32::MAX]).1, f64::INFINITY);
    assert!(one(&[0.0, 0.0], &[f32::MAX / 2.0, f32::MAX / -2.0]).1 < 1e33);
    // No keys, no queries.
    let none = Matrix::from_f32(0, 2, &[]);
    assert_eq!(
        attend(&random_scores(&Matrix::from_rows(&[[1.0]]), 0, 1), &none, &Mask::default()).y.value.row(0),
        [0.0; 2]
    );
    assert_eq!(attend(&(&none).into(), &none, &Mask::default()).y.rows(), 0);
}

#[test]
fn scores_that_float32_may_not_find() {
    let rows = |w: &[[f32; 2]; 2]| {
        let one = Matrix::from_rows(&[[1.0, 1.0]]);
        let scores =
            dense_scores(&one, &Matrix::from_rows(&[[1.0, 0.0], [0.0, 1.0]]), None, &Matrix::from_rows(w), None);
        [0, 1].map(|j| (scores.value.at(0, j), scores.error.at(0, j)))
    };
    let [overflow, fine] = rows(&[[3e38, 1.0], [3e38, -1.0]]);
    assert_eq!(overflow.1, f64::INFINITY);
    assert!(fine.0 == 0.0 && fine.1 < 1e-5);
    let [inf, nan] = rows(&[[INF, INF], [1.0, -INF]]);
    assert_eq!(inf, (f64::INFINITY, 0.0));
    assert!(nan.0.is_nan() && nan.1 == 0.0);
    // 1e-30 * 1e-30 is 0 in float32 and not in float64; times an infinity that is NaN or infinity.
    let tiny = Matrix::from_rows(&[[1e-30]]);
    let scores = dense_scores(&tiny, &tiny, None, &Matrix::from_rows(&[[INF]]), None);
    assert!(scores.uncertain(0));
    // relu(NaN) is NaN, relu of a negative infinity is 0.
    let relu = relu(&(&Matrix::from_rows(&[[NAN, -INF, -1.0]])).into());
    assert!(relu.value.at(0, 0).is_nan() && relu.value.row(0)[1..] == [0.0, 0.0]);
}

#[test]
fn a_weight_is_the_answer_for_a_unit_vector() {
    let scores = [0.0, -1.0, 2.0, -90.0, -102.0, -300.0, 1.5];
    let weights = answer(&scores, &[0.0; 7], &Mask::default()).weights;
    for j in 0..scores.len() {
        let mut unit = [0.0; 7];
        unit[j] = 1.0;
        let (y, bound) = one(&scores, &unit);
        assert_eq!(y, weights.value.at(0, j));
        assert!((bound - weights.error.at(0, j)).abs() <= 1e-12 * bound, "key {j}: {bound:e}");
    }
}

#[test]
fn check_says_what_is_wrong() {
    let y = answer(&[0.0, 0.0], &[1.0, 2.0], &Mask::default());
    assert_eq!(y.check(&[1.5]), Ok(0.0));
    assert!(y.check(&[1.500_000_1]).unwrap() > 0.0);
    let wrong = y.check(&[1.6]).unwrap_err();
    assert_eq!((wrong.row, wrong.column, wrong.expected, wrong.found), (0, 0, 1.5, 1.6));
    assert!(y.check(&[NAN]).is_err() && y.check(&[INF]).is_err());
    assert!(y.check_weights(&[0.5, 0.5, 9.0], 3).is_ok());
    assert!(y.check_weights(&[0.5, 0.4], 2).is_err());
    let nothing = answer(&[0.0], &[1.0], &Mask { keys: Some(&[false]), ..Mask::default() });
    assert!(nothing.check(&[0.0]).is_ok() && nothing.check(&[f32::from_bits(1)]).is_err());
    assert!(answer(&[NAN], &[1.0], &Mask::default()).check(&[0.0]).is_err());
}

/// `SplitMix64`; the sum of four uniform numbers stands in for a normal one.
struct Draw {
    state: u64,
    /// How often one of `EXTREMES` takes a number's place.
    wild: f32,
}

const EXTREMES: [f32; 12] = [NAN, INF, -INF, 0.0, -0.0, 1e-45, -1e-45, 1e-30, 3e38, -3e38, f32::MAX, f32::MIN];

impl Draw {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    fn number(&mut self) -> f32 {
        (0..4).map(|_| self.uniform() - 0.5).sum::<f32>() * 1.7
    }

    fn vec(&mut self, len: usize, scale: f32) -> Vec<f32> {
        let extreme = |draw: &mut Self| EXTREMES[usize::from(draw.next().to_le_bytes()[0]) % EXTREMES.len()];
        (0..len).map(|_| if self.uniform() < self.wild { extreme(self) } else { scale * self.number() }).collect()
    }
}

type Dot = fn(&[f32], &[f32]) -> f32;

/// Orders in which a float32 sum of products may be taken.
const ORDERS: [Dot; 4] = [
    |a, b| a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b),
    |a, b| a.iter().zip(b).fold(0.0, |sum, (a, b)| a.mul_add(*b, sum)),
    |a, b| a.iter().zip(b).rev().fold(0.0, |sum, (a, b)| sum + a * b),
    |a, b| {
        let lanes = |l: usize| (l..a.len()).step_by(4).fold(0.0, |sum, k| a[k].mul_add(b[k], sum));
        (lanes(0) + lanes(2)) + (lanes(1) + lanes(3))
    },
];

/// Sizes of a random dense layer, its scales, and the share of its numbers that are the format's extremes instead.
struct Layer {
    sizes: [usize; 5],
    x: f32,
    gain: f32,
    v: f32,
    wild: f32,
}

/// The worst error of a float32 dense layer in each order of summation, in units of its bound, `Y`'s and the weights';
/// and the number of entries that may be anything.
fn worst_of(layer: &Layer, draw: &mut Draw) -> (f64, usize) {
    let [n, d, h, l, m] = layer.sizes;
    draw.wild = layer.wild;
    let x = draw.vec(n * d, layer.x);
    let w1 = draw.vec(d * h, 1.0 / (d as f32).sqrt());
    let b1 = draw.vec(h, 0.1 * layer.x);
    let w2 = draw.vec(h * l, layer.gain / (h as f32).sqrt());
    let b2 = draw.vec(l, 0.1 * layer.gain);
    let v = draw.vec(n * m, layer.v);
    let mask = Mask { causal: draw.next().is_multiple_of(2), ..Mask::default() };
    let [x64, w1_64, w2_64, v64] =
        [(n, d, &x), (d, h, &w1), (h, l, &w2), (n, m, &v)].map(|(rows, cols, data)| Matrix::from_f32(rows, cols, data));
    let answer = attend(&dense_scores(&x64, &w1_64, Some(&b1), &w2_64, Some(&b2)), &v64, &mask);
    let anything = (0..n).flat_map(|i| answer.y.error.row(i)).filter(|bound| bound.is_infinite()).count();

    let column = |w: &[f32], cols: usize, j: usize| w.iter().skip(j).step_by(cols).copied().collect::<Vec<_>>();
    let worst = ORDERS.iter().fold(0.0, |worst, dot| {
        let (mut y, mut weights) = (Vec::new(), vec![0.0; n * n]);
        for i in 0..n {
            let relu = |x: f32| if x < 0.0 { 0.0 } else { x };
            let hidden: Vec<f32> = (0..h).map(|j| relu(dot(&x[i * d..][..d], &column(&w1, h, j)) + b1[j])).collect();
            let seen = if mask.causal { i + 1 } else { n };
            let scores: Vec<f32> = (0..seen).map(|j| dot(&hidden, &column(&w2, l, j)) + b2[j]).collect();
            let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            if max == f32::NEG_INFINITY && scores.iter().all(|s| !s.is_nan()) {
                y.extend(vec![0.0; m]);
                continue;
            }
            let p: Vec<f32> = scores.iter().map(|s| (s - max).exp()).collect();
            let sum = dot(&p, &vec![1.0; seen]);
            let row = &mut weights[i * n..][..seen];
            row.iter_mut().zip(&p).for_each(|(w, p)| *w = p * (1.0 / sum));
            y.extend((0..m).map(|c| dot(row, &column(&v, m, c)[..seen])));
        }
        let of_y = answer.check(&y).unwrap_or_else(|e| panic!("{:?}: {e}", layer.sizes));
        let of_weights =
            answer.check_weights(&weights, n).unwrap_or_else(|e| panic!("{:?}, weights: {e}", layer.sizes));
        f64::max(worst, of_y.max(of_weights))
    });
    (worst, anything)
}

const SIZES: [[usize; 5]; 5] =
    [[1, 1, 1, 1, 1], [3, 5, 4, 7, 2], [8, 8, 8, 8, 8], [17, 19, 23, 20, 7], [33, 8, 16, 33, 9]];

#[test]
fn bounds_hold_and_say_something() {
    let mut draw = Draw { state: 7, wild: 0.0 };
    for (x, gain, v) in [
        (1.0, 1.0, 1.0),
        (1.0, 30.0, 1.0),
        (1.0, 3000.0, 1.0),
        (1.0, 1e20, 1.0),
        (1e-15, 1e15, 1e30),
        (1e-25, 1e-15, 1e-40),
        (1e20, 1e-20, 1e37),
        (1e15, 1e20, 1e-44),
    ] {
        let worst = (0..40).fold(0.0, |worst, round| {
            let layer = Layer { sizes: SIZES[round % SIZES.len()], x, gain, v, wild: 0.0 };
            let (ratio, anything) = worst_of(&layer, &mut draw);
            assert_eq!(anything, 0);
            f64::max(worst, ratio)
        });
        std::println!("x {x:e}, gain {gain:e}, v {v:e}: {worst:.3} of the bound");
        // A bound of the worst case over every order; ordinary data must use a fair part of it. (Past a gain of 1e4 one
        // key has all the weight, and the answer is exact.)
        assert!(worst > 0.01 || gain > 1e4 || x < 1.0, "the bound is {:e} times the worst error", 1.0 / worst);
    }
}

#[test]
fn extremes_of_the_format_are_the_right_kind_of_answer() {
    let rounds = if cfg!(target_arch = "x86_64") { 2000 } else { 200 }; // elsewhere tests run emulated
    let mut draw = Draw { state: 11, wild: 0.0 };
    for (wild, gain) in [(0.002, 1.0), (0.01, 1.0), (0.01, 40.0), (0.05, 100.0), (0.3, 1e20)] {
        let (mut anything, mut entries) = (0, 0);
        for round in 0..rounds {
            let sizes = SIZES[round % 4];
            anything += worst_of(&Layer { sizes, x: 1.0, gain, v: 1.0, wild }, &mut draw).1;
            entries += sizes[0] * sizes[4];
        }
        std::println!("{wild} extremes, gain {gain:e}: {anything} of {entries} entries may be anything");
        assert!(anything > 0 && anything * 2 < entries);
    }
}
