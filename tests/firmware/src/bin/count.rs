//! Instructions and stack of the whole forward pass of a Dense layer, L, D, H = M, and of the other variants' stack.
#![no_std]
#![no_main]

use core::hint::black_box;

use semihosting::{println, process};
use synthesizer_attention::{Dense, DotProduct, FactorizedRandom, Linear, Mixture, Random, Synthesizer};
use synthesizer_attention_firmware::{self as board, Counter};

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    board::panicked(info)
}

#[board::entry]
fn main() -> ! {
    let mut counter = Counter::start();
    measure::<4, 5, 5>(&mut counter);
    measure::<16, 16, 16>(&mut counter);
    measure::<16, 32, 32>(&mut counter);
    measure::<29, 32, 32>(&mut counter);
    measure::<32, 64, 64>(&mut counter);
    measure::<64, 64, 64>(&mut counter);

    let random = Random::<16, 16>::new(const { &numbers(1) });
    let factors = FactorizedRandom::<16, 16, 16>::new(const { &numbers(2) }, const { &numbers(3) });
    let linear = Linear::without_bias(const { &numbers::<16, 16>(4) });
    let dot = DotProduct::new(linear, linear);
    let mut keys = [[0.0; 16]; 16];
    dot.project_keys(0, const { &numbers::<16, 16>(5) }, &mut keys).unwrap();
    let dense = Dense::<16, 16, 16>::without_bias(const { &numbers(6) }, const { &numbers(7) });
    stack("Random", &random);
    stack("FactorizedRandom", &factors);
    stack("DotProduct", &dot.with_keys(&keys, 16));
    stack("Mixture", &Mixture::of(0.25, random).and(0.25, dense).and(0.5, dot.with_keys(&keys, 16)));
    process::exit(0)
}

/// Numbers between -1 and 1.
const fn numbers<const R: usize, const C: usize>(seed: u32) -> [[f32; C]; R] {
    let mut rows = [[0.0; C]; R];
    let mut state = seed;
    let mut i = 0;
    while i < R * C {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        rows[i / C][i % C] = (state >> 9) as f32 / (1 << 22) as f32 - 1.0;
        i += 1;
    }
    rows
}

fn measure<const L: usize, const D: usize, const H: usize>(counter: &mut Counter) {
    let [[b1], [b2]] = const { [&numbers::<1, H>(1), &numbers::<1, H>(2)] };
    let b2 = core::array::from_fn::<_, L, _>(|j| b2[j % H]);
    let layer = Dense::<L, D, H>::new(const { &numbers(3) }, b1, const { &numbers(4) }, &b2);
    let (x, v) = const { (&numbers::<L, D>(5), &numbers::<L, D>(6)) };
    let (mut y, mut scratch) = ([[0.0; D]; L], [0.0; 512]);
    let scratch = &mut scratch[..Dense::<L, D, H>::SCRATCH];
    let mut forward = || layer.forward(black_box(x), black_box(v), black_box(&mut y), scratch).unwrap();
    forward();
    let instructions = counter.count(&mut forward);
    println!("dense {L},{D},{H} {instructions}");
    println!("stack Dense {}", board::stack_of(&mut forward));
}

fn stack<T: Synthesizer<Row = [f32; 16]>>(name: &str, layer: &T) {
    let (mut y, mut scratch) = ([[0.0; 16]; 16], [0.0; 512]);
    let x = const { &numbers::<16, 16>(5) };
    let mut forward = || layer.forward(black_box(x), black_box(x), black_box(&mut y), &mut scratch).unwrap();
    println!("stack {name} {}", board::stack_of(&mut forward));
}
