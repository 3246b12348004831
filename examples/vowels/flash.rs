//! For firmware: the model over weights in flash. `build.rs` wrote them with `export.rs`; nothing happens at start-up.

use synthesizer_attention::{LayerNorm, Linear};

use crate::model::{Layer, Vowels};

include!(concat!(env!("OUT_DIR"), "/weights.rs"));

pub static VOWELS: Vowels<'static> = {
    let w = &WEIGHTS;
    Vowels {
        embed: Linear::new(&w.embed_weight.0, &w.embed_bias.0),
        pos: &w.pos.0,
        blocks: [
            Layer {
                w1: Linear::new(&w.layers_0_synth_w1_weight.0, &w.layers_0_synth_w1_bias.0),
                w2: &w.layers_0_synth_w2.0,
                b2: &w.layers_0_synth_b2.0,
                value: Linear::new(&w.layers_0_synth_value_weight.0, &w.layers_0_synth_value_bias.0),
                proj: Linear::new(&w.layers_0_synth_proj_weight.0, &w.layers_0_synth_proj_bias.0),
                norm1: LayerNorm::new(&w.layers_0_norm1_weight.0, &w.layers_0_norm1_bias.0),
                ffn_0: Linear::new(&w.layers_0_ffn_0_weight.0, &w.layers_0_ffn_0_bias.0),
                ffn_2: Linear::new(&w.layers_0_ffn_2_weight.0, &w.layers_0_ffn_2_bias.0),
                norm2: LayerNorm::new(&w.layers_0_norm2_weight.0, &w.layers_0_norm2_bias.0),
            }
            .block(),
            Layer {
                w1: Linear::new(&w.layers_1_synth_w1_weight.0, &w.layers_1_synth_w1_bias.0),
                w2: &w.layers_1_synth_w2.0,
                b2: &w.layers_1_synth_b2.0,
                value: Linear::new(&w.layers_1_synth_value_weight.0, &w.layers_1_synth_value_bias.0),
                proj: Linear::new(&w.layers_1_synth_proj_weight.0, &w.layers_1_synth_proj_bias.0),
                norm1: LayerNorm::new(&w.layers_1_norm1_weight.0, &w.layers_1_norm1_bias.0),
                ffn_0: Linear::new(&w.layers_1_ffn_0_weight.0, &w.layers_1_ffn_0_bias.0),
                ffn_2: Linear::new(&w.layers_1_ffn_2_weight.0, &w.layers_1_ffn_2_bias.0),
                norm2: LayerNorm::new(&w.layers_1_norm2_weight.0, &w.layers_1_norm2_bias.0),
            }
            .block(),
        ],
        head: Linear::new(&w.head_weight.0, &w.head_bias.0),
    }
};
