//! Links only if nothing in any forward path can panic: the panic handler calls a function that does not exist.
#![no_std]
#![no_main]

use core::hint::black_box;

use synthesizer_attention::{
    Activation, Dense, DenseHeads, DotProduct, EncoderBlock, Error, FactorizedDense, FactorizedRandom, FeedForward,
    FrozenFor, Gelu, GeluTanh, LayerNorm, Linear, Mixture, MultiHead, Norm, Options, Positional, Random, Relu, RmsNorm,
    Synthesizer, mean_pool, residual,
};
use synthesizer_attention_firmware as board;

unsafe extern "C" {
    safe fn a_forward_path_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    a_forward_path_can_panic()
}

const L: usize = 12;
const D: usize = 7;
const H: usize = 9;
const M: usize = 5;

#[board::entry]
fn main() -> ! {
    let _ = black_box(all());
    semihosting::process::exit(0)
}

/// Every public function that computes, with everything that may be anything.
fn all() -> Result<(), Error> {
    let options = black_box(Options::new().causal().first(1).key_mask(&[true, false]));
    let (x, v) = (black_box(&[[1.0; D]; L][..]), black_box(&[[1.0; M]; L][..]));
    let mut scratch = [0.0; 1024];
    let scratch = black_box(&mut scratch[..]);
    let (w1, b1) = (black_box(&[[1.0; H]; D]), black_box(Some(&[1.0; H])));
    let (w2, b2) = (black_box(&[[1.0; L]; H]), black_box(Some(&[1.0; L])));
    let r = black_box(&[[1.0; L]; L]);
    let mut keys = [[0.0; L]; H];
    let keys = black_box(&mut keys);

    let dense = Dense::<L, D, H>::with_biases(w1, b1, w2, b2);
    let random = Random::<L, D>::new(r);
    let factorized_random = FactorizedRandom::<L, D, H>::new(black_box(&[[1.0; H]; L]), w2);
    let a = Dense::<4, D, H>::with_biases(w1, b1, black_box(&[[1.0; 4]; H]), black_box(None));
    let c = Dense::<3, D, H>::with_biases(w1, b1, black_box(&[[1.0; 3]; H]), black_box(None));
    let factorized_dense = FactorizedDense::<L, 4, 3, D, H, H>::new(a, c);
    let linear = Linear::with_bias(w1, b1);
    let dot = DotProduct::<L, D, H>::new(linear, linear);
    dot.project_keys(black_box(0), x, keys)?;
    let dot = dot.with_keys(keys, black_box(L));
    let mixture = Mixture::of(black_box(1.0), random).and(black_box(1.0), dense).and(black_box(1.0), dot);
    let positional = Mixture::of(black_box(1.0), random).and(black_box(1.0), factorized_random);

    linear.forward_with(&options, x, black_box(&mut [[0.0; H]; L][..]))?;
    layer(&dense, &options, x, v, scratch)?;
    layer(&random, &options, x, v, scratch)?;
    layer(&factorized_random, &options, x, v, scratch)?;
    layer(&factorized_dense, &options, x, v, scratch)?;
    layer(&dot, &options, x, v, scratch)?;
    layer(&mixture, &options, x, v, scratch)?;
    frozen(&random, &options, x, v, scratch)?;
    frozen(&positional, &options, x, v, scratch)?;
    encoder(Relu, LayerNorm::plain(), &options, scratch)?;
    encoder(Gelu, RmsNorm::plain(black_box(1e-5)), &options, scratch)?;
    encoder(GeluTanh, LayerNorm::plain(), &options, scratch)
}

/// Width of the encoder's rows.
const W: usize = 6;

fn encoder<A: Activation + Copy, N: Norm<Row = [f32; W]> + Copy>(
    activation: A,
    norm: N,
    options: &Options<'_>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let (w, b) = (black_box(&[[1.0; W]; W]), black_box(Some(&[1.0; W])));
    let linear = Linear::with_bias(w, b);
    let heads = DenseHeads::<L, W, W, 3, 2>::new(linear, black_box(&[[[1.0; L]; 3]; 2]), black_box(None));
    let attention = MultiHead::new(heads, linear, linear);
    let forward = FeedForward::new(Linear::with_bias(black_box(&[[1.0; H]; W]), None), activation, {
        Linear::with_bias(black_box(&[[1.0; W]; H]), None)
    });

    let x = black_box(&[[1.0; W]; L][..]);
    let (mut y, mut v, mut weights) = ([[0.0; W]; L], [[0.0; W]; L], [[0.0; L]; 2 * L]);
    let (y, v, weights) = (black_box(&mut y[..]), black_box(&mut v[..]), black_box(&mut weights[..]));
    attention.forward(x, y, scratch)?;
    attention.forward_with(options, x, y, scratch)?;
    attention.project_values(options, x, v)?;
    attention.attend(options, x, v, y, scratch)?;
    attention.forward_cached(options, x, v, y, scratch)?;
    attention.attention_weights(options, x, black_box(L), weights, scratch)?;
    norm.forward(options, x, y)?;
    forward.forward(options, x, y, scratch)?;
    residual(options, x, y)?;
    mean_pool(options, x, black_box(&mut [0.0; W]))?;
    for block in [
        EncoderBlock::post_norm(attention, norm, forward, norm),
        EncoderBlock::pre_norm(norm, attention, norm, forward),
    ] {
        block.forward(y, scratch)?;
        block.forward_with(options, y, scratch)?;
        block.forward_cached(options, y, v, scratch)?;
    }
    Ok(())
}

fn layer<T: Synthesizer<Row = [f32; D]>>(
    layer: &T,
    options: &Options<'_>,
    x: &[[f32; D]],
    v: &[[f32; M]],
    scratch: &mut [f32],
) -> Result<(), Error> {
    let mut y = [[0.0; M]; L];
    let y = black_box(&mut y[..]);
    #[cfg(feature = "plant")]
    y[black_box(L)].fill(0.0);
    layer.forward(x, v, y, scratch)?;
    layer.forward_with(options, x, v, y, scratch)?;
    layer.attention_weights(options, x, black_box(L), black_box(&mut [[0.0; L]; L][..]), scratch)
}

fn frozen<T: Positional<Row = [f32; D]>>(
    positional: &T,
    options: &Options<'_>,
    x: &[[f32; D]],
    v: &[[f32; M]],
    scratch: &mut [f32],
) -> Result<(), Error> {
    let weights = &mut black_box([[0.0; L]; L]);
    let taken = positional.freeze(black_box(FrozenFor::Causal), weights, scratch)?;
    layer(&taken, options, x, v, scratch)
}
