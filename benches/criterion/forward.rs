//! Criterion benches of Dense at every size of the roofline bench; each answer is checked against the float64 reference
//! before it is timed.
//!
//!     cargo bench --manifest-path benches/criterion/Cargo.toml

use std::array::from_fn;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use synthesizer_attention::reference::{Mask, Matrix, attend, dense_scores};
use synthesizer_attention::{Dense, Synthesizer};

/// `R` rows of `C` numbers between -gain and gain.
fn matrix<const R: usize, const C: usize>(state: &mut u64, gain: f32) -> Box<[[f32; C]; R]> {
    let mut next = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 40) as f32 / (1 << 23) as f32 - 1.0) * gain
    };
    let rows: Vec<[f32; C]> = (0..R).map(|_| from_fn(|_| next())).collect();
    rows.try_into().expect("R rows")
}

/// D = H = M = W.
fn dense<const L: usize, const W: usize>(c: &mut Criterion) {
    let state = &mut 7;
    let gain = (3.0 / W as f32).sqrt();
    let (w1, w2) = (matrix::<W, W>(state, gain), matrix::<W, L>(state, gain));
    let (b1, b2) = (matrix::<1, W>(state, 0.1), matrix::<1, L>(state, 0.1));
    let (x, v) = (matrix::<L, W>(state, 1.0), matrix::<L, W>(state, 1.0));
    let mut y = vec![[f32::NAN; W]; L];
    let mut scratch = vec![f32::NAN; Dense::<L, W, W>::SCRATCH];
    let layer = Dense::new(&w1, &b1[0], &w2, &b2[0]);
    layer.forward(&x[..], &v[..], &mut y, &mut scratch).expect("the sizes agree");

    // a few rows are enough: a row's bits do not depend on the others
    let rows = L.min(6);
    let [xr, w1r, w2r] = [Matrix::from_rows(&x[..rows]), Matrix::from_rows(&w1[..]), Matrix::from_rows(&w2[..])];
    let scores = dense_scores(&xr, &w1r, Some(&b1[0]), &w2r, Some(&b2[0]));
    let answer = attend(&scores, &Matrix::from_rows(&v[..]), &Mask::default());
    if let Err(mismatch) = answer.check(y[..rows].as_flattened()) {
        panic!("{L}x{W}: {mismatch}");
    }

    let mut group = c.benchmark_group("dense");
    group.throughput(Throughput::Elements((L * (W * W + 2 * W * L)) as u64)); // multiply-adds
    group.bench_function(BenchmarkId::from_parameter(format!("{L}x{W}")), |b| {
        b.iter(|| layer.forward(black_box(&x[..]), black_box(&v[..]), &mut y, &mut scratch));
    });
}

criterion_group!(
    sizes,
    dense::<4, 5>,
    dense::<16, 16>,
    dense::<16, 32>,
    dense::<32, 64>,
    dense::<50, 40>,
    dense::<64, 64>,
    dense::<100, 96>,
    dense::<128, 64>,
    dense::<128, 128>,
    dense::<256, 64>,
    dense::<256, 512>,
    dense::<512, 512>,
);
criterion_main!(sizes);
