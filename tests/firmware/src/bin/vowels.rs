//! The trained model of `examples/vowels.rs` with its weights in flash, over all utterances of its test set: the same
//! classes and, to 5e-5, the same logits as PyTorch.
#![no_std]
#![no_main]

use core::hint::black_box;

use semihosting::{println, process};
use synthesizer_attention::Options;
use synthesizer_attention_firmware::{self as board, Counter};

#[path = "../../../../examples/vowels/flash.rs"]
mod flash;
#[path = "../../../../examples/vowels/model.rs"]
#[allow(dead_code, reason = "the example has more uses of it")]
mod model;

use model::{COEFFICIENTS, FRAMES, SPEAKERS, Vowels, best};

/// A tensor of the test set, as the checkpoint's bytes.
macro_rules! tensor {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name))
    };
}
static FRAMES_OF_ALL: &[u8] = tensor!("frames");
static LOGITS: &[u8] = tensor!("logits");
static LABEL: &[u8] = tensor!("label");
static LENGTH: &[u8] = tensor!("length");

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    board::panicked(info)
}

#[board::entry]
fn main() -> ! {
    let mut counter = Counter::start();
    let scratch = &mut [f32::NAN; Vowels::SCRATCH];
    let mut frames = rows::<COEFFICIENTS>(FRAMES_OF_ALL);
    let (mut right, mut same, mut difference) = (0, 0, 0.0_f32);
    let (mut least, mut most, mut sum, mut stack) = (u64::MAX, 0, 0, 0);
    for ((length, label), theirs) in LENGTH.iter().zip(LABEL).zip(rows::<SPEAKERS>(LOGITS)) {
        let mut x = [[0.0; COEFFICIENTS]; FRAMES];
        let x = &mut x[..usize::from(*length)];
        x.fill_with(|| frames.next().unwrap());
        let mut ours = [0.0; SPEAKERS];
        let mut run = || ours = flash::VOWELS.logits(&Options::new(), black_box(&*x), scratch).unwrap();
        let instructions = counter.count(&mut run);
        (least, most, sum) = (least.min(instructions), most.max(instructions), sum + instructions);
        stack = stack.max(board::stack_of(&mut run));
        right += u32::from(best(&ours) == usize::from(*label));
        same += usize::from(best(&ours) == best(&theirs));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((ours - theirs).abs() <= 5e-5, "a logit of {ours} where PyTorch has {theirs}");
            difference = difference.max((ours - theirs).abs());
        }
    }
    let count = LENGTH.len();
    println!("{right} of {count} utterances right, {same} as PyTorch, largest difference of a logit {difference:.2e}");
    println!("instructions an utterance: {} ({least} to {most})", sum / count as u64);
    println!(
        "bytes: {} of weights in flash, {} of scratch, {stack} of stack",
        size_of_val(&flash::WEIGHTS),
        4 * Vowels::SCRATCH
    );
    process::exit(i32::from(same != count))
}

/// Rows of floats out of a checkpoint's bytes.
fn rows<const C: usize>(bytes: &'static [u8]) -> impl Iterator<Item = [f32; C]> {
    let mut floats = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    (0..bytes.len() / (4 * C)).map(move |_| core::array::from_fn(|_| floats.next().unwrap_or(f32::NAN)))
}
