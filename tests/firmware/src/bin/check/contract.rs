use synthesizer_attention::{Backend, Dense, Error, Options, Random, Synthesizer};

use super::Check;

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;
const X: [[f32; 1]; 3] = [[NAN]; 3];

/// What the scores of three rows over three keys make of V, which is [1, 2, 4] or not.
fn attend(scores: &[[f32; 3]; 3], options: &Options<'_>, v: [f32; 3]) -> [f32; 3] {
    let mut y = [[NAN]; 3];
    let layer = Random::<3, 1>::new(scores);
    let done = layer.forward_with(options, &X, &v.map(|v| [v]), &mut y, &mut [NAN; 16]);
    if done.is_ok() { y.map(|[y]| y) } else { [f32::MIN; 3] }
}

pub fn contract(check: &mut Check<'_>) {
    let (plain, v) = (Options::new(), [1.0, 2.0, 4.0]);
    let even = [0.0; 3];
    let is = |found: [f32; 3], right: [f32; 3]| {
        found.iter().zip(right).all(|(y, right)| y.is_nan() && right.is_nan() || (y - right).abs() < 1e-6)
    };

    let found = attend(&[[0.0, NAN, 0.0], [0.0, INF, 0.0], [0.0, -INF, 0.0]], &plain, v);
    check.that(is(found, [NAN, NAN, 2.5]), "a NaN or +inf score is a row of NaN, -inf a weight of 0");
    let found = attend(&[even, [-INF; 3], [NAN; 3]], &plain, [3.0, INF, 1.0]);
    check.that(is(found, [INF, 0.0, NAN]) || found[0] == INF && found[1] == 0.0, "all -inf is zero");
    let found = attend(&[[0.0, -INF, 0.0], [0.0, -200.0, 0.0], even], &plain, [1.0, NAN, 1.0]);
    check.that(is(found, [NAN; 3]), "a weight of 0 times NaN");
    let mask = [true, false, true];
    let found = attend(&[even, [0.0, NAN, 0.0], [1.0; 3]], &plain.key_mask(&mask), [1.0, NAN, 4.0]);
    check.that(is(found, [2.5; 3]), "a masked key has no part, NaN or not");
    let found = attend(&[even; 3], &plain.key_mask(&[false; 3]), [NAN; 3]);
    check.that(found.map(f32::to_bits) == [0; 3], "all keys masked is zero");
    let found = attend(&[even; 3], &plain.causal(), [1.0, 2.0, NAN]);
    check.that(is(found, [1.0, 1.5, NAN]), "causal");
    let found = attend(&[even; 3], &plain.causal().key_mask(&[false, true, true]), [NAN, 2.0, 4.0]);
    check.that(is(found, [0.0, 2.0, 3.0]), "causal with a key mask");
    let large = f32::MAX;
    let found = attend(&[[large, -large, -large], [-large, -large, large], [90.0, 2.0, -2.0]], &plain, v);
    check.that(is(found, [1.0, 4.0, 1.0]), "the largest logits");
    let half = large / 2.0;
    let found = attend(&[even; 3], &plain, [half; 3]);
    check.that(found.iter().all(|y| (y / half - 1.0).abs() < 1e-5), "V of half the largest float");
    let tiny = f32::from_bits(3);
    let found = attend(&[[0.0, -INF, -INF]; 3], &plain, [tiny; 3]);
    check.that(found.map(f32::to_bits) == [tiny.to_bits(); 3], "subnormals");

    let one = [[1.0]];
    let dense = Dense::<1, 1, 1>::without_bias(&one, &one);
    let mut y = [[0.0]];
    let done = dense.forward(&[[NAN]], &one, &mut y, &mut [0.0; 2]);
    check.that(done.is_ok() && y[0][0].is_nan(), "relu of NaN");
    let mut y = [[7.0]];
    let done = dense.forward(&[[1.0]], &[], &mut y, &mut [0.0; 2]);
    check.that(done.is_ok() && y == [[0.0]], "no keys");
    check.that(dense.forward::<1>(&[], &one, &mut [], &mut [0.0; 2]).is_ok(), "no rows");

    let refused = |rows: usize, keys: usize, height: usize, scratch: usize, options: Options<'_>| {
        let (mut y, mut buffer) = ([[7.0]; 4], [7.0; 8]);
        let layer = Random::<3, 1>::new(&[[0.0; 3]; 3]);
        let buffer_used = &mut buffer[..scratch];
        let result =
            layer.forward_with(&options, &[[0.0]; 4][..rows], &[[0.0]; 4][..keys], &mut y[..height], buffer_used);
        if y == [[7.0]; 4] && buffer == [7.0; 8] { result.err() } else { None }
    };
    let found = refused(3, 4, 3, 8, plain);
    check.that(found == Some(Error::Keys { given: 4, most: 3 }), "too many keys");
    let found = refused(3, 3, 2, 8, plain);
    check.that(found == Some(Error::Rows { given: 2, needed: 3 }), "heights that differ");
    let found = refused(3, 3, 3, 8, plain.first(1));
    check.that(found == Some(Error::Position { given: 4, most: 3 }), "a position past the last");
    let found = refused(3, 2, 3, 8, plain.key_mask(&mask));
    check.that(found == Some(Error::KeyMask { given: 3, needed: 2 }), "a mask of another length");
    let found = refused(3, 3, 3, 2, plain);
    check.that(found == Some(Error::Scratch { given: 2, needed: 3 }), "too little scratch");
    let found = refused(3, 3, 3, 8, plain.backend(Backend::Avx2));
    check.that(found == Some(Error::Backend { asked: Backend::Avx2 }), "a backend of another machine");
}
