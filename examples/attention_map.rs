//! Draws what each head of the vowels model looks at in one utterance.
//!
//!     cargo run --release --features safetensors --example attention_map [utterance] [file.png]
//!
//! A row of panels for each layer, a panel for each head: row i is the query frame i, column j the key frame j, and the
//! colour the weight that i gives to j. A Dense Synthesizer computes a whole row from frame i alone.
#![allow(dead_code, unreachable_pub, reason = "the model is shared with another example")]

use std::{env, error::Error, path::PathBuf};

use synthesizer_attention::{Options, checkpoint::Checkpoint};

#[path = "attention_map/canvas.rs"]
mod canvas;
#[path = "vowels/data.rs"]
mod data;
#[path = "vowels/model.rs"]
mod model;

use canvas::{Align, Canvas, Colour, text_width};
use model::{FRAMES, HEADS, Vowels, best};

const LAYERS: usize = 2;
/// softmax(B) of every head of a layer: `[HEADS, frames, FRAMES]`.
type Weights = Vec<[f32; FRAMES]>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let number: usize = arguments.next().map_or(Ok(1), |number| number.parse())?;
    let path = arguments.next().map_or_else(|| PathBuf::from("attention_map.png"), PathBuf::from);

    let file = data::read("vowels.safetensors")?;
    let weights = data::Weights::load(&Checkpoint::new(&file)?)?;
    let model = weights.model();
    let utterances = data::utterances()?;
    let utterance = number.checked_sub(1).and_then(|i| utterances.get(i)).ok_or("utterances are 1 to 370")?;
    let frames = utterance.frames.len();

    let options = Options::new();
    let mut scratch = vec![0.0; Vowels::SCRATCH];
    let taken_for = best(&model.logits(&options, &utterance.frames, &mut scratch)?) + 1;
    let mut layers = Vec::new();
    let (rows, scratch) = model.embed(&options, &utterance.frames, &mut scratch)?;
    for block in &model.blocks {
        let mut weights: Weights = vec![[0.0; FRAMES]; HEADS * frames];
        block.attention().attention_weights(&options, rows, frames, &mut weights, scratch)?;
        layers.push(weights);
        block.forward(rows, scratch)?;
    }

    let title = format!("Dense Synthesizer attention, utterance {number} of speaker {}", utterance.speaker + 1);
    let subtitle = format!("{frames} frames, taken for speaker {taken_for}");
    draw(&layers, frames, &title, &subtitle).write(&path)?;
    println!("{}: {title}, {subtitle}", path.display());
    Ok(())
}

const INK: Colour = [34, 34, 40];
const FAINT: Colour = [110, 110, 120];
const PAPER: Colour = [255, 255, 255];

/// Pixels of a panel, at most.
const PANEL: usize = 340;
const GAP: usize = 46;
const LEFT: usize = 170;
const TOP: usize = 170;
const BAR: usize = 26;

fn draw(layers: &[Weights], frames: usize, title: &str, subtitle: &str) -> Canvas {
    let cell = PANEL / frames;
    let panel = cell * frames;
    // the bar ends at a round number above the largest weight
    let largest = layers.iter().flatten().flatten().fold(0.0_f32, |a, b| a.max(*b));
    let (step, top) = scale(largest);
    let right = LEFT + HEADS * panel + (HEADS - 1) * GAP;
    let below = TOP + LAYERS * panel + (LAYERS - 1) * GAP;
    let mut canvas = Canvas::new(right + 190, below + 110, PAPER);

    canvas.text(LEFT, 48, Align::Left, 4, INK, title);
    canvas.text(LEFT, 92, Align::Left, 3, FAINT, subtitle);
    for (layer, weights) in layers.iter().enumerate() {
        let y = TOP + layer * (panel + GAP);
        canvas.text_up(40, y + panel / 2, 4, INK, &format!("layer {}", layer + 1));
        canvas.text_up(86, y + panel / 2, 3, FAINT, "query frame");
        for head in 0..HEADS {
            let x = LEFT + head * (panel + GAP);
            if layer == 0 {
                canvas.text(x + panel / 2, y - 26, Align::Centre, 3, INK, &format!("head {}", head + 1));
            }
            canvas.frame(x, y, panel, panel, 2, INK);
            for (i, row) in weights.iter().skip(head * frames).take(frames).enumerate() {
                for (j, weight) in row.iter().take(frames).enumerate() {
                    canvas.fill(x + j * cell, y + i * cell, cell, cell, colour(weight / top));
                }
            }
            for frame in ticks(frames) {
                let middle = frame * cell - cell / 2;
                let number = frame.to_string();
                canvas.fill(x + middle - 1, y + panel + 2, 2, 7, INK);
                if layer + 1 == LAYERS {
                    canvas.text(x + middle, y + panel + 26, Align::Centre, 2, INK, &number);
                }
                canvas.fill(x - 9, y + middle - 1, 7, 2, INK);
                if head == 0 {
                    canvas.text(x - 14, y + middle, Align::Right, 2, INK, &number);
                }
            }
            if layer + 1 == LAYERS {
                canvas.text(x + panel / 2, y + panel + 62, Align::Centre, 3, FAINT, "key frame");
            }
        }
    }

    let (x, height) = (right + 50, below - TOP);
    canvas.frame(x, TOP, BAR, height, 2, INK);
    for row in 0..height {
        let share = 1.0 - row as f32 / (height - 1) as f32;
        canvas.fill(x, TOP + row, BAR, 1, colour(share));
    }
    let mut value = 0.0;
    while value < top + step / 2.0 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a pixel's row")]
        let y = TOP + ((1.0 - value / top) * (height - 1) as f32).round() as usize;
        canvas.fill(x + BAR + 2, y - 1, 7, 2, INK);
        canvas.text(x + BAR + 16, y, Align::Left, 2, INK, &format!("{value:.2}"));
        value += step;
    }
    let label = "weight";
    canvas.text(x + BAR / 2 + text_width(label, 3) / 2, TOP - 30, Align::Right, 3, INK, label);
    canvas
}

/// Steps of the colour bar, and its end: a whole number of steps.
fn scale(largest: f32) -> (f32, f32) {
    let step = [0.01, 0.02, 0.05, 0.1, 0.2].into_iter().find(|step| largest / step <= 6.0).unwrap_or(0.2);
    (step, (largest / step).ceil().max(1.0) * step)
}

/// The frames to number: the first, and every fifth.
fn ticks(frames: usize) -> impl Iterator<Item = usize> {
    (1..=frames).filter(|frame| *frame == 1 || frame % 5 == 0)
}

/// From white over orange and red to near black, evenly darker, so that it prints in grey.
fn colour(share: f32) -> Colour {
    const STOPS: [[f32; 3]; 6] = [
        [255.0, 252.0, 245.0],
        [253.0, 219.0, 164.0],
        [247.0, 158.0, 96.0],
        [214.0, 79.0, 71.0],
        [133.0, 26.0, 83.0],
        [38.0, 8.0, 46.0],
    ];
    let along = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f32;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of stops")]
    let from = (along as usize).min(STOPS.len() - 2);
    let part = along - from as f32;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 255")]
    std::array::from_fn(|i| (STOPS[from][i] * (1.0 - part) + STOPS[from + 1][i] * part).round() as u8)
}
