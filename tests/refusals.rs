//! What a call refuses, with the numbers it gives; and the calls that have nothing to do. Nothing is written.

mod common;

use common::{
    layers::{Layer, WEIGHTS, assert_same, backends, random_layers},
    rng::Rng,
};
use synthesizer_attention::{
    Backend, DotProduct, Error, Frozen, FrozenFor, Linear, Options, Positional, Random, Synthesizer,
};

const L: usize = 35;
const D: usize = 7;
const M: usize = 5;

/// Every layer with keys for all L rows.
fn layers() -> Vec<Box<dyn Layer>> {
    let mut rng = Rng::new(2);
    let mut layers = random_layers::<L, D, 21, M, 5, 7, 3>(&mut rng);
    layers.iter_mut().for_each(|layer| layer.project_keys(0, &rng.vec(L * D, 1.0)));
    layers
}

/// What a call says to so many rows of each; fails where a refusal has written something.
fn call(layer: &dyn Layer, options: Options<'_>, [x, v, y]: [usize; 3], scratch: usize) -> Result<(), Error> {
    let (x, v) = (vec![0.5; x * D], vec![0.5; v * M]);
    let (mut y, mut scratch) = (vec![-7.5; y * M], vec![-7.5; scratch]);
    let done = layer.forward(&options, &x, &v, &mut y, &mut scratch);
    if done.is_err() {
        let untouched = y.iter().chain(&scratch).all(|y| *y == -7.5);
        assert!(untouched, "{}: a refused call has written: {done:?}", layer.name());
    }
    done
}

#[test]
fn sizes_that_do_not_fit() {
    for backend in backends() {
        let options = Options::new().backend(backend);
        for layer in layers() {
            let (name, enough) = (layer.name(), layer.sizes().scratch);
            let say = |options: Options<'_>, rows, scratch| call(&*layer, options, rows, scratch);
            assert_eq!(say(options, [3, L, 3], enough), Ok(()), "{name}");
            assert_eq!(say(options, [3, L + 1, 3], enough), Err(Error::Keys { given: L + 1, most: L }), "{name}");
            assert_eq!(say(options, [3, L, 2], enough), Err(Error::Rows { given: 2, needed: 3 }), "{name}");
            assert_eq!(say(options, [3, L, 4], enough), Err(Error::Rows { given: 4, needed: 3 }), "{name}");
            assert_eq!(say(options, [0, L, 1], enough), Err(Error::Rows { given: 1, needed: 0 }), "{name}");

            for len in [0, L - 1, L + 1] {
                let mask = vec![true; len];
                let refused = say(options.key_mask(&mask), [3, L, 3], enough);
                assert_eq!(refused, Err(Error::KeyMask { given: len, needed: L }), "{name}");
            }

            let needed = layer.scratch_len(1);
            assert!(needed <= enough && needed >= L, "{name}: {needed} floats for a row, {enough} by default");
            assert_eq!(say(options, [L, L, L], needed), Ok(()), "{name}");
            for given in [needed - 1, 1, 0] {
                assert_eq!(say(options, [L, L, L], given), Err(Error::Scratch { given, needed }), "{name}");
            }
        }
    }
}

/// A row so far on that its position can't be counted sees every key.
#[test]
fn positions_without_end() {
    for backend in backends() {
        let options = Options::new().backend(backend);
        for layer in layers().into_iter().filter(|layer| layer.sizes().positions == usize::MAX) {
            let (mut rng, rows) = (Rng::new(8), 3 * L);
            let (x, v) = (rng.vec(rows * D, 1.0), rng.vec(L * M, 1.0));
            let run = |options: Options<'_>| {
                let (mut y, mut scratch) = (vec![f32::NAN; rows * M], vec![f32::NAN; layer.sizes().scratch]);
                layer.forward(&options, &x, &v, &mut y, &mut scratch).unwrap();
                y
            };
            for first in [L, usize::MAX - rows, usize::MAX - 20, usize::MAX] {
                let what = format!("{}, {backend}, rows from {first}", layer.name());
                assert_same(&run(options), &run(options.causal().first(first)), &what);
            }
        }
    }
}

/// Layers whose scores depend on the position have L of them; the others go on without end.
#[test]
fn positions_past_the_last() {
    backends();
    for layer in layers() {
        let (name, enough) = (layer.name(), layer.sizes().scratch);
        let say = |first, rows| call(&*layer, Options::new().causal().first(first), [rows, L, rows], enough);
        let positional = !["dense", "dense_no_bias", "factorized_dense", "dot_product"].contains(&name);
        assert_eq!(layer.sizes().positions, if positional { L } else { usize::MAX }, "{name}");
        assert_eq!(say(L - 3, 3), Ok(()), "{name}");
        for (first, rows, given) in [(L - 2, 3, L + 1), (L, 1, L + 1), (0, L + 1, L + 1), (usize::MAX, 2, usize::MAX)] {
            let refused = if positional { Err(Error::Position { given, most: L }) } else { Ok(()) };
            assert_eq!(say(first, rows), refused, "{name}: {rows} rows from {first}");
        }
    }
}

#[test]
fn frozen_weights_used_in_another_way() {
    backends();
    let (all, mut frozen) = ([true; 20], 0);
    let plain = Options::new();
    for layer in layers() {
        let Some(Err(refused)) = layer.freeze(FrozenFor::Keys(L + 1)) else { continue };
        assert_eq!(refused, Error::Keys { given: L + 1, most: L });

        let to = FrozenFor::Keys(20);
        let layer_20 = layer.freeze(to).unwrap().unwrap();
        let say = |options: Options<'_>, rows| call(&*layer_20, options, rows, 0);
        assert_eq!(say(plain, [3, 20, 3]), Ok(()));
        assert_eq!(say(plain, [3, 19, 3]), Err(Error::Frozen { to }));
        assert_eq!(say(plain, [3, 21, 3]), Err(Error::Frozen { to }));
        assert_eq!(say(plain.causal(), [3, 20, 3]), Err(Error::Frozen { to }));
        assert_eq!(say(plain.key_mask(&all), [3, 20, 3]), Err(Error::Frozen { to }));
        assert_eq!(say(plain.first(L), [1, 20, 1]), Err(Error::Position { given: L + 1, most: L }));
        assert_eq!(say(plain, [3, L + 1, 3]), Err(Error::Keys { given: L + 1, most: L }));

        let to = FrozenFor::Causal;
        let causal = layer.freeze(to).unwrap().unwrap();
        let say = |options: Options<'_>, rows| call(&*causal, options, rows, 0);
        assert_eq!(say(plain.causal(), [20, 20, 20]), Ok(()));
        assert_eq!(say(plain.causal().first(17), [3, 20, 3]), Ok(()));
        assert_eq!(say(plain.causal().first(18), [3, 20, 3]), Err(Error::Frozen { to }), "a row without its key");
        assert_eq!(say(plain, [20, 20, 20]), Err(Error::Frozen { to }));
        assert_eq!(say(plain.causal().key_mask(&all), [20, 20, 20]), Err(Error::Frozen { to }));
        frozen += 1;
    }
    assert_eq!(frozen, 3);

    let (r, mut weights) = ([[0.5; 4]; 4], [[-7.5; 4]; 4]);
    let random = Random::<4, 1>::new(&r);
    let needed = Random::<4, 1>::scratch_len(1);
    let refused = random.freeze(FrozenFor::Causal, &mut weights, &mut vec![0.0; needed - 1]).unwrap_err();
    assert_eq!((refused, weights), (Error::Scratch { given: needed - 1, needed }, [[-7.5; 4]; 4]));
    let refused = Frozen::<4, 1>::new(&weights, FrozenFor::Keys(5)).unwrap_err();
    assert_eq!(refused, Error::Keys { given: 5, most: 4 });
}

/// A cache of keys takes L, and a call no more than are in it.
#[test]
fn keys_of_the_dot_product() {
    backends();
    let w = [[1.0, 0.0], [0.0, 1.0]];
    let dot = DotProduct::<4, 2, 2>::new(Linear::without_bias(&w), Linear::without_bias(&w));
    let mut keys = [[-7.5; 4]; 2];
    for (first, rows) in [(0, 5), (3, 2), (usize::MAX, 1)] {
        let refused = dot.project_keys(first, &[[1.0, 2.0]; 5][..rows], &mut keys);
        assert_eq!(refused, Err(Error::Keys { given: first.saturating_add(rows), most: 4 }));
        assert_eq!(keys, [[-7.5; 4]; 2]);
    }
    dot.project_keys(1, &[[1.0, 2.0], [3.0, 4.0]], &mut keys).unwrap();
    assert_eq!(keys, [[-7.5, 1.0, 3.0, -7.5], [-7.5, 2.0, 4.0, -7.5]]);
    let (mut y, mut scratch) = ([[-7.5]; 1], [0.0; 256]);
    let refused = dot.with_keys(&keys, 2).forward(&[[1.0, 1.0]], &[[1.0]; 3], &mut y, &mut scratch);
    assert_eq!((refused, y), (Err(Error::Keys { given: 3, most: 2 }), [[-7.5]]));
}

#[test]
fn other_outputs() {
    let (r, mut weights, mut scratch) = ([[0.5; 4]; 4], [[-7.5; 2]; 3], [0.0; 256]);
    let random = Random::<4, 1>::new(&r);
    let refused = random.attention_weights(&Options::new(), &[[0.0]; 3], 3, &mut weights, &mut scratch);
    assert_eq!((refused, weights), (Err(Error::Keys { given: 3, most: 2 }), [[-7.5; 2]; 3]));
    let refused = random.attention_weights(&Options::new(), &[[0.0]; 4], 2, &mut weights, &mut scratch);
    assert_eq!((refused, weights), (Err(Error::Rows { given: 3, needed: 4 }), [[-7.5; 2]; 3]));
    let w = [[1.0, 0.0]];
    let mut y = [[-7.5; 2]; 2];
    let refused = Linear::without_bias(&w).forward(&[[1.0]; 3], &mut y);
    assert_eq!((refused, y), (Err(Error::Rows { given: 2, needed: 3 }), [[-7.5; 2]; 2]));
}

#[test]
fn nothing_to_do() {
    for backend in backends() {
        let options = Options::new().backend(backend);
        for layer in layers() {
            for options in [options, options.causal(), options.key_mask(&[])] {
                let mut scratch = vec![f32::NAN; layer.scratch_len(1)];
                let mut y = vec![f32::NAN; 3 * M];
                assert_eq!(layer.forward(&options, &[f32::NAN; 3 * D], &[], &mut y, &mut scratch), Ok(()));
                assert!(y.iter().all(|y| y.to_bits() == 0), "{} on {backend}: no keys are zeros: {y:?}", layer.name());
                assert_eq!(layer.forward(&options, &[], &[], &mut [], &mut scratch), Ok(()), "no rows");
                let mut weights = vec![f32::NAN; 3 * WEIGHTS];
                assert_eq!(layer.attention_weights(&options, &[0.0; 3 * D], 0, &mut weights, &mut scratch), Ok(()));
                assert!(weights.iter().all(|w| w.to_bits() == 0), "{} on {backend}: weights of no key", layer.name());
            }
            assert_eq!(call(&*layer, options, [0, L, 0], layer.scratch_len(1)), Ok(()), "no query rows");
        }
    }
}

/// Every message names what was given and what is needed.
#[test]
fn messages() {
    let to = FrozenFor::Keys(11);
    for (error, numbers) in [
        (Error::Keys { given: 17, most: 11 }, ["17", "11"]),
        (Error::Rows { given: 17, needed: 11 }, ["17", "11"]),
        (Error::Position { given: 17, most: 11 }, ["17", "11"]),
        (Error::KeyMask { given: 17, needed: 11 }, ["17", "11"]),
        (Error::Scratch { given: 17, needed: 11 }, ["17", "11"]),
        (Error::Frozen { to }, ["11", "frozen"]),
        (Error::Frozen { to: FrozenFor::Causal }, ["causal", "frozen"]),
        (Error::Backend { asked: Backend::Avx512 }, ["avx512", "backend"]),
    ] {
        let message = error.to_string();
        assert!(numbers.iter().all(|number| message.contains(number)), "{message}");
    }
    let _: &dyn std::error::Error = &Error::Keys { given: 1, most: 0 };
}
