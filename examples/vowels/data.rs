//! The checkpoint and the test set of `examples/data`.

use std::{error::Error, fs};

use safetensors::SafeTensors;
use synthesizer_attention::checkpoint::{self, Checkpoint, LayerNormWeights, LinearWeights};

use crate::model::{COEFFICIENTS, FRAMES, HEADS, Layer, SPEAKERS, Vowels};

/// The model's weights, owned.
pub struct Weights {
    embed: LinearWeights<COEFFICIENTS, 32>,
    pos: Box<[[f32; 32]; FRAMES]>,
    layers: [LayerWeights; 2],
    head: LinearWeights<32, SPEAKERS>,
}

struct LayerWeights {
    w1: LinearWeights<32, 32>,
    w2: Box<[[[f32; FRAMES]; 8]; HEADS]>,
    b2: Box<[[f32; FRAMES]; HEADS]>,
    value: LinearWeights<32, 32>,
    proj: LinearWeights<32, 32>,
    norm1: LayerNormWeights<32>,
    ffn_0: LinearWeights<32, 64>,
    ffn_2: LinearWeights<64, 32>,
    norm2: LayerNormWeights<32>,
}

impl Weights {
    pub fn load(checkpoint: &Checkpoint<'_>) -> Result<Self, checkpoint::Error> {
        let layer = |i: usize| {
            let name = |part: &str| format!("layers.{i}.{part}");
            Ok(LayerWeights {
                w1: checkpoint.linear(&name("synth.w1"))?,
                w2: checkpoint.input_major(&name("synth.w2"))?,
                b2: checkpoint.tensor(&name("synth.b2"))?,
                value: checkpoint.linear(&name("synth.value"))?,
                proj: checkpoint.linear(&name("synth.proj"))?,
                norm1: checkpoint.layer_norm(&name("norm1"))?,
                ffn_0: checkpoint.linear(&name("ffn.0"))?,
                ffn_2: checkpoint.linear(&name("ffn.2"))?,
                norm2: checkpoint.layer_norm(&name("norm2"))?,
            })
        };
        Ok(Self {
            embed: checkpoint.linear("embed")?,
            pos: checkpoint.tensor("pos")?,
            layers: [layer(0)?, layer(1)?],
            head: checkpoint.linear("head")?,
        })
    }

    pub fn model(&self) -> Vowels<'_> {
        let block = |i: usize| {
            let LayerWeights { w1, w2, b2, value, proj, norm1, ffn_0, ffn_2, norm2 } = &self.layers[i];
            Layer {
                w1: w1.layer(),
                w2,
                b2,
                value: value.layer(),
                proj: proj.layer(),
                norm1: norm1.layer(),
                ffn_0: ffn_0.layer(),
                ffn_2: ffn_2.layer(),
                norm2: norm2.layer(),
            }
            .block()
        };
        Vowels { embed: self.embed.layer(), pos: &self.pos, blocks: [block(0), block(1)], head: self.head.layer() }
    }
}

/// A file of `examples/data`.
pub fn read(name: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let path = format!("{}/examples/data/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read(&path).map_err(|e| format!("{path}: {e}").into())
}

pub struct Utterance {
    pub frames: Vec<[f32; COEFFICIENTS]>,
    pub speaker: usize,
    /// What PyTorch makes of it.
    pub logits: [f32; SPEAKERS],
}

pub fn utterances() -> Result<Vec<Utterance>, Box<dyn Error>> {
    let file = read("vowels_frames.safetensors")?;
    let tensors = SafeTensors::deserialize(&file)?;
    let floats = |name: &str| -> Result<Vec<f32>, Box<dyn Error>> {
        Ok(tensors.tensor(name)?.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    };
    let (frames, logits) = (floats("frames")?, floats("logits")?);
    let mut frames = frames.as_chunks().0.iter();
    let labels = tensors.tensor("label")?.data().iter();
    let lengths = tensors.tensor("length")?.data().iter();
    Ok(lengths
        .zip(labels)
        .zip(logits.as_chunks().0)
        .map(|((length, label), logits)| Utterance {
            frames: frames.by_ref().take(usize::from(*length)).copied().collect(),
            speaker: usize::from(*label),
            logits: *logits,
        })
        .collect())
}
