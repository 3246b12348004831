use core::fmt::{self, Write};
use std::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Checkpoint, Error, transpose_last};

/// Weights as Rust source: one plain struct of aligned arrays and a `static` of it, for firmware to keep in flash.
///
/// Written by a `build.rs`, included by the firmware. Nothing is copied or converted at start-up; every array starts at
/// a multiple of 64 bytes; a shape that a layer does not fit is a type error, and size and alignment of the whole are
/// asserted when it is compiled. A tensor's field has its name with `_` for whatever Rust does not allow in one.
///
/// ```no_run
/// // build.rs; `include!(concat!(env!("OUT_DIR"), "/weights.rs"));` in the firmware
/// use synthesizer_attention::checkpoint::{Checkpoint, RustSource};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     println!("cargo::rerun-if-changed=model.safetensors");
///     let file = std::fs::read("model.safetensors")?;
///     let mut source = RustSource::new(Checkpoint::new(&file)?.finite());
///     source.linear("layers.0.w1")?.linear("layers.0.w2")?.tensor("pos")?;
///     std::fs::write(format!("{}/weights.rs", std::env::var("OUT_DIR")?), source.to_string())?;
///     Ok(())
/// }
/// ```
///
/// The firmware then has `WEIGHTS.layers_0_w1_weight`, an `Aligned<[[f32; H]; D]>` in the layers' own orientation, and
/// so on:
///
/// ```ignore
/// include!(concat!(env!("OUT_DIR"), "/weights.rs"));
///
/// static LAYER: Dense<29, 12, 32> = Dense::new(
///     &WEIGHTS.layers_0_w1_weight.0,
///     &WEIGHTS.layers_0_w1_bias.0,
///     &WEIGHTS.layers_0_w2_weight.0,
///     &WEIGHTS.layers_0_w2_bias.0,
/// );
/// ```
#[derive(Debug)]
pub struct RustSource<'a> {
    checkpoint: Checkpoint<'a>,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    /// In the checkpoint.
    tensor: String,
    /// In Rust.
    name: String,
    shape: Vec<usize>,
    values: Vec<f32>,
    transposed: bool,
}

impl<'a> RustSource<'a> {
    /// Without a tensor yet.
    #[must_use]
    pub const fn new(checkpoint: Checkpoint<'a>) -> Self {
        Self { checkpoint, fields: Vec::new() }
    }

    /// Adds a tensor as it is stored.
    ///
    /// # Errors
    /// As [`Checkpoint::tensor`], but that any shape will do; or two tensors of one name in Rust.
    pub fn tensor(&mut self, name: &str) -> Result<&mut Self, Error> {
        let (shape, values) = self.checkpoint.any_shape(name)?;
        self.add(name, shape, values, false)
    }

    /// Adds a tensor with its last two dimensions exchanged, as [`Checkpoint::input_major`] gives it.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor), and where it has fewer than two dimensions.
    pub fn input_major(&mut self, name: &str) -> Result<&mut Self, Error> {
        let (mut shape, values) = self.checkpoint.any_shape(name)?;
        let rank = shape.len();
        if rank < 2 {
            return Err(Error::Shape { name: name.to_owned(), expected: [0; 2].to_vec(), found: shape });
        }
        let values = transpose_last(&values, &shape);
        shape.swap(rank - 2, rank - 1);
        self.add(name, shape, values, true)
    }

    /// Adds an `nn.Linear`: `{name}.weight`, input-major, and `{name}.bias` if there is one.
    ///
    /// # Errors
    /// As [`input_major`](Self::input_major).
    pub fn linear(&mut self, name: &str) -> Result<&mut Self, Error> {
        self.input_major(&format!("{name}.weight"))?;
        let bias = format!("{name}.bias");
        if self.checkpoint.tensors.tensor(&bias).is_ok() { self.tensor(&bias) } else { Ok(self) }
    }

    /// Adds an `nn.LayerNorm`: `{name}.weight` and `{name}.bias`.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn layer_norm(&mut self, name: &str) -> Result<&mut Self, Error> {
        self.tensor(&format!("{name}.weight"))?.tensor(&format!("{name}.bias"))
    }

    fn add(&mut self, tensor: &str, shape: Vec<usize>, values: Vec<f32>, transposed: bool) -> Result<&mut Self, Error> {
        let name = field(tensor);
        if self.fields.iter().any(|field| field.name == name) {
            return Err(Error::Field { name: tensor.to_owned(), field: name });
        }
        self.fields.push(Field { tensor: tensor.to_owned(), name, shape, values, transposed });
        Ok(self)
    }
}

/// A tensor's name as a field's.
fn field(tensor: &str) -> String {
    let mut name: String =
        tensor.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if KEYWORDS.contains(&name.as_str()) || name.chars().all(|c| c == '_') {
        name.push_str("_tensor");
    }
    name
}

/// Words that can't be a field's name.
const KEYWORDS: [&str; 53] = [
    "as",
    "async",
    "await",
    "break",
    "const",
    "continue",
    "crate",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "type",
    "unsafe",
    "use",
    "where",
    "while",
    "abstract",
    "become",
    "box",
    "do",
    "final",
    "macro",
    "override",
    "priv",
    "try",
    "typeof",
    "unsized",
    "virtual",
    "yield",
    "union",
    "macro_rules",
];

/// Bytes to whose multiples every array is aligned.
const ALIGNMENT: usize = align_of::<crate::weights::Aligned<f32>>();

impl fmt::Display for RustSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let floats: usize = self.fields.iter().map(|field| field.values.len()).sum();
        let bytes: usize = self.fields.iter().map(|field| (4 * field.values.len()).next_multiple_of(ALIGNMENT)).sum();
        writeln!(f, "// Written by synthesizer_attention::checkpoint::RustSource.\n")?;
        writeln!(f, "/// Weights of a checkpoint: {floats} floats in {bytes} bytes.")?;
        writeln!(f, "#[repr(C)]\n#[derive(Debug)]\npub struct Weights {{")?;
        for field in &self.fields {
            let orientation = if field.transposed { ", input-major" } else { "" };
            writeln!(f, "    /// `{}`{orientation}", field.tensor)?;
            let shape = field.shape.iter().rev().fold("f32".to_string(), |of, n| format!("[{of}; {n}]"));
            writeln!(f, "    pub {}: ::synthesizer_attention::weights::Aligned<{shape}>,", field.name)?;
        }
        writeln!(f, "}}\n\nconst _: () = assert!(size_of::<Weights>() == {bytes});")?;
        writeln!(f, "const _: () = assert!(align_of::<Weights>() == {ALIGNMENT});\n")?;
        writeln!(f, "/// The checkpoint's weights.")?;
        writeln!(f, "#[rustfmt::skip]")?;
        writeln!(f, "#[allow(clippy::approx_constant, clippy::excessive_precision, clippy::unreadable_literal)]")?;
        writeln!(f, "pub static WEIGHTS: Weights = Weights {{")?;
        for field in &self.fields {
            write!(f, "    {}: ::synthesizer_attention::weights::Aligned(", field.name)?;
            array(f, &field.shape, &field.values)?;
            writeln!(f, "),")?;
        }
        writeln!(f, "}};")
    }
}

/// Nested arrays, a line for each innermost one.
fn array(f: &mut fmt::Formatter<'_>, shape: &[usize], values: &[f32]) -> fmt::Result {
    let Some((n, inner)) = shape.split_first() else {
        return values.iter().try_for_each(|x| float(f, *x));
    };
    let each: usize = inner.iter().product();
    f.write_char('[')?;
    if values.is_empty() && *n > 0 {
        // as many of them as the file says take no space in it
        array(f, inner, values)?;
        return write!(f, "; {n}]");
    }
    for i in 0..*n {
        if !inner.is_empty() {
            f.write_char('\n')?;
        }
        array(f, inner, values.get(i * each..(i + 1) * each).unwrap_or(&[]))?;
        f.write_str(if inner.is_empty() && i + 1 < *n {
            ", "
        } else if inner.is_empty() {
            ""
        } else {
            ","
        })?;
    }
    f.write_char(']')
}

/// The shortest literal that gives the same bits.
fn float(f: &mut fmt::Formatter<'_>, x: f32) -> fmt::Result {
    if x.is_finite() { write!(f, "{x:?}") } else { write!(f, "f32::from_bits({:#x})", x.to_bits()) }
}
