//! The golden cases of `tests/data/golden` and the measure of errors against PyTorch's own.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

/// One case: tensors under the names of `generate.py`, PyTorch's linear weights in `[out, in]`.
pub struct Case {
    /// The file's name without its extension.
    pub name: String,
    pub variant: String,
    bytes: Vec<u8>,
    metadata: BTreeMap<String, String>,
}

/// Every case whose variant starts with one of the prefixes, in the order of their names.
pub fn cases(prefixes: &[&str]) -> Vec<Case> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory().join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut cases: Vec<Case> = paths.iter().map(|path| Case::load(path)).collect();
    cases.retain(|case| prefixes.iter().any(|prefix| case.variant.starts_with(prefix)));
    assert!(!cases.is_empty(), "no golden case of {prefixes:?}");
    cases
}

/// The published worked example, with `y_printed` for its four printed digits.
pub fn seed_example() -> Case {
    Case::load(&directory().join("seed_example.safetensors"))
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden")
}

impl Case {
    pub fn load(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let metadata: BTreeMap<_, _> = header.metadata().clone().unwrap().into_iter().collect();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        Self { name, variant: metadata["variant"].clone(), bytes, metadata }
    }

    /// A size of the metadata: `N`, `n`, `d`, `h`, `m`, and where the variant has them `rows`, `first`, `k`, `a`, `b`,
    /// `heads`, `f`.
    pub fn size(&self, name: &str) -> usize {
        self.try_size(name).unwrap_or_else(|| panic!("{}: no size {name}", self.name))
    }

    pub fn try_size(&self, name: &str) -> Option<usize> {
        self.metadata.get(name).map(|size| size.parse().unwrap())
    }

    pub fn causal(&self) -> bool {
        self.variant.contains("causal")
    }

    /// The position of the first query row.
    pub fn first(&self) -> usize {
        self.try_size("first").unwrap_or(0)
    }

    pub fn has(&self, name: &str) -> bool {
        SafeTensors::deserialize(&self.bytes).unwrap().tensor(name).is_ok()
    }

    /// A float32 tensor: its shape and its values, the last index fastest.
    pub fn tensor(&self, name: &str) -> (Vec<usize>, Vec<f32>) {
        self.view(name, Dtype::F32, |view| {
            (view.shape().to_vec(), view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
        })
    }

    /// A float32 tensor's values.
    pub fn flat(&self, name: &str) -> Vec<f32> {
        self.tensor(name).1
    }

    /// A tensor with its last two dimensions exchanged: PyTorch's `[out, in]` made `[in, out]`.
    pub fn transposed(&self, name: &str) -> Vec<f32> {
        let (shape, values) = self.tensor(name);
        let [.., rows, cols] = shape[..] else { panic!("{}: {name} is no matrix", self.name) };
        values.chunks(rows * cols).flat_map(|matrix| transposed(matrix, rows, cols)).collect()
    }

    /// A layer's tensor of so many rows and columns, input-major, if the case has it.
    pub fn weights(&self, name: &str, rows: usize, cols: usize) -> Option<Vec<f32>> {
        let output_major = name.starts_with(['w', 'f']) || name == "r2";
        let values = self.has(name).then(|| if output_major { self.transposed(name) } else { self.flat(name) })?;
        assert_eq!(values.len(), rows * cols, "{}: {name}", self.name);
        Some(values)
    }

    /// The right answer: float64 arithmetic on the float32 tensors.
    pub fn y(&self) -> Vec<f64> {
        self.view("y", Dtype::F64, |view| view.data().as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
    }

    /// PyTorch's float32 answer.
    pub fn y_f32(&self) -> Vec<f32> {
        self.flat("y_f32")
    }

    pub fn key_mask(&self) -> Option<Vec<bool>> {
        let mask = || self.view("key_mask", Dtype::U8, |view| view.data().iter().map(|&seen| seen != 0).collect());
        self.has("key_mask").then(mask)
    }

    fn view<T>(&self, name: &str, dtype: Dtype, read: impl FnOnce(TensorView<'_>) -> T) -> T {
        let tensors = SafeTensors::deserialize(&self.bytes).unwrap();
        let view = tensors.tensor(name).unwrap_or_else(|e| panic!("{}: {name}: {e}", self.name));
        assert_eq!(view.dtype(), dtype, "{}: {name}", self.name);
        read(view)
    }
}

/// A `rows x cols` matrix with rows and columns exchanged.
pub fn transposed(values: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    assert_eq!(values.len(), rows * cols);
    (0..cols).flat_map(|j| (0..rows).map(move |i| values[i * cols + j])).collect()
}

/// The values as rows of `C`.
pub fn rows<const C: usize>(values: &[f32]) -> Vec<[f32; C]> {
    let (rows, rest) = values.as_chunks();
    assert!(rest.is_empty(), "{} values in rows of {C}", values.len());
    rows.to_vec()
}

/// The values as an array of `R` rows of `C`, made on the heap.
pub fn array<const R: usize, const C: usize>(values: &[f32]) -> Box<[[f32; C]; R]> {
    let rows = rows::<C>(values).into_boxed_slice();
    rows.try_into().unwrap_or_else(|rows: Box<[[f32; C]]>| panic!("{} rows for {R}", rows.len()))
}

/// Gathers, per variant and in total, our errors and PyTorch's, each relative to the largest absolute `y` of its case.
#[derive(Default)]
pub struct Errors(BTreeMap<String, Tally>);

/// Errors over every element of some cases.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    pub elements: usize,
    pub ours: Spread,
    pub theirs: Spread,
}

/// The sum and the largest of some errors.
#[derive(Clone, Copy, Default)]
pub struct Spread {
    pub sum: f64,
    pub worst: f64,
}

impl Errors {
    /// Takes in our answer to a case.
    pub fn add(&mut self, case: &Case, ours: &[f32]) {
        let (y, theirs) = (case.y(), case.y_f32());
        assert_eq!(ours.len(), y.len(), "{}", case.name);
        // With every key masked y is 0, and so must the answers be.
        let scale = y.iter().fold(f64::MIN_POSITIVE, |largest, y| largest.max(y.abs()));
        let tally = self.0.entry(case.variant.clone()).or_default();
        tally.elements += y.len();
        for (spread, answer) in [(&mut tally.ours, ours), (&mut tally.theirs, &theirs)] {
            for (y, found) in y.iter().zip(answer) {
                let error = (f64::from(*found) - y).abs() / scale;
                assert!(error.is_finite(), "{}: {found} for {y}", case.name);
                spread.sum += error;
                spread.worst = spread.worst.max(error);
            }
        }
    }

    pub fn per_variant(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.0.iter().map(|(variant, tally)| (variant.as_str(), *tally))
    }

    pub fn total(&self) -> Tally {
        let join = |a: Spread, b: Spread| Spread { sum: a.sum + b.sum, worst: a.worst.max(b.worst) };
        self.0.values().fold(Tally::default(), |all, tally| Tally {
            elements: all.elements + tally.elements,
            ours: join(all.ours, tally.ours),
            theirs: join(all.theirs, tally.theirs),
        })
    }

    /// Fails unless our mean error is at most `mean` times PyTorch's, and our worst `worst` times.
    pub fn assert_within(&self, mean: f64, worst: f64) {
        let Tally { ours, theirs, .. } = self.total();
        assert!(ours.sum <= mean * theirs.sum, "mean error past {mean} times PyTorch's\n{self}");
        assert!(ours.worst <= worst * theirs.worst, "worst error past {worst} times PyTorch's\n{self}");
    }
}

/// Our mean error and theirs, our worst and theirs: a line a variant, and the total.
impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:40} {:>9} {:>9} {:>9} {:>9}",
            "relative to the largest |y|", "mean", "PyTorch", "worst", "PyTorch"
        )?;
        for (variant, Tally { elements, ours, theirs }) in self.per_variant().chain([("total", self.total())]) {
            let [mean, their_mean] = [ours.sum, theirs.sum].map(|sum| sum / elements as f64);
            writeln!(f, "{variant:40} {mean:9.2e} {their_mean:9.2e} {:9.2e} {:9.2e}", ours.worst, theirs.worst)?;
        }
        Ok(())
    }
}
