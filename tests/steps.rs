//! A row's bits depend on its inputs alone: not on the rows that come with it, the size of the blocks, or the scratch.

mod common;

use common::{
    STRIDE,
    layers::{Call, Layer, assert_same, backends, random_layers},
    rng::Rng,
};
use synthesizer_attention::{FrozenFor, reference::Mask};

/// Makes the same layers each time; the causal frozen ones of those that can be frozen come with them.
fn layers_of(make: fn(&mut Rng) -> Vec<Box<dyn Layer>>) -> Vec<Box<dyn Layer>> {
    let layers = make(&mut Rng::new(5));
    let frozen: Vec<_> =
        layers.iter().filter_map(|layer| layer.freeze(FrozenFor::Causal)).map(Result::unwrap).collect();
    assert_eq!(frozen.len(), 3, "random, factorized random and their mixture");
    layers.into_iter().chain(frozen).collect()
}

fn draw(layer: &dyn Layer, rows: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut rng, sizes) = (Rng::new(6), layer.sizes());
    (rng.vec(rows * sizes.d, 1.0), rng.vec(sizes.l * sizes.m, 1.0))
}

/// The causal whole, and the same in chunks of `c` rows, whose keys and values come as the sequence grows.
fn chunks_equal_the_whole(make: fn(&mut Rng) -> Vec<Box<dyn Layer>>) {
    let backends = backends();
    for (mut layer, mut stream) in layers_of(make).into_iter().zip(layers_of(make)) {
        let sizes = layer.sizes();
        let (x, v) = draw(&*layer, sizes.l);
        layer.project_keys(0, &x);
        let seen: Vec<bool> = (0..sizes.l).map(|j| j % 4 != 1).collect();
        for keys in [None, Some(&seen)] {
            if keys.is_some() && layer.name() == "frozen" {
                continue;
            }
            for backend in &backends {
                let mask = Mask { causal: true, first: 0, keys: keys.map(|keys| &keys[..]) };
                let whole = Call { layer: &*layer, x: &x, v: &v, mask }.run(*backend);
                for c in [1, 2, 3, 5, 16, 17] {
                    for t in (0..sizes.l).step_by(c) {
                        let end = sizes.l.min(t + c);
                        let rows = &x[t * sizes.d..end * sizes.d];
                        stream.project_keys(t, rows);
                        let mask = Mask { first: t, keys: keys.map(|keys| &keys[..end]), ..mask };
                        let y = Call { layer: &*stream, x: rows, v: &v[..end * sizes.m], mask }.run(*backend);
                        let what = format!("{}, {backend}, rows {t}..{end}, {mask:?}", layer.name());
                        assert_same(&whole[t * sizes.m..end * sizes.m], &y, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn chunks_with_tails() {
    chunks_equal_the_whole(random_layers::<35, 7, 21, 5, 5, 7, 3>);
}

#[test]
fn chunks_wider_than_a_vector() {
    chunks_equal_the_whole(random_layers::<70, 20, 40, 37, 7, 10, 8>);
}

/// One row alone, causal or not.
#[test]
fn rows_do_not_depend_on_each_other() {
    for mut layer in random_layers::<35, 7, 21, 5, 5, 7, 3>(&mut Rng::new(5)) {
        let sizes = layer.sizes();
        let (x, v) = draw(&*layer, sizes.l);
        layer.project_keys(0, &x);
        for causal in [false, true] {
            for backend in backends() {
                let mask = Mask { causal, ..Mask::default() };
                let all = Call { layer: &*layer, x: &x, v: &v, mask }.run(backend);
                for (i, row) in x.chunks(sizes.d).enumerate() {
                    let alone = Call { layer: &*layer, x: row, v: &v, mask: Mask { first: i, ..mask } }.run(backend);
                    let what = format!("{}, {backend}, causal: {causal}, row {i} alone", layer.name());
                    assert_same(&all[i * sizes.m..][..sizes.m], &alone, &what);
                }
            }
        }
    }
}

/// Blocks of every number of rows, from scratch at every alignment and with anything in it.
#[test]
fn neither_block_size_nor_scratch_matter() {
    let backends = backends();
    for mut layer in layers_of(random_layers::<70, 5, 9, 6, 7, 10, 3>) {
        let sizes = layer.sizes();
        let (x, v) = draw(&*layer, sizes.l);
        layer.project_keys(0, &x);
        // frozen weights were taken for causal use
        for causal in [false, true].into_iter().filter(|causal| *causal || layer.name() != "frozen") {
            let call = Call { layer: &*layer, x: &x, v: &v, mask: Mask { causal, ..Mask::default() } };
            for backend in &backends {
                let y = call.run(*backend);
                for rows in (1..=64).step_by(STRIDE.min(5)) {
                    let len = layer.scratch_len(rows);
                    for (len, offset) in [(len, rows % 16), (len + 1, 0)] {
                        let what = format!("{}, {backend}, blocks of {rows}, offset {offset}", layer.name());
                        assert_same(&y, &call.run_in(*backend, len, offset), &what);
                    }
                }
                for fill in [0.0, -0.0, 3e38, f32::NEG_INFINITY] {
                    let (mut scratch, mut again) = (vec![fill; layer.scratch_len(7)], vec![fill; y.len()]);
                    layer.forward(&call.options(*backend), &x, &v, &mut again, &mut scratch).unwrap();
                    assert_same(&y, &again, &format!("{}, {backend}, scratch of {fill}", layer.name()));
                }
            }
        }
    }
}

/// The small layer's own path gives the bits of the shared one: row by row it can't be taken.
#[test]
fn small_layers_give_the_same_bits() {
    for mut layer in random_layers::<21, 7, 19, 5, 3, 7, 3>(&mut Rng::new(5)) {
        let sizes = layer.sizes();
        let (x, v) = draw(&*layer, sizes.l);
        layer.project_keys(0, &x);
        for backend in backends() {
            let all = Call::new(&*layer, &x, &v);
            let y = all.run(backend);
            for (i, row) in x.chunks(sizes.d).enumerate() {
                let alone = Call { x: row, mask: Mask { first: i, ..Mask::default() }, ..all }.run(backend);
                assert_same(&y[i * sizes.m..][..sizes.m], &alone, &format!("{}, {backend}, row {i}", layer.name()));
            }
        }
    }
}
