//! The board's memory map, and golden cases as Rust source.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

#[cfg(feature = "vowels")]
#[path = "../../examples/vowels/export.rs"]
mod export;

/// Cases of these sizes: 21 of each for single heads; two layers and three encoder blocks of several.
const SHAPES: [&str; 5] =
    ["-N4-n4-d5-h4-m5", "-N16-n16-d16-h16-m16", "-N17-n13-d19-h23-m7", "-N8-n8-d8-heads2", "-N8-n5-d8-heads2"];

fn main() {
    let out = env::var("OUT_DIR").unwrap();
    println!("cargo::rerun-if-env-changed=BOARD");
    let board = env::var("BOARD").unwrap_or_else(|_| "an386".into());
    // and the frequency of the clock that QEMU's SysTick counts
    let (memory, clock) = match board.as_str() {
        "an386" | "an500" => (arm((0, "4M"), (0x2000_0000, "4M")), 25_000_000),
        "an505" => (arm((0x1000_0000, "4M"), (0x3800_0000, "2M")), 20_000_000),
        "an547" => (arm((0x1000_0000, "512K"), (0x3000_0000, "512K")), 32_000_000),
        "virt" => (riscv(), 0),
        board => panic!("no memory map for BOARD={board}"),
    };
    println!("cargo::rustc-env=SYSTICK_HZ={clock}");
    fs::write(Path::new(&out).join("memory.x"), memory).unwrap();
    println!("cargo::rustc-link-search={out}");
    if board == "virt" {
        println!("cargo::rustc-link-arg=-Tmemory.x");
    }
    println!("cargo::rustc-link-arg=-Tlink.x");
    println!("cargo::rustc-link-arg=--nmagic");

    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/golden/cases");
    println!("cargo::rerun-if-changed={}", golden.display());
    let mut paths: Vec<_> = fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut source = String::from("fn golden(check: &mut Check) {\n");
    for path in paths {
        let name = path.file_stem().unwrap().to_str().unwrap();
        if SHAPES.iter().any(|shape| name.contains(shape)) {
            Case::read(&path).write(name, &mut source);
        }
    }
    source.push_str("}\n");
    fs::write(Path::new(&out).join("golden.rs"), source).unwrap();
    #[cfg(feature = "vowels")]
    vowels(Path::new(&out));
}

/// The model's weights as Rust source, and the tensors of its test set, a file each.
#[cfg(feature = "vowels")]
fn vowels(out: &Path) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    println!("cargo::rerun-if-changed={}", data.display());
    let weights = export::export(&fs::read(data.join("vowels.safetensors")).unwrap()).unwrap();
    fs::write(out.join("weights.rs"), weights).unwrap();
    let test = Case::read(&data.join("vowels_frames.safetensors"));
    for tensor in ["frames", "logits", "label", "length"] {
        fs::write(out.join(tensor), test.bytes(tensor)).unwrap();
    }
}

fn arm(flash: (u32, &str), ram: (u32, &str)) -> String {
    let region = |name, (origin, length)| format!("{name} : ORIGIN = {origin:#x}, LENGTH = {length}\n");
    format!("MEMORY {{\n{}{}}}\n", region("FLASH", flash), region("RAM", ram))
}

fn riscv() -> String {
    let mut memory = String::from("MEMORY { RAM : ORIGIN = 0x80000000, LENGTH = 16M }\n");
    for region in ["TEXT", "RODATA", "DATA", "BSS", "HEAP", "STACK"] {
        writeln!(memory, "REGION_ALIAS(\"REGION_{region}\", RAM);").unwrap();
    }
    memory
}

/// A safetensors file: the length of its JSON header, the header, the data.
struct Case {
    header: String,
    data: Vec<u8>,
}

impl Case {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
        let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
        Self { header: String::from_utf8(header.to_vec()).unwrap(), data: data.to_vec() }
    }

    /// What stands behind `"name":`.
    fn entry(&self, name: &str) -> Option<&str> {
        let key = format!("\"{name}\":");
        self.header.find(&key).map(|at| &self.header[at + key.len()..])
    }

    fn size(&self, name: &str) -> usize {
        self.entry(name).unwrap().split('"').nth(1).unwrap().parse().unwrap()
    }

    /// The numbers of `"name":...[...]`.
    fn list(&self, tensor: &str, name: &str) -> Vec<usize> {
        let entry = self.entry(tensor).unwrap();
        let entry = &entry[entry.find(name).unwrap()..];
        let list = &entry[entry.find('[').unwrap() + 1..entry.find(']').unwrap()];
        list.split(',').map(|n| n.trim().parse().unwrap()).collect()
    }

    fn bytes(&self, tensor: &str) -> &[u8] {
        let range = self.list(tensor, "data_offsets");
        &self.data[range[0]..range[1]]
    }

    fn f32(&self, tensor: &str) -> Vec<f32> {
        self.bytes(tensor).as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }

    fn f64(&self, tensor: &str) -> Vec<f64> {
        self.bytes(tensor).as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
    }

    fn has(&self, tensor: &str) -> bool {
        self.entry(tensor).is_some()
    }

    /// A block that runs the case.
    fn write(&self, name: &str, to: &mut String) {
        let variant = name.split('-').next().unwrap();
        if self.entry("heads").is_some() {
            return self.write_heads(name, variant, to);
        }
        let sizes: BTreeMap<_, _> = ["N", "n", "d", "h", "m"].map(|size| (size, self.size(size))).into();
        let (l, d, h, m) = (sizes["N"], sizes["d"], sizes["h"], sizes["m"]);
        to.push_str("    {\n");
        for tensor in ["x", "v", "b1", "b2", "r", "r1", "bq", "bk", "ba1", "ba2", "bb1", "bb2", "alphas"] {
            self.array(tensor, false, to);
        }
        for tensor in ["w1", "w2", "r2", "wq", "wk", "wa1", "wa2", "wb1", "wb2"] {
            self.array(tensor, true, to);
        }
        let y = self.f64("y");
        let rows = y.len() / m;
        if !self.has("x") {
            writeln!(to, "        static X: [[f32; {d}]; {rows}] = [[f32::NAN; {d}]; {rows}];").unwrap();
        }
        writeln!(to, "        static Y: [[f64; {m}]; {rows}] = {};", matrix(&y, m)).unwrap();

        let tolerance = self.tolerance();
        let mut options = String::from("Options::new()");
        if variant.contains("causal") {
            options += ".causal()";
        }
        let first = if self.has("first") { self.size("first") } else { 0 };
        if first > 0 {
            write!(options, ".first({first})").unwrap();
        }
        if self.has("key_mask") {
            let mask: Vec<bool> = self.bytes("key_mask").iter().map(|key| *key != 0).collect();
            write!(options, ".key_mask(&{mask:?})").unwrap();
        }

        let dense = format!("Dense::<{l}, {d}, {h}>::new(&W1, &B1, &W2, &B2)");
        let random = format!("Random::<{l}, {d}>::new(&R)");
        let dot = "dot.with_keys(&keys, X.len())";
        if self.has("wq") {
            let linear = "DotProduct::new(Linear::new(&WQ, &BQ), Linear::new(&WK, &BK))";
            writeln!(to, "        let dot: DotProduct<'_, {l}, {d}, {d}> = {linear};").unwrap();
            writeln!(to, "        let mut keys = [[f32::NAN; {l}]; {d}];").unwrap();
            writeln!(to, "        check.keys(\"{name}\", &dot, &X, &mut keys);").unwrap();
        }
        let layer = if variant == "dense_no_bias" {
            format!("Dense::<{l}, {d}, {h}>::without_bias(&W1, &W2)")
        } else if variant.starts_with("dense") {
            dense
        } else if variant.starts_with("random") {
            random
        } else if variant.starts_with("factorized_random") {
            format!("FactorizedRandom::<{l}, {d}, {}>::new(&R1, &R2)", self.size("k"))
        } else if variant.starts_with("factorized_dense") {
            let (a, c) = (self.size("a"), self.size("b"));
            let (fa, fc) = ("Dense::new(&WA1, &BA1, &WA2, &BA2)", "Dense::new(&WB1, &BB1, &WB2, &BB2)");
            format!("FactorizedDense::<{l}, {a}, {c}, {d}, {h}, {h}>::new({fa}, {fc})")
        } else if variant.starts_with("dot_product") {
            dot.into()
        } else {
            format!("Mixture::of(ALPHAS[0], {random}).and(ALPHAS[1], {dense}).and(ALPHAS[2], {dot})")
        };
        writeln!(to, "        let (layer, options) = ({layer}, {options});").unwrap();
        writeln!(to, "        check.layer(\"{name}\", &layer, (&options, {first}), &X, &V, &Y, {tolerance:?});")
            .unwrap();
        if variant.starts_with("random") || variant.starts_with("factorized_random") {
            let taken = if variant.contains("causal") { "Causal".into() } else { format!("Keys({})", sizes["n"]) };
            writeln!(to, "        let mut weights = [[f32::NAN; {l}]; {l}];").unwrap();
            writeln!(to, "        let frozen = layer.freeze(FrozenFor::{taken}, &mut weights, check.scratch);")
                .unwrap();
            writeln!(to, "        let frozen = frozen.unwrap();").unwrap();
            writeln!(
                to,
                "        check.layer(\"frozen {name}\", &frozen, (&options, {first}), &X, &V, &Y, {tolerance:?});"
            )
            .unwrap();
        }
        to.push_str("    }\n");
    }

    /// Four times PyTorch's own worst error, and a little for cases it has exactly.
    fn tolerance(&self) -> f64 {
        let y = self.f64("y");
        let worst = |f: &mut dyn Iterator<Item = f64>| f.fold(0.0, f64::max);
        let theirs = worst(&mut self.f32("y_f32").iter().zip(&y).map(|(theirs, y)| (f64::from(*theirs) - y).abs()));
        4.0 * theirs + 1e-6 * worst(&mut y.iter().map(|y| y.abs()))
    }

    /// The same for a multi-head layer or an encoder block.
    fn write_heads(&self, name: &str, variant: &str, to: &mut String) {
        let [l, d, heads] = ["N", "d", "heads"].map(|size| self.size(size));
        let (h, tolerance) = (d / heads, self.tolerance());
        to.push_str("    {\n");
        for tensor in ["x", "b1", "b2", "bv", "bo", "g1", "g2", "c1", "c2"] {
            self.array(tensor, false, to);
        }
        if !variant.contains("rms") {
            self.array("h1", false, to);
            self.array("h2", false, to);
        }
        for tensor in ["w1", "wv", "wo", "f1", "f2"] {
            self.array(tensor, true, to);
        }
        // [heads, N, H] to [heads, H, N]
        let w2 = self.f32("w2");
        let transposed = |w: &[f32]| (0..h * l).map(|at| w[at % l * h + at / l]).collect::<Vec<_>>();
        let w2: Vec<String> = w2.chunks(h * l).map(|w| matrix(&transposed(w), l)).collect();
        writeln!(to, "        static W2: [[[f32; {l}]; {h}]; {heads}] = [{}];", w2.join(", ")).unwrap();
        let y = self.f64("y");
        writeln!(to, "        static Y: [[f64; {d}]; {}] = {};", y.len() / d, matrix(&y, d)).unwrap();
        let dense = format!("DenseHeads::<{l}, {d}, {d}, {h}, {heads}>::new(Linear::new(&W1, &B1), &W2, Some(&B2))");
        writeln!(to, "        let layer = MultiHead::new({dense}, Linear::new(&WV, &BV), Linear::new(&WO, &BO));")
            .unwrap();
        let causal = if variant.contains("causal") { ".causal()" } else { "" };
        writeln!(to, "        let (options, mut y) = (Options::new(){causal}, X);").unwrap();
        if variant.starts_with("encoder") {
            let norm = if variant.contains("rms") { "RmsNorm::new(&G#, 1e-5)" } else { "LayerNorm::new(&G#, &H#)" };
            let [norm1, norm2] = ["1", "2"].map(|i| norm.replace('#', i));
            let activation = [("relu", "Relu"), ("gelu_tanh", "GeluTanh"), ("gelu", "Gelu")];
            let activation = activation.iter().find(|(name, _)| variant.contains(name)).unwrap().1;
            let forward = format!("FeedForward::new(Linear::new(&F1, &C1), {activation}, Linear::new(&F2, &C2))");
            if variant.contains("post") {
                writeln!(to, "        let block = EncoderBlock::post_norm(layer, {norm1}, {forward}, {norm2});")
                    .unwrap();
            } else {
                writeln!(to, "        let block = EncoderBlock::pre_norm({norm1}, layer, {norm2}, {forward});")
                    .unwrap();
            }
            writeln!(to, "        let done = block.forward_with(&options, &mut y, check.scratch);").unwrap();
        } else {
            writeln!(to, "        let done = layer.forward_with(&options, &X, &mut y, check.scratch);").unwrap();
        }
        writeln!(to, "        check.near(\"{name}\", done, &y, &Y, {tolerance:?});\n    }}").unwrap();
    }

    /// A `static` of the tensor's name in capitals, if the case has it; transposed where it is a PyTorch weight.
    fn array(&self, tensor: &str, transpose: bool, to: &mut String) {
        if !self.has(tensor) {
            return;
        }
        let (name, values) = (tensor.to_uppercase(), self.f32(tensor));
        match self.list(tensor, "shape")[..] {
            [len] => writeln!(to, "        static {name}: [f32; {len}] = {values:?};").unwrap(),
            [rows, cols] if transpose => {
                let values: Vec<f32> = (0..rows * cols).map(|at| values[at % rows * cols + at / rows]).collect();
                let values = matrix(&values, rows);
                writeln!(to, "        static {name}: [[f32; {rows}]; {cols}] = {values};").unwrap();
            }
            [rows, cols] => {
                let values = matrix(&values, cols);
                writeln!(to, "        static {name}: [[f32; {cols}]; {rows}] = {values};").unwrap();
            }
            _ => panic!("{tensor} has neither one dimension nor two"),
        }
    }
}

fn matrix<T: std::fmt::Debug>(values: &[T], cols: usize) -> String {
    format!("{:?}", values.chunks(cols).collect::<Vec<_>>())
}
