//! One Dense layer and nothing else: its code is what this has more than `flash_empty`.
#![no_std]
#![no_main]

use core::hint::black_box;

use synthesizer_attention::{Dense, Synthesizer};
use synthesizer_attention_firmware as board;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    semihosting::process::exit(101)
}

#[board::entry]
fn main() -> ! {
    const N: usize = 16;
    static W: [[f32; N]; N] = [[0.5; N]; N];
    static B: [f32; N] = [0.5; N];
    let layer = Dense::new(&W, &B, &W, &B);
    let x = black_box(&W);
    let done = layer.forward(&x[..], &x[..], black_box(&mut [[0.0; N]; N][..]), black_box(&mut [0.0; 256][..]));
    semihosting::process::exit(i32::from(done.is_err()))
}
