//! Every variant at L = 64, d = 64 beside Dense, as the table of the README; and what causal saves at L = 256, d = 64.
//!
//!     cargo bench --bench variants
//!
//! Times are of the whole forward pass, interleaved over the rounds of one run; ratios are of best times, then of medians.
//! Each answer is checked against the float64 reference first.

use std::hint::black_box;
use std::time::Instant;

use synthesizer_attention::reference::{self, Mask, Matrix, Scores};
use synthesizer_attention::weights::Aligned;
use synthesizer_attention::{
    Backend, Dense, DotProduct, FactorizedDense, FactorizedRandom, FrozenFor, Linear, Mixture, Options, Positional,
    Random, Synthesizer,
};

/// Rows that are compared with the reference; a row's bits do not depend on the others.
const CHECKED: usize = 6;
const ROUNDS: usize = 41;
const D: usize = 64;

type Boxed<const R: usize, const C: usize> = Box<Aligned<[[f32; C]; R]>>;

/// Numbers between -gain and gain.
#[allow(clippy::unnecessary_box_returns)] // for the heap's sake
fn matrix<const R: usize, const C: usize>(state: &mut u64, gain: f32) -> Boxed<R, C> {
    let mut matrix = Box::new(Aligned([[0.0; C]; R]));
    matrix.as_flattened_mut().fill_with(|| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 40) as f32 / (1 << 23) as f32 - 1.0) * gain
    });
    matrix
}

fn float64<const R: usize, const C: usize>(matrix: &Boxed<R, C>) -> Matrix {
    Matrix::from_rows(&matrix.0)
}

/// A row of the table, and the call that is timed.
struct Entry<'a> {
    name: &'static str,
    parameters: usize,
    score_multiply_adds: usize,
    scratch: usize,
    call: Box<dyn FnMut() + 'a>,
    nanoseconds: Vec<f64>,
}

/// Checks a layer's answer and makes its row.
fn entry<'a, const L: usize, S: Synthesizer<Row = [f32; D]> + 'a>(
    name: &'static str,
    layer: S,
    causal: bool,
    (x, v): (&'a Boxed<L, D>, &'a Boxed<L, D>),
    scores: &Scores,
) -> Entry<'a> {
    let options = if causal { Options::new().causal() } else { Options::new() };
    let mut y = vec![[f32::NAN; D]; L];
    let mut scratch = vec![f32::NAN; S::SCRATCH];
    layer.forward_with(&options, &x.0, &v.0, &mut y, &mut scratch).expect("the sizes agree");
    let answer = reference::attend(scores, &float64(v), &Mask { causal, ..Mask::default() });
    if let Err(mismatch) = answer.check(y[..CHECKED].as_flattened()) {
        panic!("{name}: {mismatch}");
    }
    Entry {
        name,
        parameters: S::PARAMETERS,
        score_multiply_adds: L * S::SCORE_MULTIPLY_ADDS,
        scratch: S::SCRATCH,
        call: Box::new(move || {
            let (x, v) = (black_box(&x.0), black_box(&v.0));
            layer.forward_with(&options, x, v, &mut y, &mut scratch).expect("the sizes agree");
            black_box(&mut y);
        }),
        nanoseconds: Vec::new(),
    }
}

fn time(entries: &mut [Entry<'_>]) {
    for _ in 0..ROUNDS {
        for entry in &mut *entries {
            let calls = 50;
            let start = Instant::now();
            for _ in 0..calls {
                (entry.call)();
            }
            entry.nanoseconds.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
        }
    }
    for entry in entries {
        entry.nanoseconds.sort_by(f64::total_cmp);
    }
}

fn ratios(entry: &Entry<'_>, dense: &Entry<'_>) -> String {
    let ratio = |i: usize| entry.nanoseconds[i] / dense.nanoseconds[i];
    format!("{:.2} / {:.2}", ratio(0), ratio(ROUNDS / 2))
}

fn main() {
    let state = &mut 7;
    let (w1, wk): (Boxed<D, D>, Boxed<D, D>) = (matrix(state, 0.2), matrix(state, 0.2));
    let (wa, wc): (Boxed<D, 8>, Boxed<D, 8>) = (matrix(state, 0.2), matrix(state, 0.2));
    let (w2, r): (Boxed<D, 64>, Boxed<64, 64>) = (matrix(state, 0.2), matrix(state, 1.7));
    let (r1, r2): (Boxed<64, 8>, Boxed<8, 64>) = (matrix(state, 1.0), matrix(state, 1.0));
    let (x, v): (Boxed<64, D>, Boxed<64, D>) = (matrix(state, 1.0), matrix(state, 1.0));
    let xv = (&x, &v);
    let rows = Matrix::from_rows(&x.0[..CHECKED]);

    let dense = Dense::without_bias(&w1.0, &w2.0);
    let dense_scores = reference::dense_scores(&rows, &float64(&w1), None, &float64(&w2), None);
    let random = Random::new(&r.0);
    let random_scores = reference::random_scores(&float64(&r), 0, CHECKED);
    let factorized_random = FactorizedRandom::<64, D, 8>::new(&r1.0, &r2.0);
    let factorized_random_scores =
        reference::factorized_random_scores(&float64(&r1), &float64(&r2).transposed(), 0, CHECKED);
    let factors = (Dense::<8, D, D>::without_bias(&w1.0, &wa.0), Dense::<8, D, D>::without_bias(&wk.0, &wc.0));
    let factorized_dense = FactorizedDense::<64, 8, 8, D, D, D>::new(factors.0, factors.1);
    let factorized_dense_scores = reference::factorized_dense_scores(
        &rows,
        (&float64(&w1), None, &float64(&wa), None),
        (&float64(&wk), None, &float64(&wc), None),
    );
    let dot_product = DotProduct::<64, D, D>::new(Linear::without_bias(&w1.0), Linear::without_bias(&wk.0));
    let mut keys: Boxed<D, 64> = Box::new(Aligned([[0.0; 64]; D]));
    dot_product.project_keys(0, &x.0, &mut keys).expect("room for all");
    let dot_product_scores =
        reference::dot_product_scores(&rows, &float64(&x), &float64(&w1), None, &float64(&wk), None, 64);
    let mixture = Mixture::of(0.5, random).and(0.5, dense);
    let mixture_scores = reference::mixture_scores(&[(0.5, &random_scores), (0.5, &dense_scores)]);
    let mut weights: Boxed<64, 64> = Box::new(Aligned([[0.0; 64]; 64]));
    let mut scratch = vec![0.0; Random::<64, D>::SCRATCH];
    let frozen = random.freeze(FrozenFor::Keys(64), &mut weights, &mut scratch).expect("room enough");

    let mut table = [
        entry("Dense", dense, false, xv, &dense_scores),
        entry("Dense, causal", dense, true, xv, &dense_scores),
        entry("Random", random, false, xv, &random_scores),
        entry("Random, frozen", frozen, false, xv, &random_scores),
        entry("factorized Random, k = 8", factorized_random, false, xv, &factorized_random_scores),
        entry("factorized Dense, 8 x 8", factorized_dense, false, xv, &factorized_dense_scores),
        entry("dot product, keys projected", dot_product.with_keys(&keys, 64), false, xv, &dot_product_scores),
        entry("mixture of Random and Dense", mixture, false, xv, &mixture_scores),
    ];
    time(&mut table);
    println!("backend {}, L = 64, d = 64, whole forward pass; times are of Dense's, best / median", Backend::detect());
    println!("| variant | parameters | multiply-adds of the scores | scratch, floats | time |");
    println!("|---|---|---|---|---|");
    for row in &table {
        let Entry { name, parameters, score_multiply_adds, scratch, .. } = row;
        println!("| {name} | {parameters} | {score_multiply_adds} | {scratch} | {} |", ratios(row, &table[0]));
    }

    let w2: Boxed<D, 256> = matrix(state, 0.2);
    let (x, v): (Boxed<256, D>, Boxed<256, D>) = (matrix(state, 1.0), matrix(state, 1.0));
    let rows = Matrix::from_rows(&x.0[..CHECKED]);
    let dense = Dense::without_bias(&w1.0, &w2.0);
    let scores = reference::dense_scores(&rows, &float64(&w1), None, &float64(&w2), None);
    let mut pair = [entry("full", dense, false, (&x, &v), &scores), entry("causal", dense, true, (&x, &v), &scores)];
    time(&mut pair);
    println!("Dense at L = 256, d = 64: causal takes {} of the full pass's time", ratios(&pair[1], &pair[0]));
}
