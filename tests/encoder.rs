//! Encoder blocks and their parts: against PyTorch, and each part against float64.
#![allow(clippy::float_cmp, reason = "what must be equal to the bit")]

mod common;
#[cfg(all(unix, target_pointer_width = "64"))]
#[path = "common/fence.rs"]
mod fence;

use common::{
    STRIDE,
    golden::{self, Case, Errors},
    heads::{Block, EncoderWeights},
    pinned::{Hash, Set, assert_pinned},
    rng::Rng,
};
use synthesizer_attention::{
    Activation, Backend, EncoderBlock, Error, Gelu, GeluTanh, Identity, LayerNorm, Linear, MultiHead, Norm, Options,
    Relu, RmsNorm, mean_pool, residual,
};

fn run<const L: usize, const D: usize, const K: usize, const HEADS: usize, const F: usize>(
    case: &Case,
    options: &Options<'_>,
) -> Vec<f32> {
    let weights = EncoderWeights::<L, D, K, HEADS, F>::load(&mut |name, rows, cols| case.weights(name, rows, cols));
    let mut x = golden::rows::<D>(&case.flat("x"));
    let scratch = &mut vec![f32::NAN; Block::<L, D, K, HEADS, F, LayerNorm<'_, D>, Relu>::SCRATCH];
    match case.variant.as_str() {
        "encoder_block_post_layer_relu_causal" => {
            weights.post(weights.layer_norms(), Relu).forward_with(options, &mut x, scratch)
        }
        "encoder_block_pre_rms_gelu_causal" => {
            weights.pre(weights.rms_norms(), Gelu).forward_with(options, &mut x, scratch)
        }
        "encoder_block_pre_layer_gelu_tanh_causal" => {
            weights.pre(weights.layer_norms(), GeluTanh).forward_with(options, &mut x, scratch)
        }
        variant => panic!("an unknown variant: {variant}"),
    }
    .unwrap();
    x.as_flattened().to_vec()
}

#[test]
fn golden_cases() {
    check_golden_cases();
}

fn check_golden_cases() {
    let cases = golden::cases(&["encoder_block"]);
    assert_eq!(cases.len(), 9);
    let mut hashes = Vec::new();
    for backend in Backend::available() {
        let options = Options::new().causal().backend(backend);
        let (mut errors, mut hash) = (Errors::default(), Hash::default());
        for case in &cases {
            let y = match ["N", "d", "heads", "f"].map(|size| case.size(size)) {
                [8, 8, 2, 16] => run::<8, 8, 4, 2, 16>(case, &options),
                [29, 32, 4, 64] => run::<29, 32, 8, 4, 64>(case, &options),
                [33, 20, 5, 36] => run::<33, 20, 4, 5, 36>(case, &options),
                sizes => panic!("{}: no instance of {sizes:?}", case.name),
            };
            errors.add(case, &y);
            hash.add(&y);
        }
        println!("{backend}\n{errors}");
        errors.assert_within(1.25, 4.0);
        hashes.push((backend, hash));
    }
    assert_pinned(Set::Encoders, &hashes);
}

const L: usize = 37;
const D: usize = 12;
const F: usize = 21;

type Small = EncoderWeights<L, D, 4, 3, F>;
type SmallBlock<'a> = Block<'a, L, D, 4, 3, F, LayerNorm<'a, D>, Relu>;

fn small() -> (Small, Vec<[f32; D]>) {
    let mut rng = Rng::new(12);
    (Small::load(&mut |name, rows, cols| Some(rng.weights(name, rows, cols))), rng.rows(L, 1.0))
}

fn bits<const C: usize>(rows: &[[f32; C]]) -> Vec<u32> {
    rows.as_flattened().iter().map(|x| x.to_bits()).collect()
}

/// A block is its parts, one after the other, to the bit.
#[test]
fn blocks_are_their_parts() {
    let (weights, start) = small();
    let mut scratch = vec![f32::NAN; SmallBlock::SCRATCH];
    for backend in Backend::available() {
        let options = Options::new().causal().backend(backend);
        let (layer_norms, rms_norms) = (weights.layer_norms(), weights.rms_norms());
        let mut found = start.clone();
        weights.post(layer_norms, Relu).forward_with(&options, &mut found, &mut scratch).unwrap();
        let expected = weights.by_parts(layer_norms, Relu, false, &options, &start);
        assert_eq!(bits(&found), bits(&expected), "{backend}, post-norm");

        let mut found = start.clone();
        weights.pre(rms_norms, Gelu).forward_with(&options, &mut found, &mut scratch).unwrap();
        let expected = weights.by_parts(rms_norms, Gelu, true, &options, &start);
        assert_eq!(bits(&found), bits(&expected), "{backend}, pre-norm");
    }
}

#[test]
fn steps_give_the_whole() {
    let (weights, start) = small();
    let mut scratch = vec![f32::NAN; SmallBlock::SCRATCH];
    for backend in Backend::available() {
        let options = Options::new().backend(backend).causal();
        for pre in [false, true] {
            let run =
                |options: &Options<'_>, x: &mut [[f32; D]], values: Option<&mut [[f32; D]]>, scratch: &mut [f32]| {
                    let block = if pre {
                        weights.pre(weights.layer_norms(), Relu)
                    } else {
                        weights.post(weights.layer_norms(), Relu)
                    };
                    match values {
                        None => block.forward_with(options, x, scratch),
                        Some(values) => block.forward_cached(options, x, values, scratch),
                    }
                    .unwrap();
                };
            let mut whole = start.clone();
            run(&options, &mut whole, None, &mut scratch);
            for step in [1, 3, L] {
                let mut values = [[f32::NAN; D]; L];
                let mut x = start.clone();
                for (i, rows) in x.chunks_mut(step).enumerate() {
                    run(&options.first(i * step), rows, Some(&mut values), &mut scratch);
                }
                assert_eq!(bits(&x), bits(&whole), "{backend}, pre-norm {pre}, {step} rows a step");
            }
            for rows in [1, 2, 5, 64] {
                let mut x = start.clone();
                run(&options, &mut x, None, &mut vec![f32::NAN; SmallBlock::scratch_len(rows)]);
                assert_eq!(bits(&x), bits(&whole), "{backend}, pre-norm {pre}, scratch for {rows} rows");
            }
        }
    }
}

/// No value projection: V is the rows themselves, which are replaced while later ones still need them.
#[test]
fn values_outlive_the_rows() {
    let (weights, start) = small();
    let one: [[f32; D]; D] = std::array::from_fn(|i| std::array::from_fn(|j| f32::from(u8::from(i == j))));
    let (heads, output) = (weights.attention.heads(), weights.attention.output());
    let [norm1, norm2] = weights.layer_norms();
    let bare = EncoderBlock::post_norm(
        MultiHead::new(heads, Identity::new(), output),
        norm1,
        weights.feed_forward(Relu),
        norm2,
    );
    let with_one = EncoderBlock::post_norm(
        MultiHead::new(heads, Linear::without_bias(&one), output),
        norm1,
        weights.feed_forward(Relu),
        norm2,
    );
    let (mut x, mut y) = (start.clone(), start);
    // scratch for one row at a time: the first is replaced before the second is looked at
    bare.forward(&mut x, &mut vec![0.0; SmallBlock::scratch_len(1)]).unwrap();
    with_one.forward(&mut y, &mut vec![0.0; SmallBlock::scratch_len(1)]).unwrap();
    assert_eq!(bits(&x), bits(&y));
}

#[test]
fn refusals() {
    let (weights, mut x) = small();
    let block = weights.post(weights.layer_norms(), Relu);
    let mut scratch = vec![0.0; SmallBlock::SCRATCH];
    let options = Options::new();
    let mut long = vec![[1.0; D]; L + 1];
    assert_eq!(block.forward(&mut long, &mut scratch), Err(Error::Keys { given: L + 1, most: L }));
    let needed = SmallBlock::scratch_len(1);
    let few = Err(Error::Scratch { given: needed - 1, needed });
    assert_eq!(block.forward(&mut long[..3], &mut scratch[..needed - 1]), few);
    let mask = Err(Error::KeyMask { given: 1, needed: 3 });
    assert_eq!(block.forward_with(&options.key_mask(&[true]), &mut long[..3], &mut scratch), mask);
    let mut values = [[1.0; D]; 2];
    let cache = Err(Error::Keys { given: 3, most: 2 });
    assert_eq!(block.forward_cached(&options, &mut long[..3], &mut values, &mut scratch), cache);
    assert!(long.iter().chain(&values).all(|row| *row == [1.0; D]), "nothing is written");
    block.forward(&mut [], &mut scratch).unwrap();

    let rows = Err(Error::Rows { given: 2, needed: 3 });
    let [norm, _] = weights.layer_norms();
    assert_eq!(norm.forward(&options, &x[..3], &mut long[..2]), rows);
    assert_eq!(weights.feed_forward(Gelu).forward(&options, &x[..3], &mut long[..2], &mut scratch), rows);
    let feed_forward = weights.feed_forward(Gelu).forward(&options, &x[..3], &mut long[..3], &mut []);
    assert!(matches!(feed_forward, Err(Error::Scratch { given: 0, .. })));
    assert_eq!(residual(&options, &long[..3], &mut x[..2]), rows);
    assert_eq!(mean_pool(&options.key_mask(&[true]), &x[..3], &mut [0.0; D]), mask);
}

/// PyTorch's layer norm in float64.
fn layer_norm(x: &[f32], eps: f64) -> Vec<f64> {
    let mean = x.iter().copied().map(f64::from).sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / x.len() as f64;
    x.iter().map(|x| (f64::from(*x) - mean) / (variance + eps).sqrt()).collect()
}

fn check_norms<const D: usize>(rng: &mut Rng, backend: Backend) {
    let options = Options::new().backend(backend);
    for offset in [0.0, 1.0, -300.0, 1e6] {
        let x: Vec<[f32; D]> = rng.rows::<D>(3, 1.0).iter().map(|row| row.map(|x| x + offset)).collect();
        let mut y = vec![[f32::NAN; D]; 3];
        LayerNorm::plain().forward(&options, &x, &mut y).unwrap();
        for (x, y) in x.iter().zip(&y) {
            for (y, expected) in y.iter().zip(layer_norm(x, 1e-5)) {
                let error = (f64::from(*y) - expected).abs();
                assert!(error < 1e-6 * (1.0 + expected.abs()), "{backend}, {D} wide, {offset}: {y} for {expected}");
            }
        }
        RmsNorm::plain(1e-6).forward(&options, &x, &mut y).unwrap();
        for (x, y) in x.iter().zip(&y) {
            let square = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / D as f64;
            for (x, y) in x.iter().zip(y) {
                let expected = f64::from(*x) / (square + 1e-6).sqrt();
                assert!(
                    (f64::from(*y) - expected).abs() < 1e-6 * expected.abs(),
                    "{backend}, {D} wide: {y}, {expected}"
                );
            }
        }
    }
}

/// An offset of a million times the spread included.
#[test]
fn norms() {
    let mut rng = Rng::new(2);
    for backend in Backend::available() {
        check_norms::<1>(&mut rng, backend);
        check_norms::<3>(&mut rng, backend);
        check_norms::<4>(&mut rng, backend);
        check_norms::<15>(&mut rng, backend);
        check_norms::<16>(&mut rng, backend);
        check_norms::<17>(&mut rng, backend);
        check_norms::<33>(&mut rng, backend);
        check_norms::<200>(&mut rng, backend);
    }
}

#[test]
fn norm_of_equal_numbers_is_the_bias_and_nan_stays_in_its_row() {
    let (weight, bias) = ([2.0; 5], [1.0, 2.0, 3.0, 4.0, 5.0]);
    for backend in Backend::available() {
        let x = [[7.0; 5], [0.0, f32::NAN, 0.0, 1.0, 2.0], [0.0; 5]];
        let mut y = [[0.0; 5]; 3];
        LayerNorm::new(&weight, &bias).forward(&Options::new().backend(backend), &x, &mut y).unwrap();
        assert_eq!([y[0], y[2]], [bias; 2], "{backend}");
        assert!(y[1].iter().all(|y| y.is_nan()), "{backend}");
    }
}

/// The worst error of a GELU over every thousandth float32 of any size, relative to |x|, in units of 2^-24.
fn worst<A: Activation>(backend: Backend, exact: fn(f64) -> f64) -> f64 {
    let options = Options::new().backend(backend);
    let mut worst = 0.0_f64;
    for sign in [0, 1_u32 << 31] {
        let floats: Vec<f32> =
            (0..f32::INFINITY.to_bits()).step_by(1009 * STRIDE).map(|x| f32::from_bits(x | sign)).collect();
        let mut y = floats.clone();
        A::apply(&options, &mut y).unwrap();
        for (x, y) in floats.iter().zip(&y) {
            let error = (f64::from(*y) - exact(f64::from(*x))).abs() - f64::from(f32::from_bits(1));
            if error > 0.0 {
                let error = error / f64::from(x.abs()) * f64::from(1 << 24);
                assert!(error < 4.0, "{backend}: f({x}) = {y} for {}", exact(f64::from(*x)));
                worst = worst.max(error);
            }
        }
    }
    worst
}

#[test]
fn gelu() {
    let erf = |x: f64| x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    let tanh = |x: f64| {
        let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        x / (1.0 + (-2.0 * u).exp())
    };
    for backend in Backend::available() {
        let (erf, tanh) = (worst::<Gelu>(backend, erf), worst::<GeluTanh>(backend, tanh));
        println!("{backend}: errors of GELU {erf:.2} and its tanh form {tanh:.2}, in units of 2^-24 |x|");
        let options = Options::new().backend(backend);
        for lane in 0..17 {
            let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0];
            let expected = [f32::NAN, f32::INFINITY, 0.0, f32::MAX, 0.0, 0.0];
            for (value, expected) in values.into_iter().zip(expected) {
                let mut x = [[1.0_f32; 17]; 3];
                for x in &mut x {
                    x[lane] = value;
                }
                Gelu::apply(&options, &mut x[0]).unwrap();
                GeluTanh::apply(&options, &mut x[1]).unwrap();
                Relu::apply(&options, &mut x[2]).unwrap();
                for (y, of_one) in x.iter().zip([0.841_344_8, 0.841_192, 1.0]) {
                    assert!(y[lane] == expected || y[lane].is_nan() && expected.is_nan(), "{backend}: {y:?}");
                    assert!((y[(lane + 1) % 17] - of_one).abs() < 1e-6, "{backend}: {y:?}");
                }
            }
        }
    }
}

#[test]
fn mean_of_the_rows_in_use() {
    let x = [[1.0, 2.0, 3.0], [f32::NAN; 3], [3.0, 6.0, -3.0]];
    for backend in Backend::available() {
        let options = Options::new().backend(backend);
        let mut y = [7.0; 3];
        mean_pool(&options.key_mask(&[true, false, true]), &x, &mut y).unwrap();
        assert_eq!(y, [2.0, 4.0, 0.0]);
        mean_pool(&options, &x, &mut y).unwrap();
        assert!(y.iter().all(|y| y.is_nan()));
        mean_pool(&options.key_mask(&[false; 3]), &x, &mut y).unwrap();
        assert_eq!(y, [0.0; 3]);
        mean_pool(&options, &[], &mut y).unwrap();
        assert_eq!(y, [0.0; 3]);
    }
}

#[cfg(all(unix, target_pointer_width = "64"))]
mod pages {
    use super::fence::{Fence, fenced};

    #[global_allocator]
    static FENCE: Fence = Fence;

    /// Every buffer, the weights among them, starts after an unmapped page or ends before one.
    #[test]
    fn nothing_outside_the_buffers_is_touched() {
        fenced(|_| super::check_golden_cases());
    }
}
