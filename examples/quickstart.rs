//! One Dense Synthesizer layer on a published worked example: four rows of five numbers.
//!
//! The example gives X, V and, to four digits, Y, but not the weights it was made with. Those below were fitted to it:
//! with them the layer gives the printed Y.
//!
//!     cargo run --release --example quickstart
#![allow(clippy::unreadable_literal, clippy::excessive_precision, reason = "weights as an export prints them")]

use std::fmt::Display;

use synthesizer_attention::weights::input_major;
use synthesizer_attention::{Backend, Dense, Error, Options, Synthesizer};

/// Rows: the maximum length, and here all of it is used.
const L: usize = 4;
/// Width of a row of X.
const D: usize = 5;
/// Width of the hidden layer.
const H: usize = 4;
/// Width of a row of V, and so of Y.
const M: usize = 5;

const X: [[f32; D]; L] = [
    [0.0844, 0.2683, 0.4299, 0.1827, 0.1188],
    [0.2793, 0.0389, 0.3834, 0.9897, 0.4197],
    [0.142, 0.8051, 0.1601, 0.3299, 0.334],
    [0.8908, 0.1066, 0.114, 0.7145, 0.3619],
];

const V: [[f32; M]; L] = [
    [0.3806, 0.1775, 0.5457, 0.6746, 0.4505],
    [0.6309, 0.279, 0.7215, 0.4283, 0.5853],
    [0.7548, 0.6887, 0.0426, 0.1057, 0.7895],
    [0.1881, 0.5334, 0.6834, 0.4845, 0.196],
];

/// The answer as printed.
const PRINTED: [[f32; M]; L] = [
    [0.5371, 0.4528, 0.4560, 0.3735, 0.5492],
    [0.5426, 0.4434, 0.4625, 0.3770, 0.5536],
    [0.5362, 0.4477, 0.4658, 0.3769, 0.5468],
    [0.5430, 0.4461, 0.4559, 0.3755, 0.5551],
];

// PyTorch writes a linear layer's weight as [out, in]; the crate reads [in, out]. Converted when this is compiled, the
// weights are constants of the program: on a microcontroller they stay in flash.
static W1: [[f32; H]; D] = input_major(&[
    [-0.774771, -0.68385333, -0.38541207, 0.17838818, 1.2699275],
    [-2.2526422, 1.9398328, -0.5552953, 0.061538108, -0.7191924],
    [0.3596134, -0.030075997, -1.0624173, 0.09110264, 0.77271855],
    [-0.4979898, -1.9447138, 2.4379091, -1.1337606, -0.36668602],
]);
static B1: [f32; H] = [0.42232415, 0.42788374, 0.44051495, 0.16020109];
static W2: [[f32; L]; H] = input_major(&[
    [-0.25038767, -0.1375279, -0.24873191, -0.5572366],
    [0.21199872, 0.066393584, 0.16468385, 0.19745554],
    [0.19139001, 0.060741477, 0.29255712, 0.5886366],
    [-0.15300106, 0.010392832, -0.20850906, -0.22885552],
]);
static B2: [f32; L] = [0.0; L];

static LAYER: Dense<L, D, H> = Dense::new(&W1, &B1, &W2, &B2);

fn main() -> Result<(), Error> {
    let mut scratch = [0.0; Dense::<L, D, H>::SCRATCH];
    let mut y = [[0.0; M]; L];
    LAYER.forward(&X, &V, &mut y, &mut scratch)?;

    // the weights softmax(B) that made it, for the curious
    let mut weights = [[0.0; L]; L];
    LAYER.attention_weights(&Options::new(), &X, L, &mut weights, &mut scratch)?;

    println!("Dense Synthesizer: Y = softmax(relu(X W1 + b1) W2 + b2) V");
    println!("backend  {} (this machine has: {})", Backend::detect(), list(Backend::available()));
    println!("X        [{L}, {D}]");
    println!("W1       [{D}, {H}]    b1 [{H}]");
    println!("W2       [{H}, {L}]    b2 [{L}]");
    println!("V        [{L}, {M}]");
    println!("scratch  {} floats", scratch.len());
    table("softmax(B): what share of each row of V goes into a row of Y", &weights);
    table("Y", &y);

    let difference = y.iter().flatten().zip(PRINTED.iter().flatten()).map(|(y, printed)| (y - printed).abs());
    println!("\nmax difference from the printed values: {:.1e}", difference.fold(0.0, f32::max));
    Ok(())
}

fn table<const C: usize>(title: &str, rows: &[[f32; C]]) {
    println!("\n{title} [{}, {C}]", rows.len());
    for row in rows {
        println!("  {}", list(row.map(|x| format!("{x:.4}"))));
    }
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join("  ")
}
