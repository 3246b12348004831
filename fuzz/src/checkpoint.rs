use std::fmt::Write;

use safetensors::{Dtype, SafeTensors};
use synthesizer_attention::checkpoint::{Checkpoint, Error, RustSource};

use crate::source::Source;

/// The checkpoint loader over any bytes, or over a file with a few bytes changed: no panic, and what is loaded is what
/// the file holds.
pub fn checkpoint(data: &[u8]) {
    match data.split_first() {
        Some((0..64, file)) => load(file),
        _ => load(&changed_file(&mut Source::new(data))),
    }
}

/// A file of an `nn.Linear` and a tensor of three dimensions, and a few changes to its bytes, often none.
fn changed_file(source: &mut Source<'_>) -> Vec<u8> {
    let (mut header, mut data) = (String::from("{"), Vec::new());
    for (name, shape) in [("a.weight", &[3, 2][..]), ("a.bias", &[3]), ("b", &[2, 2, 3])] {
        let (dtype, size) = [("F32", 4), ("F16", 2), ("BF16", 2), ("F64", 8)][source.below(16).saturating_sub(12)];
        let start = data.len();
        data.extend((0..size * shape.iter().product::<usize>()).map(|_| source.byte()));
        let comma = if start == 0 { "" } else { "," };
        let end = data.len();
        write!(header, r#"{comma}"{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{start},{end}]}}"#)
            .expect("a String takes it");
    }
    header.push('}');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes().chain(data));
    for _ in 0..source.below(16).saturating_sub(10) {
        let at = (source.below(256) << 8 | source.below(256)) % file.len();
        file[at] = source.byte();
    }
    if source.chance(1) {
        file.truncate(source.below(256) * file.len() / 255);
    }
    file
}

fn load(file: &[u8]) {
    let Ok(checkpoint) = Checkpoint::new(file) else { return };
    let tensors = SafeTensors::deserialize(file).expect("what the checkpoint has parsed");
    let names: Vec<String> = checkpoint.names().into_iter().map(Into::into).collect();
    let mut rust = RustSource::new(Checkpoint::new(file).expect("as before").finite());
    for name in &names {
        let (stored, shape) = (values(&tensors, name), tensors.tensor(name).expect("its name").shape().to_vec());
        check(checkpoint.tensor::<[f32; 3]>(name).map(|t| t.to_vec()), stored.as_ref(), shape == [3]);
        check(
            checkpoint.tensor::<[[f32; 2]; 3]>(name).map(|t| t.as_flattened().to_vec()),
            stored.as_ref(),
            shape == [3, 2],
        );
        let input_major = checkpoint.input_major::<[[[f32; 2]; 3]; 2]>(name);
        let back = input_major.map(|t| (0..12).map(|i| t[i / 6][i % 3][i / 3 % 2]).collect());
        check(back, stored.as_ref(), shape == [2, 2, 3]);
        let finite = stored.is_some_and(|values| values.iter().all(|x| x.is_finite()));
        match rust.tensor(name) {
            Ok(_) => assert!(finite, "{name} was written"),
            Err(error) => assert!(!finite || matches!(error, Error::Field { .. }), "{error}"),
        }
    }
    assert!(rust.to_string().contains("pub struct Weights"));
    if let Ok(linear) = checkpoint.linear::<2, 3>("a") {
        let back = (0..6).map(|i| linear.weight[i % 2][i / 2]).collect();
        check(Ok(back), values(&tensors, "a.weight").as_ref(), true);
        assert_eq!(linear.bias.is_some(), tensors.tensor("a.bias").is_ok());
    }
}

/// What was loaded against what is stored: the same numbers where the type and the shape are right.
fn check(loaded: Result<Vec<f32>, Error>, stored: Option<&Vec<f32>>, shape: bool) {
    match (loaded, stored) {
        (Ok(loaded), Some(stored)) => {
            let same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
            assert!(
                shape && loaded.len() == stored.len() && loaded.iter().zip(stored).all(same),
                "{loaded:?}, {stored:?}"
            );
        }
        (Err(Error::Dtype { .. }), None) => {}
        (Err(Error::Shape { .. }), Some(_)) => assert!(!shape),
        (loaded, stored) => panic!("{loaded:?}, and there is {stored:?}"),
    }
}

/// The numbers of a tensor of floats, by what the formats mean.
fn values(tensors: &SafeTensors<'_>, name: &str) -> Option<Vec<f32>> {
    let tensor = tensors.tensor(name).ok()?;
    let data = tensor.data();
    let pairs = || data.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
    Some(match tensor.dtype() {
        Dtype::F32 => data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
        Dtype::F16 => pairs().map(|bits| number(bits, 5, 10)).collect(),
        Dtype::BF16 => pairs().map(|bits| number(bits, 8, 7)).collect(),
        _ => return None,
    })
}

/// The number of a sign, so many bits of exponent and so many of fraction (IEEE 754, section 3.4).
fn number(bits: u16, exponent_bits: i32, fraction_bits: i32) -> f32 {
    let top = (1 << exponent_bits) - 1;
    let (exponent, fraction) = (i32::from(bits >> fraction_bits) & top, bits & ((1 << fraction_bits) - 1));
    let significand = f64::from(fraction) / f64::from(1 << fraction_bits);
    let scale = |power: i32| f64::from(power - top / 2).exp2();
    let magnitude = match exponent {
        0 => significand * scale(1),
        _ if exponent == top => {
            if fraction == 0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        _ => (1.0 + significand) * scale(exponent),
    };
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    (sign * magnitude) as f32
}
