//! Subnormal numbers through every kernel but the softmax. The vectors of a Cortex-M55 flush them to zero: a loop that
//! the compiler has widened fails there. What is expected is compared by its bits, for the same reason.

use core::hint::black_box;

use synthesizer_attention::{
    Activation, Dense, DotProduct, Error, FactorizedDense, FeedForward, Gelu, GeluTanh, LayerNorm, Linear, Mixture,
    Norm, Options, Random, Relu, RmsNorm, Synthesizer, mean_pool, residual,
};

use super::Check;

/// Columns: two vectors and a part of one.
const N: usize = 11;
type Row = [f32; N];

/// Four rows, which a product takes at once, and one; the sum of each is 0.
const X: [Row; 5] = times(64, true);

/// Small integers times so many steps of the subnormal numbers; zeros for the negative ones where these are not wanted.
const fn times(steps: u32, negative: bool) -> [Row; 5] {
    let (integers, mut row, mut i) = ([1, -1, 2, -2, 0, 4, -4, 1, 1, -1, -1_i32], [0.0; N], 0);
    while i < N {
        let size = steps * integers[i].unsigned_abs();
        row[i] = match integers[i] < 0 {
            true if negative => f32::from_bits(1 << 31 | size),
            true => 0.0,
            false => f32::from_bits(size),
        };
        i += 1;
    }
    [row; 5]
}

pub fn subnormals(check: &mut Check<'_>) {
    let (x, plain) = (black_box(&X), Options::new());
    let (mut y, half, zeros) = ([[f32::NAN; N]; 5], black_box([0.5; N]), black_box([0.0; N]));

    // an eps of 1 is all that a norm divides by
    let done = RmsNorm::plain(black_box(1.0)).forward(&plain, x, &mut y);
    same(check, done, &y, &X, "RMS norm of subnormals");
    let done = RmsNorm::new(&half, black_box(1.0)).forward(&plain, x, &mut y);
    same(check, done, &y, &times(32, true), "RMS norm of subnormals, with a weight");
    let done = LayerNorm::with_parts(Some(&half), Some(&zeros), black_box(1.0)).forward(&plain, x, &mut y);
    same(check, done, &y, &times(32, true), "layer norm of subnormals");

    let done = Relu::apply(&plain, copied(&mut y, x));
    same(check, done, &y, &times(64, false), "ReLU of subnormals");
    let done = Gelu::apply(&plain, copied(&mut y, x));
    same(check, done, &y, &times(32, true), "GELU of subnormals");
    let done = GeluTanh::apply(&plain, copied(&mut y, x));
    same(check, done, &y, &times(32, true), "GELU of subnormals, tanh form");

    let one = black_box(core::array::from_fn(|i| core::array::from_fn(|j| if i == j { 1.0 } else { 0.0 })));
    let linear = Linear::<N, N>::without_bias(&one);
    let done = linear.forward(x, &mut y);
    same(check, done, &y, &X, "product with subnormals");
    let done = FeedForward::new(linear, Gelu, linear).forward(&plain, x, &mut y, check.scratch);
    same(check, done, &y, &times(32, true), "feed-forward layer of subnormals");
    copied(&mut y, x);
    let done = residual(&plain, x, &mut y);
    same(check, done, &y, &times(128, true), "residual connection of subnormals");
    let mut mean = [f32::NAN; N];
    let done = mean_pool(&plain, x, &mut mean);
    same(check, done, &[mean], &X[..1], "mean of subnormals");

    scores(check);
}

/// Subnormal numbers that are multiplied to scores of 1.
fn scores(check: &mut Check<'_>) {
    const HUGE: f32 = f32::from_bits(254 << 23); // 2^127
    const TINY: f32 = f32::from_bits(1 << 22); // 2^-127
    let every_other = |x: f32| core::array::from_fn(|j| if j % 2 == 1 { x } else { 0.0 });
    let (ones, tiny, zeros) = black_box(([every_other(1.0); N], [every_other(TINY); N], [[0.0; N]; N]));
    let [ones, tiny, none] = [&ones, &tiny, &zeros].map(|r| Random::<N, N>::new(r));
    let (_, expected) = weights_of(&ones, check.scratch);

    let (done, found) = weights_of(&Mixture::of(black_box(HUGE), tiny), check.scratch);
    same(check, done, &found, &expected, "mixture of subnormals");
    let (done, found) = weights_of(&Mixture::of(1.0, none).and(black_box(HUGE), tiny), check.scratch);
    same(check, done, &found, &expected, "mixture of subnormals, second part");

    let (tiny, huge) = (black_box(every_other(TINY)), black_box([HUGE]));
    let zeros_to_one = black_box([[0.0]; N]);
    let a = Dense::with_biases(&zeros, None, &zeros, Some(&tiny));
    let c = Dense::with_biases(&zeros, None, &zeros_to_one, Some(&huge));
    let (done, found) = weights_of(&FactorizedDense::<N, N, 1, N, N, N>::new(a, c), check.scratch);
    same(check, done, &found, &expected, "factorized scores of subnormals");

    // of four columns, whose sum is divided by 2
    let query = black_box([[0.0; 4]; N]);
    let query = Linear::with_bias(&query, Some(const { &[f32::MIN_POSITIVE; 4] }));
    let keys = black_box([every_other(0.25 * HUGE); 4]);
    let dot = DotProduct::<N, N, 4>::new(query, query).with_keys(&keys, N);
    let (done, found) = weights_of(&dot, check.scratch);
    same(check, done, &found, &expected, "dot products of subnormals");
}

fn copied<'a>(y: &'a mut [Row; 5], x: &[Row; 5]) -> &'a mut [f32] {
    *y = *x;
    black_box(y.as_flattened_mut())
}

fn weights_of<T: Synthesizer<Row = Row>>(layer: &T, scratch: &mut [f32]) -> (Result<(), Error>, [Row; 5]) {
    let mut weights = [[f32::NAN; N]; 5];
    (layer.attention_weights(&Options::new(), &[[0.0; N]; 5], N, &mut weights, scratch), weights)
}

fn same(check: &mut Check<'_>, done: Result<(), Error>, found: &[Row], expected: &[Row], what: &str) {
    let mut bits = found.as_flattened().iter().zip(expected.as_flattened());
    check.that(done.is_ok() && bits.all(|(found, expected)| found.to_bits() == expected.to_bits()), what);
}
