//! What holds for any input: weights are a distribution, Y stays inside V's range, columns are independent, and no size
//! makes a kernel touch what lies around its buffers.

mod common;
#[cfg(all(unix, target_pointer_width = "64"))]
#[path = "common/fence.rs"]
mod fence;

use common::{
    layers::{Call, Layer, WEIGHTS, assert_same, backends, random_layers},
    rng::Rng,
};
use synthesizer_attention::{
    Backend, Dense, Linear, Options, Random, Synthesizer,
    reference::{Bounded, Mask, Matrix, attend, dense_scores},
};

/// Every layer with X and V drawn for it, and keys for all rows.
fn drawn() -> Vec<(Box<dyn Layer>, Vec<f32>, Vec<f32>)> {
    let mut rng = Rng::new(1);
    let layers = random_layers::<35, 9, 18, 21, 5, 7, 6>(&mut rng);
    let draw = |mut layer: Box<dyn Layer>| {
        let sizes = layer.sizes();
        let (x, v) = (rng.vec(sizes.l * sizes.d, 2.0), rng.vec(sizes.l * sizes.m, 3.0));
        layer.project_keys(0, &x);
        (layer, x, v)
    };
    layers.into_iter().map(draw).collect()
}

#[test]
fn weights_are_distributions() {
    for (layer, x, v) in drawn() {
        for causal in [false, true] {
            let call = Call { layer: &*layer, x: &x, v: &v, mask: Mask { causal, ..Mask::default() } };
            for backend in backends() {
                for row in call.weights(backend).chunks(WEIGHTS) {
                    assert!(row.iter().all(|w| (0.0..=1.0 + 1e-6).contains(w)), "{}, {backend}", layer.name());
                    approx::assert_abs_diff_eq!(row.iter().sum::<f32>(), 1.0, epsilon = 4e-6);
                }
            }
        }
    }
}

#[test]
fn y_stays_inside_the_range_of_v() {
    for (layer, x, v) in drawn() {
        let (m, call) = (layer.sizes().m, Call::new(&*layer, &x, &v));
        let answer = call.answer();
        for backend in backends() {
            for (i, row) in call.run(backend).chunks(m).enumerate() {
                for (c, y) in row.iter().copied().enumerate() {
                    let column = || v.iter().skip(c).step_by(m).copied();
                    let (low, high) = (column().fold(f32::MAX, f32::min), column().fold(f32::MIN, f32::max));
                    let (y, bound) = (f64::from(y), answer.y.error.at(i, c));
                    let inside = y >= f64::from(low) - bound && y <= f64::from(high) + bound;
                    assert!(inside, "{}, {backend}: {y} outside {low} to {high}", layer.name());
                }
            }
        }
    }
}

/// A constant added to every score of a row cancels. Multiples of 1/64 leave the sums exact.
#[test]
fn scores_may_be_shifted() {
    let moved = |tensor: &str, shift: f32| {
        let mut layers = drawn();
        for (layer, ..) in &mut layers {
            for (name, values) in layer.tensors() {
                if name == tensor {
                    values.iter_mut().for_each(|b| *b = (*b * 64.0).round() / 64.0 + shift);
                }
            }
        }
        layers
    };
    let mut compared = 0;
    for (name, tensor) in [("dense", "b2"), ("random", "r"), ("mixture", "b2")] {
        for shift in [1000.0, -1000.0] {
            for ((plain, x, v), (shifted, ..)) in moved(tensor, 0.0).iter().zip(&moved(tensor, shift)) {
                if plain.name() != name {
                    continue;
                }
                let call = Call::new(&**plain, x, v);
                let shifted = Call { layer: &**shifted, ..call };
                let expected = Bounded { value: call.answer().y.value, error: shifted.answer().y.error };
                for backend in backends() {
                    let y = shifted.run(backend);
                    let checked = expected.check(&y, plain.sizes().m);
                    checked.unwrap_or_else(|e| panic!("{name} shifted by {shift}, {backend}: {e}"));
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 6 * backends().len());
}

#[test]
fn columns_of_v_are_independent() {
    for (layer, x, v) in drawn() {
        let m = layer.sizes().m;
        let reversed =
            |rows: &[f32]| -> Vec<f32> { rows.chunks(m).flat_map(|row| row.iter().rev().copied()).collect() };
        let backwards = reversed(&v);
        for causal in [false, true] {
            let call = Call { layer: &*layer, x: &x, v: &v, mask: Mask { causal, ..Mask::default() } };
            for backend in backends() {
                let y = Call { v: &backwards, ..call }.run(backend);
                assert_same(&reversed(&call.run(backend)), &y, &format!("{}, {backend}", layer.name()));
            }
        }
    }
}

/// A key that is masked, and one that is not given, count alike.
#[test]
fn padding_does_not_leak() {
    for (layer, x, v) in drawn() {
        let (sizes, keys) = (layer.sizes(), 19);
        let padding: Vec<bool> = (0..sizes.l).map(|j| j < keys).collect();
        let call = Call::new(&*layer, &x, &v);
        let fewer = Call { v: &v[..keys * sizes.m], ..call };
        let padded = Call { mask: Mask { keys: Some(&padding), ..Mask::default() }, ..call };
        for backend in backends() {
            let what = format!("{}, {backend}", layer.name());
            fewer.answer().check(&padded.run(backend)).unwrap_or_else(|e| panic!("{what}, padded: {e}"));
            fewer.answer().check(&fewer.run(backend)).unwrap_or_else(|e| panic!("{what}, fewer keys: {e}"));
        }
    }
}

/// Every set of rows that have scores of -inf alone, which several to a vector must tell apart.
fn rows_without_a_key<const L: usize>() {
    for without in 0..1_u32 << L {
        let mut r = Rng::new(3).array::<L, L>(1.0);
        let has_key = |i: usize| without >> i & 1 == 0;
        (0..L).filter(|i| !has_key(*i)).for_each(|i| r[i] = [f32::NEG_INFINITY; L]);
        for backend in backends() {
            let (mut y, mut scratch) = ([[f32::NAN; 2]; L], [f32::NAN; 512]);
            let options = Options::new().backend(backend);
            Random::<L, 1>::new(&r)
                .forward_with(&options, &[[0.0]; L], &[[1.0, 2.0]; L], &mut y, &mut scratch)
                .unwrap();
            for (i, y) in y.iter().enumerate() {
                let expected = if has_key(i) { [1.0, 2.0] } else { [0.0; 2] };
                approx::assert_abs_diff_eq!(y[..], expected[..], epsilon = if has_key(i) { 1e-6 } else { 0.0 });
            }
        }
    }
}

#[test]
fn rows_without_a_key_are_zeros() {
    rows_without_a_key::<1>();
    rows_without_a_key::<2>();
    rows_without_a_key::<3>();
    rows_without_a_key::<4>();
    rows_without_a_key::<5>();
    rows_without_a_key::<8>();
}

/// Each key masked in turn, its row of V NaN, in a causal call of M columns.
fn masked_nan<const M: usize>() {
    const L: usize = 11;
    let mut rng = Rng::new(4);
    let (r, v) = (rng.array::<L, L>(1.0), rng.array::<L, M>(1.0));
    for masked in 0..L {
        let (mut v, mut seen) = (v.clone(), [true; L]);
        (v[masked], seen[masked]) = ([f32::NAN; M], false);
        for backend in backends() {
            let (mut y, mut scratch) = ([[f32::NAN; M]; L], [f32::NAN; Random::<L, 1>::SCRATCH]);
            let options = Options::new().backend(backend).causal().key_mask(&seen);
            Random::<L, 1>::new(&r).forward_with(&options, &[[0.0]; L], &v[..], &mut y, &mut scratch).unwrap();
            assert!(y.as_flattened().iter().all(|y| y.is_finite()), "{backend}, M = {M}, key {masked}: {y:?}");
        }
    }
}

#[test]
fn masked_keys_stay_out_of_causal_products() {
    masked_nan::<1>();
    masked_nan::<3>();
    masked_nan::<5>();
    masked_nan::<40>();
}

/// A weight so large that its rows are fetched ahead.
#[test]
fn large_products() {
    const D: usize = 260;
    let mut rng = Rng::new(5);
    let (w, x) = (rng.array::<D, D>(1.0 / 16.0), rng.rows::<D>(7, 1.0));
    for backend in backends() {
        let mut y = [[f32::NAN; D]; 7];
        Linear::without_bias(&w).forward_with(&Options::new().backend(backend), &x, &mut y).unwrap();
        for (x, y) in x.iter().zip(&y) {
            for (j, y) in y.iter().enumerate() {
                let exact: f64 = x.iter().zip(w.iter()).map(|(x, w)| f64::from(*x) * f64::from(w[j])).sum();
                approx::assert_abs_diff_eq!(f64::from(*y), exact, epsilon = 2e-5);
            }
        }
    }
}

/// A Dense layer of these sizes, `D = H = M = N`, with few keys and with all. So many rows of Y are before and after
/// those that a call is given, and as many times 31 floats around its scratch.
fn of_size<const L: usize, const N: usize>(around: usize) {
    let mut rng = Rng::new(N as u64);
    let (w1, w2) = (rng.array::<N, N>(1.0 / (N as f32).sqrt()), rng.array::<N, L>(1.0 / (N as f32).sqrt()));
    let (b1, b2) = (rng.array::<1, N>(0.1), rng.array::<1, L>(0.1));
    let (x, v) = (rng.rows::<N>(L + 1, 1.0), rng.rows::<N>(L, 1.0));
    let layer = Dense::new(&w1, &b1[0], &w2, &b2[0]);
    let [m1, m2] = [Matrix::from_rows(&*w1), Matrix::from_rows(&*w2)];
    let scores = dense_scores(&Matrix::from_rows(&x), &m1, Some(&b1[0]), &m2, Some(&b2[0]));
    for keys in [1, N.min(L), L - 1, L] {
        let v = v[..keys].to_vec();
        for causal in [false, true] {
            let mask = Mask { causal, ..Mask::default() };
            for rows in [1, 2, L, L + 1] {
                let x = x[..rows].to_vec();
                let few = Bounded { value: top(&scores.value, rows), error: top(&scores.error, rows) };
                let answer = attend(&few, &Matrix::from_rows(&v), &mask);
                for backend in Backend::available() {
                    let options = Options::new().backend(backend);
                    let options = if causal { options.causal() } else { options };
                    let mut y = vec![[7.5; N]; rows + 2 * around];
                    let mut scratch = vec![7.5; Dense::<L, N, N>::SCRATCH + 2 * 31 * around];
                    let (inside, floats) = (around..around + rows, 31 * around..scratch.len() - 31 * around);
                    let done =
                        layer.forward_with(&options, &x, &v, &mut y[inside.clone()], &mut scratch[floats.clone()]);
                    done.unwrap();
                    let what = format!("L {L}, D = H = M = {N}, {keys} keys, {rows} rows, causal: {causal}, {backend}");
                    let outside = [&y[..inside.start], &y[inside.end..]].map(<[_]>::as_flattened);
                    let outside = outside.into_iter().chain([&scratch[..floats.start], &scratch[floats.end..]]);
                    let untouched = outside.flatten().all(|guard| *guard == 7.5);
                    assert!(untouched, "{what}: something outside was written");
                    let checked = answer.check(y[inside].as_flattened());
                    checked.unwrap_or_else(|e| panic!("{what}: {e}"));
                }
            }
        }
    }
}

fn top(matrix: &Matrix, rows: usize) -> Matrix {
    Matrix::from_fn(rows, matrix.cols(), |i, j| matrix.at(i, j))
}

/// Every size modulo the widest vector; more than 32 scores, so that all of these share their kernels.
const TAILS: [fn(usize); 19] = [
    of_size::<33, 1>,
    of_size::<34, 2>,
    of_size::<35, 3>,
    of_size::<36, 4>,
    of_size::<37, 5>,
    of_size::<38, 6>,
    of_size::<39, 7>,
    of_size::<40, 8>,
    of_size::<41, 9>,
    of_size::<42, 10>,
    of_size::<43, 11>,
    of_size::<44, 12>,
    of_size::<45, 13>,
    of_size::<46, 14>,
    of_size::<47, 15>,
    of_size::<48, 16>,
    of_size::<49, 17>,
    of_size::<65, 33>,
    of_size::<63, 47>,
];

/// Layers small enough for a kernel of their own, which compile for longer.
const SMALL: [fn(usize); 6] =
    [of_size::<2, 1>, of_size::<3, 17>, of_size::<7, 8>, of_size::<15, 16>, of_size::<17, 15>, of_size::<32, 31>];

#[test]
fn every_tail() {
    backends();
    TAILS.iter().for_each(|check| check(1));
}

#[test]
fn small_sizes() {
    backends();
    SMALL.iter().for_each(|check| check(1));
}

#[cfg(all(unix, target_pointer_width = "64"))]
mod pages {
    use super::{
        SMALL, TAILS, backends,
        common::STRIDE,
        fence::{Fence, fenced},
    };

    #[global_allocator]
    static FENCE: Fence = Fence;

    /// Every buffer, the weights among them, starts after an unmapped page or ends before one.
    #[test]
    fn nothing_outside_the_buffers_is_touched() {
        backends();
        let sizes = || TAILS.iter().chain(&SMALL).step_by(STRIDE.min(3)); // odd: every remainder by a vector's lanes
        fenced(|_| sizes().for_each(|check| check(0)));
    }
}
