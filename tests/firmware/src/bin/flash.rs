//! One Dense layer and nothing else: its code is what this has more than `flash_empty`. Features add a second size, or
//! a second variant, to see what these cost.
#![no_std]
#![no_main]

use core::hint::black_box;

use synthesizer_attention::{Dense, Random, Synthesizer};
use synthesizer_attention_firmware as board;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    semihosting::process::exit(101)
}

#[board::entry]
fn main() -> ! {
    let mut failed = run::<16, 16>(dense::<16, 16, 16>());
    if cfg!(feature = "second-size") {
        failed |= run::<12, 20>(dense::<18, 12, 14>());
    }
    if cfg!(feature = "second-variant") {
        failed |= run::<16, 16>(Random::<16, 16>::new(anything()));
    }
    semihosting::process::exit(i32::from(failed))
}

fn dense<const L: usize, const D: usize, const H: usize>() -> Dense<'static, L, D, H> {
    let ([b1], [b2]) = (anything::<1, H>(), anything::<1, L>());
    Dense::new(anything(), b1, anything(), b2)
}

/// Weights of which the compiler knows nothing, and which are no part of the program. They are never read: this is
/// linked and not run.
fn anything<const R: usize, const C: usize>() -> &'static [[f32; C]; R] {
    // SAFETY: an address that is aligned, and not null; all bits are floats.
    unsafe { &*black_box(core::ptr::without_provenance(0x2000_0000)) }
}

/// Whether the layer refuses.
fn run<const D: usize, const M: usize>(layer: impl Synthesizer<Row = [f32; D]>) -> bool {
    let (x, v) = (&anything::<8, D>()[..], &anything::<8, M>()[..]);
    layer.forward(x, v, black_box(&mut [[0.0; M]; 8][..]), black_box(&mut [0.0; 256][..])).is_err()
}
