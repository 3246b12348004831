//! Layers from safetensors files, and what a bad file says.
#![allow(clippy::float_cmp, reason = "conversions are exact")]

mod common;

use common::golden;
use safetensors::{Dtype, serialize, tensor::TensorView};
use synthesizer_attention::{
    Backend, Dense, Options, Random, Synthesizer,
    checkpoint::{Checkpoint, Error, RustSource},
};

/// A file of float32 tensors.
fn file(tensors: &[(&str, &[usize], &[f32])]) -> Vec<u8> {
    let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let data: Vec<_> = tensors.iter().map(|(_, _, values)| bytes(values)).collect();
    let view = |i: usize| TensorView::new(Dtype::F32, tensors[i].1.to_vec(), &data[i]).unwrap();
    serialize((0..tensors.len()).map(|i| (tensors[i].0, view(i))), None).unwrap()
}

/// One tensor of another type.
fn typed(dtype: Dtype, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    serialize([("t", TensorView::new(dtype, shape.to_vec(), bytes).unwrap())], None).unwrap()
}

fn two_by_three() -> Vec<u8> {
    file(&[("w.weight", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), ("w.bias", &[2], &[7.0, 8.0])])
}

#[test]
fn tensors_in_either_orientation() {
    let file = two_by_three();
    let checkpoint = Checkpoint::new(&file).unwrap();
    assert_eq!(checkpoint.names(), ["w.bias", "w.weight"]);
    assert_eq!(*checkpoint.tensor::<[[f32; 3]; 2]>("w.weight").unwrap(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let linear = checkpoint.linear::<3, 2>("w").unwrap();
    assert_eq!(*linear.weight, [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]);
    assert_eq!(linear.bias.as_deref(), Some(&[7.0, 8.0]));
    let mut y = [[0.0; 2]];
    linear.layer().forward(&[[1.0, 0.0, 1.0]], &mut y).unwrap();
    assert_eq!(y, [[11.0, 18.0]]);
}

#[test]
fn each_head_is_transposed() {
    let values: Vec<f32> = (0_u8..12).map(f32::from).collect();
    let file = file(&[("w2", &[2, 3, 2], &values)]);
    let checkpoint = Checkpoint::new(&file).unwrap();
    let expected = [[[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]], [[6.0, 8.0, 10.0], [7.0, 9.0, 11.0]]];
    assert_eq!(*checkpoint.input_major::<[[[f32; 3]; 2]; 2]>("w2").unwrap(), expected);
}

#[test]
fn no_bias_is_none() {
    let file = file(&[("w.weight", &[1, 1], &[2.0])]);
    assert_eq!(Checkpoint::new(&file).unwrap().linear::<1, 1>("w").unwrap().bias, None);
}

#[test]
fn half_types() {
    let bytes: Vec<u8> = [0x3c00_u16, 0xc000, 0x0001].iter().flat_map(|x| x.to_le_bytes()).collect();
    let file = typed(Dtype::F16, &[3], &bytes);
    assert_eq!(*Checkpoint::new(&file).unwrap().tensor::<[f32; 3]>("t").unwrap(), [1.0, -2.0, 2.0_f32.powi(-24)]);
    let bytes: Vec<u8> = [0x3f80_u16, 0xc000, 0x3e80].iter().flat_map(|x| x.to_le_bytes()).collect();
    let file = typed(Dtype::BF16, &[3], &bytes);
    assert_eq!(*Checkpoint::new(&file).unwrap().tensor::<[f32; 3]>("t").unwrap(), [1.0, -2.0, 0.25]);
}

/// What was asked for, what is there, and where.
#[test]
fn errors_name_the_tensor() {
    let file = two_by_three();
    let checkpoint = Checkpoint::new(&file).unwrap();
    let says = |error: Error, text: &str| assert_eq!(error.to_string(), text);

    let missing = checkpoint.linear::<3, 2>("v").unwrap_err();
    says(missing, "there is no tensor \"v.weight\"; the file has w.bias, w.weight");
    // transposed, as it would be without the conversion
    let shape = checkpoint.linear::<2, 3>("w").unwrap_err();
    says(shape, "tensor \"w.bias\": expected shape [3], found [2]");
    let shape = checkpoint.input_major::<[[f32; 3]; 2]>("w.weight").unwrap_err();
    says(shape, "tensor \"w.weight\": expected shape [3, 2], found [2, 3]");
    let rank = checkpoint.tensor::<[f32; 6]>("w.weight").unwrap_err();
    says(rank, "tensor \"w.weight\": expected shape [6], found [2, 3]");

    let file = typed(Dtype::F64, &[1], &1.0_f64.to_le_bytes());
    let dtype = Checkpoint::new(&file).unwrap().tensor::<[f32; 1]>("t").unwrap_err();
    says(dtype, "tensor \"t\": expected type F32, F16 or BF16, found F64");
}

#[test]
fn not_finite_only_where_asked() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let file = file(&[("a", &[3], &[1.0, 2.0, value]), ("b", &[1], &[1.0])]);
        let checkpoint = Checkpoint::new(&file).unwrap();
        assert!(!checkpoint.tensor::<[f32; 3]>("a").unwrap()[2].is_finite());
        let checkpoint = checkpoint.finite();
        assert!(checkpoint.tensor::<[f32; 1]>("b").is_ok());
        let error = checkpoint.tensor::<[f32; 3]>("a").unwrap_err();
        assert_eq!(error.to_string(), format!("tensor \"a\": expected finite numbers, found {value} at 2"));
    }
}

/// Cut anywhere, and with any one byte changed: an error or other numbers, never a panic.
#[test]
fn truncated_and_garbled_files() {
    let file = two_by_three();
    for len in 0..file.len() {
        let error = Checkpoint::new(&file[..len]).unwrap_err();
        assert!(error.to_string().starts_with("not a whole safetensors file: "), "{error}");
    }
    let mut garbled = file.clone();
    let mut refused = 0;
    for at in 0..file.len() {
        for bit in 0..8 {
            garbled[at] ^= 1 << bit;
            match Checkpoint::new(&garbled) {
                Ok(checkpoint) => {
                    let _ = (checkpoint.linear::<3, 2>("w"), checkpoint.finite().tensor::<[f32; 2]>("w.bias"));
                }
                Err(_) => refused += 1,
            }
            garbled[at] = file[at];
        }
    }
    println!("{refused} of {} garbled files refused", 8 * file.len());
    assert!(refused > 0);
}

/// At every offset from a word's boundary.
#[test]
fn any_alignment() {
    let file = two_by_three();
    for offset in 0..8 {
        let moved = [&vec![0; offset], file.as_slice()].concat();
        let linear = Checkpoint::new(&moved[offset..]).unwrap().linear::<3, 2>("w").unwrap();
        assert_eq!(*linear.weight, [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]);
    }
}

/// The golden files are checkpoints too.
#[test]
fn layers_of_golden_cases() {
    for name in ["dense-N50-n41-d20-h40-m20", "random-N50-n41-d20-h40-m20"] {
        let path = format!("{}/tests/data/golden/cases/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::read(path).unwrap();
        let checkpoint = Checkpoint::new(&file).unwrap().finite();
        let case =
            golden::cases(&[name.split_once('-').unwrap().0]).into_iter().find(|case| case.name == name).unwrap();
        let (v, y) = (golden::rows::<20>(&case.flat("v")), case.y());
        let x = if case.has("x") { golden::rows::<20>(&case.flat("x")) } else { vec![[0.0; 20]; v.len()] };
        let mut found = vec![[0.0; 20]; x.len()];
        let options = Options::new().backend(Backend::Scalar);
        if name.starts_with("dense") {
            let (w1, w2) = (checkpoint.input_major("w1").unwrap(), checkpoint.input_major("w2").unwrap());
            let (b1, b2) = (checkpoint.tensor("b1").unwrap(), checkpoint.tensor("b2").unwrap());
            let layer = Dense::<50, 20, 40>::new(&w1, &b1, &w2, &b2);
            layer.forward_with(&options, &x, &v, &mut found, &mut vec![0.0; 1 << 14]).unwrap();
        } else {
            let r = checkpoint.tensor("r").unwrap();
            let layer = Random::<50, 20>::new(&r);
            layer.forward_with(&options, &x, &v, &mut found, &mut vec![0.0; 1 << 14]).unwrap();
        }
        for (found, y) in found.as_flattened().iter().zip(y) {
            assert!((f64::from(*found) - y).abs() < 1e-5, "{name}: {found} for {y}");
        }
    }
}

#[test]
fn weights_as_rust_source() {
    let values = [1.0, -0.5, 3.25, 1e-7, 1.0e20, f32::MAX];
    let file = file(&[("0.w.weight", &[2, 3], &values), ("0.w.bias", &[2], &[0.1, -0.0]), ("type", &[1], &[f32::NAN])]);
    let mut source = RustSource::new(Checkpoint::new(&file).unwrap());
    source.linear("0.w").unwrap().tensor("type").unwrap();
    let source = source.to_string();
    for line in [
        "/// Weights of a checkpoint: 9 floats in 192 bytes.",
        "    /// `0.w.weight`, input-major",
        "    pub _0_w_weight: ::synthesizer_attention::weights::Aligned<[[f32; 2]; 3]>,",
        "    pub _0_w_bias: ::synthesizer_attention::weights::Aligned<[f32; 2]>,",
        "const _: () = assert!(size_of::<Weights>() == 192);",
        "const _: () = assert!(align_of::<Weights>() == 64);",
        "    _0_w_weight: ::synthesizer_attention::weights::Aligned([",
        "[1.0, 1e-7],",
        "[-0.5, 1e20],",
        "[3.25, 3.4028235e38],]),",
        "    _0_w_bias: ::synthesizer_attention::weights::Aligned([0.1, -0.0]),",
        "    type_tensor: ::synthesizer_attention::weights::Aligned([f32::from_bits(0x7fc00000)]),",
    ] {
        assert!(source.lines().any(|found| found == line), "no line {line:?} in\n{source}");
    }

    let mut source = RustSource::new(Checkpoint::new(&file).unwrap().finite());
    let error = source.tensor("type").unwrap_err();
    assert!(matches!(error, Error::NotFinite { index: 0, .. }), "{error}");
    let error = source.tensor("0.w.bias").unwrap().tensor("0.w.bias").unwrap_err();
    assert_eq!(error.to_string(), "tensor \"0.w.bias\": another tensor is the field _0_w_bias already");
    assert!(matches!(source.input_major("0.w.bias").unwrap_err(), Error::Shape { .. }));
    assert!(matches!(source.tensor("none").unwrap_err(), Error::Missing { .. }));
}

/// A shape with a 0 in it has no numbers, however large the other sizes are.
#[test]
fn no_numbers_are_little_source() {
    const MANY: usize = usize::MAX / 2;
    for (shape, written) in [([MANY, 0], format!("([[]; {MANY}]),")), ([0, MANY], "([]),".into())] {
        let file = file(&[("w", &shape, &[])]);
        let mut source = RustSource::new(Checkpoint::new(&file).unwrap());
        let source = source.tensor("w").unwrap().to_string();
        assert!(source.contains(&written), "no {written:?} in\n{source}");
    }
}
