//! The model of `examples/data/train_vowels.py`: who of nine speakers said it. No `std` and no allocation, so that
//! firmware can have the same file.

use synthesizer_attention::{
    DenseHeads, EncoderBlock, Error, FeedForward, LayerNorm, Linear, MultiHead, Options, Relu, mean_pool, residual,
};

/// The most frames of an utterance.
pub const FRAMES: usize = 29;
/// Coefficients of a frame.
pub const COEFFICIENTS: usize = 12;
pub const SPEAKERS: usize = 9;
pub const HEADS: usize = 4;

const WIDTH: usize = 32;
const HEAD: usize = WIDTH / HEADS;
const HIDDEN: usize = 64;

pub type Heads<'a> = DenseHeads<'a, FRAMES, WIDTH, WIDTH, HEAD, HEADS>;
pub type Attention<'a> = MultiHead<Heads<'a>, Linear<'a, WIDTH, WIDTH>, Linear<'a, WIDTH, WIDTH>>;
pub type Block<'a> = EncoderBlock<Attention<'a>, LayerNorm<'a, WIDTH>, FeedForward<'a, WIDTH, HIDDEN, Relu>>;

/// What a block is made of, under the names of the checkpoint.
pub struct Layer<'a> {
    pub w1: Linear<'a, WIDTH, WIDTH>,
    pub w2: &'a [[[f32; FRAMES]; HEAD]; HEADS],
    pub b2: &'a [[f32; FRAMES]; HEADS],
    pub value: Linear<'a, WIDTH, WIDTH>,
    pub proj: Linear<'a, WIDTH, WIDTH>,
    pub norm1: LayerNorm<'a, WIDTH>,
    pub ffn_0: Linear<'a, WIDTH, HIDDEN>,
    pub ffn_2: Linear<'a, HIDDEN, WIDTH>,
    pub norm2: LayerNorm<'a, WIDTH>,
}

impl<'a> Layer<'a> {
    pub const fn block(self) -> Block<'a> {
        let heads = DenseHeads::new(self.w1, self.w2, Some(self.b2));
        let attention = MultiHead::new(heads, self.value, self.proj);
        EncoderBlock::post_norm(attention, self.norm1, FeedForward::new(self.ffn_0, Relu, self.ffn_2), self.norm2)
    }
}

pub struct Vowels<'a> {
    pub embed: Linear<'a, COEFFICIENTS, WIDTH>,
    pub pos: &'a [[f32; WIDTH]; FRAMES],
    pub blocks: [Block<'a>; 2],
    pub head: Linear<'a, WIDTH, SPEAKERS>,
}

impl Vowels<'_> {
    /// Numbers in the weights.
    pub const PARAMETERS: usize = Linear::<COEFFICIENTS, WIDTH>::PARAMETERS
        + FRAMES * WIDTH
        + 2 * Block::PARAMETERS
        + Linear::<WIDTH, SPEAKERS>::PARAMETERS;
    /// Floats of scratch: the rows, and what a block needs.
    pub const SCRATCH: usize = FRAMES * WIDTH + Block::SCRATCH;

    /// A logit for each speaker.
    pub fn logits(
        &self,
        options: &Options<'_>,
        frames: &[[f32; COEFFICIENTS]],
        scratch: &mut [f32],
    ) -> Result<[f32; SPEAKERS], Error> {
        let (rows, scratch) = self.embed(options, frames, scratch)?;
        for block in &self.blocks {
            block.forward_with(options, rows, scratch)?;
        }
        let (mut mean, mut logits) = ([[0.0; WIDTH]], [[0.0; SPEAKERS]]);
        mean_pool(options, rows, &mut mean[0])?;
        self.head.forward_with(options, &mean, &mut logits)?;
        Ok(logits[0])
    }

    /// The rows that go into the first block, and the rest of scratch.
    pub fn embed<'s>(
        &self,
        options: &Options<'_>,
        frames: &[[f32; COEFFICIENTS]],
        scratch: &'s mut [f32],
    ) -> Result<(&'s mut [[f32; WIDTH]], &'s mut [f32]), Error> {
        let given = scratch.len();
        let (rows, scratch) =
            scratch.split_at_mut_checked(FRAMES * WIDTH).ok_or(Error::Scratch { given, needed: Self::SCRATCH })?;
        let too_many = Error::Keys { given: frames.len(), most: FRAMES };
        let rows = rows.as_chunks_mut().0.get_mut(..frames.len()).ok_or(too_many)?;
        self.embed.forward_with(options, frames, rows)?;
        residual(options, self.pos.get(..frames.len()).unwrap_or(&[]), rows)?;
        Ok((rows, scratch))
    }
}

/// The index of the largest.
pub fn best(logits: &[f32; SPEAKERS]) -> usize {
    (1..SPEAKERS).fold(0, |best, i| if logits[i] > logits[best] { i } else { best })
}
