//! A model trained in PyTorch, run from its checkpoint: which of nine speakers said an utterance of 7 to 29 frames.
//!
//!     cargo run --release --features safetensors --example vowels
//!
//! Prints the confusion matrix of the 370 test utterances, the largest difference from PyTorch's logits, the time an
//! utterance takes, and what a second thread brings. `examples/data` has the checkpoint and the script that trained it.
#![allow(dead_code, unreachable_pub, clippy::cast_precision_loss, reason = "shared with another example")]

use std::{error::Error, time::Instant};

use rayon::prelude::*;
use synthesizer_attention::{Backend, Options, checkpoint::Checkpoint};

#[path = "vowels/data.rs"]
mod data;
#[path = "vowels/model.rs"]
mod model;

use data::{Utterance, Weights};
use model::{SPEAKERS, Vowels, best};

fn main() -> Result<(), Box<dyn Error>> {
    let file = data::read("vowels.safetensors")?;
    let weights = Weights::load(&Checkpoint::new(&file)?.finite())?;
    let model = weights.model();
    let utterances = data::utterances()?;
    println!(
        "{} parameters, {} utterances, backend {}, {} bytes of scratch",
        Vowels::PARAMETERS,
        utterances.len(),
        Backend::detect(),
        4 * Vowels::SCRATCH
    );

    let mut confusion = [[0_usize; SPEAKERS]; SPEAKERS];
    let mut difference = 0.0_f32;
    let mut scratch = vec![0.0; Vowels::SCRATCH];
    for utterance in &utterances {
        let logits = model.logits(&Options::new(), &utterance.frames, &mut scratch)?;
        confusion[utterance.speaker][best(&logits)] += 1;
        for (ours, theirs) in logits.iter().zip(&utterance.logits) {
            difference = difference.max((ours - theirs).abs());
        }
    }

    println!("\nspeaker  taken for  1   2   3   4   5   6   7   8   9");
    for (speaker, row) in confusion.iter().enumerate() {
        let row: String = row.iter().map(|n| if *n == 0 { "   .".into() } else { format!("{n:4}") }).collect();
        println!("{:7}         {row}", speaker + 1);
    }
    let right: usize = (0..SPEAKERS).map(|i| confusion[i][i]).sum();
    println!("\naccuracy {:.2} % ({right} of {})", 100.0 * right as f64 / utterances.len() as f64, utterances.len());
    println!("largest difference from PyTorch's logits: {difference:.2e}");

    println!("\nmicroseconds an utterance ({:.1} frames on average), best of 20:", mean_frames(&utterances));
    for backend in Backend::available() {
        let options = Options::new().backend(backend);
        let pass = || utterances.iter().try_for_each(|u| model.logits(&options, &u.frames, &mut scratch).map(drop));
        println!("{:>10} {:8.2}", backend.name(), best_of(20, pass)? / utterances.len() as f64);
    }
    threads(&model, &utterances)
}

fn mean_frames(utterances: &[Utterance]) -> f64 {
    utterances.iter().map(|u| u.frames.len()).sum::<usize>() as f64 / utterances.len() as f64
}

/// Microseconds of the fastest of `count` runs.
fn best_of<E>(count: usize, mut run: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut best = f64::INFINITY;
    for _ in 0..count {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best * 1e6)
}

/// One model, borrowed by all threads; each has a scratch buffer of its own.
fn threads(model: &Vowels<'_>, utterances: &[Utterance]) -> Result<(), Box<dyn Error>> {
    let batch: Vec<&Utterance> = (0..4).flat_map(|_| utterances).collect();
    let pools = [1, 2]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build())
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let mut seconds = [f64::INFINITY; 2];
    // turn and turn about, so that both see the same machine
    for _ in 0..100 {
        for (pool, seconds) in pools.iter().zip(&mut seconds) {
            let pass = || {
                pool.install(|| {
                    batch.par_chunks(37).try_for_each(|part| {
                        let mut scratch = vec![0.0; Vowels::SCRATCH];
                        part.iter().try_for_each(|u| model.logits(&Options::new(), &u.frames, &mut scratch).map(drop))
                    })
                })
            };
            *seconds = seconds.min(best_of(1, pass)? / 1e6);
        }
    }
    println!("\nutterances a second, a batch of {} over rayon:", batch.len());
    let [one, two] = seconds;
    println!("  1 thread {:10.0}", batch.len() as f64 / one);
    println!(" 2 threads {:10.0}   {:.2} times one", batch.len() as f64 / two, one / two);
    Ok(())
}
