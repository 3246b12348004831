//! The multi-head layer: against PyTorch and the float64 reference, and against its own heads one by one.
#![allow(clippy::float_cmp, reason = "what must be equal to the bit")]

mod common;
#[cfg(all(unix, target_pointer_width = "64"))]
#[path = "common/fence.rs"]
mod fence;

use common::{
    golden::{self, Case, Errors},
    heads::{Attention, MultiHeadWeights},
    pinned::{Hash, Set, assert_pinned},
    rng::Rng,
};
use synthesizer_attention::{
    Backend, Dense, DenseHeads, DotProduct, Error, FrozenFor, Identity, Linear, Mixture, MultiHead, Options,
    Positional, Random, Synthesizer, reference::Mask, weights::input_major_heads,
};

fn golden_case<const L: usize, const D: usize, const K: usize, const HEADS: usize>(
    case: &Case,
    backend: Backend,
    errors: &mut Errors,
    hash: &mut Hash,
) -> f64 {
    let weights = MultiHeadWeights::<L, D, K, HEADS>::load(&mut |name, rows, cols| case.weights(name, rows, cols));
    let x = golden::rows(&case.flat("x"));
    let options = Options::new().backend(backend);
    let options = if case.causal() { options.causal() } else { options };
    let mut y = vec![[f32::NAN; D]; x.len()];
    let mut scratch = vec![f32::NAN; Attention::<'_, L, D, K, HEADS>::SCRATCH];
    weights.layer().forward_with(&options, &x, &mut y, &mut scratch).unwrap();

    errors.add(case, y.as_flattened());
    hash.add(y.as_flattened());
    let mask = Mask { causal: case.causal(), ..Mask::default() };
    let reference = weights.reference(&x, &mask);
    reference.check(y.as_flattened(), D).unwrap_or_else(|e| panic!("{} on {backend}: {e}", case.name))
}

#[test]
fn golden_cases() {
    check_golden_cases();
}

fn check_golden_cases() {
    let cases = golden::cases(&["multi_head"]);
    assert_eq!(cases.len(), 10);
    let mut hashes = Vec::new();
    for backend in Backend::available() {
        let (mut errors, mut worst, mut hash) = (Errors::default(), 0.0_f64, Hash::default());
        for case in &cases {
            let run = match ["N", "d", "heads"].map(|size| case.size(size)) {
                [8, 8, 2] => golden_case::<8, 8, 4, 2>,
                [29, 32, 4] => golden_case::<29, 32, 8, 4>,
                [20, 64, 4] => golden_case::<20, 64, 16, 4>,
                [64, 32, 8] => golden_case::<64, 32, 4, 8>,
                [50, 24, 3] => golden_case::<50, 24, 8, 3>,
                sizes => panic!("{}: no instance of {sizes:?}", case.name),
            };
            worst = worst.max(run(case, backend, &mut errors, &mut hash));
        }
        println!("{backend}: at most {worst:.4} of the bound\n{errors}");
        errors.assert_within(1.25, 4.0);
        hashes.push((backend, hash));
    }
    assert_pinned(Set::Heads, &hashes);
}

const L: usize = 37; // past the sizes that get an instance of their own: the test builds in seconds
const D: usize = 12;
const K: usize = 4;
const HEADS: usize = 3;

type Small = MultiHeadWeights<L, D, K, HEADS>;
type SmallLayer<'a> = Attention<'a, L, D, K, HEADS>;

fn small() -> (Small, Vec<[f32; D]>) {
    let mut rng = Rng::new(11);
    (Small::load(&mut |name, rows, cols| Some(rng.weights(name, rows, cols))), rng.rows(L, 1.0))
}

fn bits<const C: usize>(rows: &[[f32; C]]) -> Vec<u32> {
    rows.as_flattened().iter().map(|x| x.to_bits()).collect()
}

fn scratch() -> Vec<f32> {
    vec![f32::NAN; SmallLayer::SCRATCH]
}

/// The columns of one head.
fn slice<const C: usize, const W: usize>(rows: &[[f32; C]], i: usize) -> Vec<[f32; W]> {
    rows.iter().map(|row| row[i * W..][..W].try_into().unwrap()).collect()
}

/// Each head by itself through `Synthesizer::forward_with`, then side by side through the output projection.
fn one_by_one<S: Synthesizer>(
    weights: &Small,
    heads: &[S],
    inputs: &[Vec<S::Row>],
    x: &[[f32; D]],
    options: &Options<'_>,
) -> Vec<[f32; D]> {
    let mut v = vec![[0.0; D]; x.len()];
    weights.value().forward_with(options, x, &mut v).unwrap();
    let mut side_by_side = vec![[0.0; D]; x.len()];
    for (i, head) in heads.iter().enumerate() {
        let mut y = vec![[0.0; K]; x.len()];
        head.forward_with(options, &inputs[i], &slice::<D, K>(&v, i), &mut y, &mut vec![0.0; S::SCRATCH]).unwrap();
        for (to, from) in side_by_side.iter_mut().zip(&y) {
            to[i * K..][..K].copy_from_slice(from);
        }
    }
    let mut y = vec![[0.0; D]; x.len()];
    weights.output().forward_with(options, &side_by_side, &mut y).unwrap();
    y
}

/// The layer's answer, which must be that of its heads one by one, to the bit.
fn as_one_by_one<S: Synthesizer<Row = [f32; D]> + Copy>(heads: [S; HEADS]) {
    let (weights, x) = small();
    let mask: Vec<bool> = (0..L).map(|j| j % 3 != 1).collect();
    let inputs = [x.clone(), x.clone(), x.clone()];
    for backend in Backend::available() {
        for options in [Options::new(), Options::new().causal(), Options::new().key_mask(&mask)] {
            let options = options.backend(backend);
            let expected = one_by_one(&weights, &heads, &inputs, &x, &options);
            let layer = MultiHead::new(heads, weights.value(), weights.output());
            let mut y = vec![[0.0; D]; L];
            let mut scratch = vec![f32::NAN; MultiHead::<[S; HEADS], Linear<'_, D, D>, Linear<'_, D, D>>::SCRATCH];
            layer.forward_with(&options, &x, &mut y, &mut scratch).unwrap();
            assert_eq!(bits(&y), bits(&expected), "{backend}, {options:?}");
        }
    }
}

#[test]
fn slices_of_one_hidden_layer() {
    let (weights, x) = small();
    // a head's slice of the hidden layer through an identity, whose ReLU changes nothing any more
    let identity: [[f32; K]; K] = std::array::from_fn(|i| std::array::from_fn(|j| f32::from(u8::from(i == j))));
    for backend in Backend::available() {
        let options = Options::new().backend(backend).causal();
        let mut hidden = vec![[0.0; D]; L];
        weights.hidden().forward_with(&options, &x, &mut hidden).unwrap();
        hidden.as_flattened_mut().iter_mut().for_each(|h| *h = h.max(0.0));
        let b2 = weights.b2.as_ref().unwrap();
        let heads: Vec<_> =
            (0..HEADS).map(|i| Dense::with_biases(&identity, None, &weights.w2[i], Some(&b2[i]))).collect();
        let inputs: Vec<_> = (0..HEADS).map(|i| slice::<D, K>(&hidden, i)).collect();
        let expected = one_by_one(&weights, &heads, &inputs, &x, &options);
        let mut y = vec![[0.0; D]; L];
        weights.layer().forward_with(&options, &x, &mut y, &mut scratch()).unwrap();
        assert_eq!(bits(&y), bits(&expected), "{backend}");
    }
}

#[test]
fn hidden_layers_of_their_own() {
    let mut rng = Rng::new(3);
    let w1: [Box<[[f32; 9]; D]>; HEADS] = [rng.array(0.3), rng.array(0.3), rng.array(0.3)];
    let w2: [Box<[[f32; L]; 9]>; HEADS] = [rng.array(0.5), rng.array(0.5), rng.array(0.5)];
    as_one_by_one([0, 1, 2].map(|i| Dense::without_bias(&w1[i], &w2[i])));
    // and W2 shared by all
    as_one_by_one([0, 1, 2].map(|i| Dense::without_bias(&w1[i], &w2[0])));
}

#[test]
fn any_of_the_family() {
    let mut rng = Rng::new(4);
    let r: [Box<[[f32; L]; L]>; HEADS] = [rng.array(1.0), rng.array(1.0), rng.array(1.0)];
    let (w1, w2) = (rng.array::<D, 7>(0.3), rng.array::<7, L>(0.5));
    as_one_by_one([0, 1, 2].map(|i| Random::new(&r[i])));
    as_one_by_one([0, 1, 2].map(|i| Mixture::of(0.5, Random::new(&r[i])).and(0.25, Dense::without_bias(&w1, &w2))));

    let (query, key) = (rng.array::<D, K>(0.3), rng.array::<D, K>(0.3));
    let dot = DotProduct::<L, D, K>::new(Linear::without_bias(&query), Linear::without_bias(&key));
    let mut keys = [[0.0; L]; K];
    dot.project_keys(0, &small().1, &mut keys).unwrap();
    as_one_by_one([dot.with_keys(&keys, L); HEADS]);
}

#[test]
fn frozen_heads() {
    let mut rng = Rng::new(5);
    let (weights, x) = small();
    let r: [Box<[[f32; L]; L]>; HEADS] = [rng.array(1.0), rng.array(1.0), rng.array(1.0)];
    let live = [0, 1, 2].map(|i| Random::<L, D>::new(&r[i]));
    let [mut a, mut b, mut c] = [(); HEADS].map(|()| Box::new([[0.0; L]; L]));
    let freeze = |i: usize, to| {
        let mut scratch = vec![0.0; Random::<L, D>::SCRATCH];
        live[i].freeze(FrozenFor::Causal, to, &mut scratch).unwrap()
    };
    let frozen = [freeze(0, &mut a), freeze(1, &mut b), freeze(2, &mut c)];
    let options = Options::new().causal();
    let mut y = [[[0.0; D]; L]; 2];
    let [from_live, from_frozen] = &mut y;
    MultiHead::new(live, weights.value(), weights.output())
        .forward_with(&options, &x, from_live, &mut vec![0.0; 1 << 14])
        .unwrap();
    let layer = MultiHead::new(frozen, weights.value(), weights.output());
    layer.forward_with(&options, &x, from_frozen, &mut vec![0.0; 1 << 14]).unwrap();
    let difference = from_live.as_flattened().iter().zip(from_frozen.as_flattened()).map(|(a, b)| (a - b).abs());
    assert!(difference.fold(0.0, f32::max) < 1e-5);
    let refused = layer.forward(&x, from_frozen, &mut vec![0.0; 1 << 14]);
    assert_eq!(refused, Err(Error::Frozen { to: FrozenFor::Causal }));
}

/// Second layers that all heads share, and no projections.
#[test]
fn sharing_and_identity() {
    let (weights, x) = small();
    let second = weights.second(1);
    let hidden = weights.hidden();
    let apart = DenseHeads::from_layers(hidden, [second; HEADS]);
    let shared = DenseHeads::<L, D, D, K, HEADS>::sharing(hidden, second);
    let mut y = [[[0.0; D]; L]; 2];
    let [first, with_projections] = &mut y;
    MultiHead::new(apart, Identity::new(), Identity::new()).forward(&x, first, &mut scratch()).unwrap();
    // the identity as a matrix: multiplying by 1 and adding zeros is exact
    let one: [[f32; D]; D] = std::array::from_fn(|i| std::array::from_fn(|j| f32::from(u8::from(i == j))));
    let one = Linear::without_bias(&one);
    MultiHead::new(shared, one, one).forward(&x, with_projections, &mut scratch()).unwrap();
    assert_eq!(first, with_projections);
}

#[test]
fn steps_give_the_whole() {
    let (weights, x) = small();
    let layer = weights.layer();
    for backend in Backend::available() {
        let options = Options::new().backend(backend).causal();
        let mut whole = vec![[0.0; D]; L];
        layer.forward_with(&options, &x, &mut whole, &mut scratch()).unwrap();
        for step in [1, 2, 5, L] {
            let mut values = [[f32::NAN; D]; L]; // what is not yet written is not yet seen
            let mut y = vec![[0.0; D]; L];
            let mut first = 0;
            for (x, y) in x.chunks(step).zip(y.chunks_mut(step)) {
                layer.forward_cached(&options.first(first), x, &mut values, y, &mut scratch()).unwrap();
                first += x.len();
            }
            assert_eq!(bits(&y), bits(&whole), "{backend}, {step} rows a step");
        }
        // and with the values given
        let mut v = vec![[0.0; D]; L];
        layer.project_values(&options, &x, &mut v).unwrap();
        let mut y = vec![[0.0; D]; L - 3];
        layer.attend(&options.first(3), &x[3..], &v, &mut y, &mut scratch()).unwrap();
        assert_eq!(bits(&y), bits(&whole[3..]), "{backend}, values given");
    }
}

#[test]
fn scratch_does_not_matter() {
    let (weights, x) = small();
    let layer = weights.layer();
    let mut expected = vec![[0.0; D]; L];
    layer.forward(&x, &mut expected, &mut scratch()).unwrap();
    for rows in [1, 2, 3, 7, 64, 200] {
        for fill in [0.0, f32::NAN, f32::INFINITY] {
            let mut scratch = vec![fill; SmallLayer::scratch_len(rows)];
            let mut y = vec![[fill; D]; L];
            layer.forward(&x, &mut y, &mut scratch).unwrap();
            assert_eq!(bits(&y), bits(&expected), "blocks of {rows}");
        }
    }
}

#[test]
fn masks() {
    let (weights, mut x) = small();
    let layer = weights.layer();
    let mask: Vec<bool> = (0..L).map(|j| j != 4 && j != 17).collect();
    let mut clean = vec![[0.0; D]; L];
    layer.forward_with(&Options::new().key_mask(&mask), &x, &mut clean, &mut scratch()).unwrap();
    x[4] = [f32::NAN; D];
    x[17] = [f32::INFINITY; D];
    for backend in Backend::available() {
        let options = Options::new().key_mask(&mask).backend(backend);
        let mut y = vec![[0.0; D]; L];
        layer.forward_with(&options, &x, &mut y, &mut scratch()).unwrap();
        for (i, (y, clean)) in y.iter().zip(&clean).enumerate() {
            assert_eq!(y.iter().all(|y| y.is_nan()), !mask[i], "{backend}, row {i}");
            let near = y.iter().zip(clean).all(|(y, clean)| (y - clean).abs() < 1e-4);
            assert_eq!(near, mask[i], "{backend}, row {i}");
        }
    }
}

/// Without a key the heads give zeros, and the output projection its bias.
#[test]
fn no_keys_and_no_rows() {
    let (weights, x) = small();
    let layer = weights.layer();
    let (nobody, bo) = ([false; L], weights.bo.as_deref().unwrap());
    for backend in Backend::available() {
        let options = Options::new().backend(backend);
        let mut y = vec![[f32::NAN; D]; L];
        layer.forward_with(&options.key_mask(&nobody), &x, &mut y, &mut scratch()).unwrap();
        assert!(y.iter().all(|y| y == bo), "{backend}, all masked");
        y.fill([f32::NAN; D]);
        layer.attend(&options, &x, &[], &mut y, &mut scratch()).unwrap();
        assert!(y.iter().all(|y| y == bo), "{backend}, no keys");
        layer.forward_with(&options, &[], &mut [], &mut scratch()).unwrap();
    }
}

#[test]
fn attention_weights() {
    let (weights, x) = small();
    let layer = weights.layer();
    let mut found = vec![[f32::NAN; L + 2]; HEADS * 7];
    layer.attention_weights(&Options::new().causal(), &x[..7], 5, &mut found, &mut scratch()).unwrap();
    for (i, row) in found.iter().enumerate() {
        let keys = (i % 7 + 1).min(5);
        assert!((row[..keys].iter().sum::<f32>() - 1.0).abs() < 1e-6, "{row:?}");
        assert!(row[keys..].iter().all(|weight| *weight == 0.0), "{row:?}");
    }
    // times V they are the heads' answers
    let bare = MultiHead::new(weights.heads(), weights.value(), Identity::new());
    let (mut v, mut y) = ([[0.0; D]; 5], [[0.0; D]; 7]);
    bare.project_values(&Options::new(), &x[..5], &mut v).unwrap();
    bare.attend(&Options::new().causal(), &x[..7], &v, &mut y, &mut scratch()).unwrap();
    for (i, y) in y.iter().enumerate() {
        for (c, y) in y.iter().enumerate() {
            let expected: f32 = (0..5).map(|j| found[c / K * 7 + i][j] * v[j][c]).sum();
            assert!((y - expected).abs() < 1e-5, "row {i}, column {c}: {y} for {expected}");
        }
    }
}

#[test]
fn refusals() {
    let (weights, x) = small();
    let layer = weights.layer();
    let mut y = vec![[7.0; D]; L + 1];
    let mut values = [[7.0; D]; 4];
    let x = [x.as_slice(), &[[0.0; D]]].concat();
    let options = Options::new();
    let needed = SmallLayer::scratch_len(1);
    assert_eq!(layer.forward(&x, &mut y, &mut scratch()), Err(Error::Keys { given: L + 1, most: L }));
    let rows = Err(Error::Rows { given: 2, needed: 3 });
    assert_eq!(layer.forward(&x[..3], &mut y[..2], &mut scratch()), rows);
    let few = &mut vec![0.0; needed - 1];
    assert_eq!(layer.forward(&x[..3], &mut y[..3], few), Err(Error::Scratch { given: needed - 1, needed }));
    let mask = Err(Error::KeyMask { given: 2, needed: 3 });
    assert_eq!(layer.forward_with(&options.key_mask(&[true; 2]), &x[..3], &mut y[..3], &mut scratch()), mask);
    let past = layer.forward_cached(&options.first(2), &x[..3], &mut values, &mut y[..3], &mut scratch());
    assert_eq!(past, Err(Error::Keys { given: 5, most: 4 }));
    let far = layer.forward_cached(&options.first(usize::MAX), &x[..3], &mut values, &mut y[..3], &mut scratch());
    assert_eq!(far, Err(Error::Keys { given: usize::MAX, most: 4 }));
    let weights = layer.attention_weights(&options, &x[..3], 2, &mut y[..8], &mut scratch());
    assert_eq!(weights, Err(Error::Rows { given: 8, needed: 9 }));
    for backend in Backend::ALL.into_iter().filter(|backend| !backend.is_available()) {
        let refused = layer.forward_with(&options.backend(backend), &x[..3], &mut y[..3], &mut scratch());
        assert_eq!(refused, Err(Error::Backend { asked: backend }));
    }
    assert!(y.iter().all(|y| *y == [7.0; D]) && values == [[7.0; D]; 4], "nothing is written");
}

#[test]
fn pytorch_heads_are_transposed_each() {
    let heads = [[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]];
    let expected = [[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]], [[7.0, 9.0, 11.0], [8.0, 10.0, 12.0]]];
    assert_eq!(input_major_heads(&heads), expected);
}

#[test]
fn layers_are_shared_by_threads() {
    fn shared<T: Sync + Send>(_: &T) {}
    shared(&small().0.layer());
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
