//! Golden cases of every variant, the special values of the contract, and rows one at a time, on the board itself.
#![no_std]
#![no_main]

use semihosting::{println, process};
use synthesizer_attention::{
    Dense, DenseHeads, DotProduct, EncoderBlock, Error, FactorizedDense, FactorizedRandom, FeedForward, FrozenFor,
    Gelu, GeluTanh, LayerNorm, Linear, Mixture, MultiHead, Options, Positional, Random, Relu, RmsNorm, Synthesizer,
};
use synthesizer_attention_firmware as board;

#[path = "check/contract.rs"]
mod contract;
#[path = "check/subnormals.rs"]
mod subnormals;

include!(concat!(env!("OUT_DIR"), "/golden.rs"));

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    board::panicked(info)
}

#[board::entry]
fn main() -> ! {
    let mut check = Check { passed: 0, failed: 0, scratch: &mut [f32::NAN; 4096] };
    golden(&mut check);
    contract::contract(&mut check);
    subnormals::subnormals(&mut check);
    println!("{} passed, {} failed", check.passed, check.failed);
    process::exit(i32::from(check.failed > 0 || check.passed < 206))
}

/// Counts what is right and what is not.
struct Check<'a> {
    passed: u32,
    failed: u32,
    scratch: &'a mut [f32],
}

impl Check<'_> {
    fn that(&mut self, right: bool, what: &str) {
        if right {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("FAILED: {what}");
        }
    }

    /// The answer is within the tolerance, and a row alone, in the least scratch, gives the same bits.
    #[allow(clippy::too_many_arguments, reason = "a call's matrices and its answer")]
    fn layer<T: Synthesizer, const M: usize>(
        &mut self,
        name: &str,
        layer: &T,
        (options, first): (&Options<'_>, usize),
        x: &[T::Row],
        v: &[[f32; M]],
        expected: &[[f64; M]],
        tolerance: f64,
    ) {
        let mut y = [[f32::NAN; M]; 32];
        let y = &mut y[..x.len()];
        self.scratch.fill(f32::NAN);
        let done = layer.forward_with(options, x, v, y, self.scratch);
        self.near(name, done, y, expected, tolerance);

        let mut same = true;
        for (i, (x, y)) in x.iter().zip(&*y).enumerate() {
            let mut alone = [[f32::NAN; M]];
            let scratch = &mut self.scratch[..T::scratch_len(1)];
            scratch.fill(f32::NAN);
            let result =
                layer.forward_with(&options.first(first + i), core::slice::from_ref(x), v, &mut alone, scratch);
            same &= result.is_ok() && alone[0].map(f32::to_bits) == y.map(f32::to_bits);
        }
        self.that(same, name);
    }

    fn near<const M: usize>(
        &mut self,
        name: &str,
        done: Result<(), Error>,
        y: &[[f32; M]],
        expected: &[[f64; M]],
        tolerance: f64,
    ) {
        let error = |(y, expected): (&f32, &f64)| (f64::from(*y) - expected).abs();
        let near = y.as_flattened().iter().zip(expected.as_flattened()).map(error).all(|error| error <= tolerance);
        self.that(done.is_ok() && near, name);
    }

    /// Projects the keys of `x` one at a time, and all at once.
    fn keys<const L: usize, const D: usize, const K: usize>(
        &mut self,
        name: &str,
        layer: &DotProduct<'_, L, D, K>,
        x: &[[f32; D]],
        keys: &mut [[f32; L]; K],
    ) {
        let mut steps = [[f32::NAN; L]; K];
        let one = |(i, x): (usize, &[f32; D])| layer.project_keys(i, &[*x], &mut steps).is_ok();
        let right = x.iter().enumerate().all(one) && layer.project_keys(0, x, keys).is_ok();
        let bits = |keys: &[[f32; L]; K]| keys.map(|row| row.map(f32::to_bits));
        self.that(right && bits(&steps) == bits(keys), name);
    }
}
