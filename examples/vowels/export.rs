//! For a `build.rs`: the weights of `vowels.safetensors` as Rust source.

use synthesizer_attention::checkpoint::{Checkpoint, Error, RustSource};

/// What `flash.rs` includes.
pub fn export(file: &[u8]) -> Result<String, Error> {
    let mut source = RustSource::new(Checkpoint::new(file)?.finite());
    source.linear("embed")?.tensor("pos")?;
    for i in 0..2 {
        let name = |part: &str| format!("layers.{i}.{part}");
        source.linear(&name("synth.w1"))?.input_major(&name("synth.w2"))?.tensor(&name("synth.b2"))?;
        source.linear(&name("synth.value"))?.linear(&name("synth.proj"))?.layer_norm(&name("norm1"))?;
        source.linear(&name("ffn.0"))?.linear(&name("ffn.2"))?.layer_norm(&name("norm2"))?;
    }
    source.linear("head")?;
    Ok(source.to_string())
}
