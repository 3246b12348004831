//! Forward passes of Dense beside the peak of one core, every backend of this machine, one line a case.
//!
//!     cargo bench --bench roofline              every size, under a minute
//!     cargo bench --bench roofline -- --quick   under fifteen seconds
//!
//! `peak` is the multiply-add rate of one core at the backend's vector width, measured in the same rounds as the cases
//! (twelve or more independent chains in registers). `gflops` counts the three products' multiply-adds, 2 L (D H + H L +
//! L M); bias, ReLU and softmax are done but not counted. Every figure is `best/median` over the rounds; the median of
//! `fraction` is that of each round's own, so that what slows the whole machine for a while does not count. Each answer
//! is checked against the float64 reference first.

use std::hint::black_box;
use std::time::{Duration, Instant};

use synthesizer_attention::reference::{self, Mask, Matrix};
use synthesizer_attention::weights::Aligned;
use synthesizer_attention::{Backend, Dense, Options, Synthesizer};
use wide::f32x4;

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (rounds, batch) = if quick { (15, Duration::from_micros(600)) } else { (21, Duration::from_millis(4)) };

    let mut cases: Vec<Box<dyn Case>> = vec![
        Box::new(Layer::<4, 5>::new()),
        Box::new(Layer::<16, 16>::new()),
        Box::new(Layer::<16, 32>::new()),
        Box::new(Layer::<32, 64>::new()),
        Box::new(Layer::<50, 40>::new()),
        Box::new(Layer::<64, 64>::new()),
        Box::new(Layer::<100, 96>::new()),
        Box::new(Layer::<128, 64>::new()),
        Box::new(Layer::<128, 128>::new()),
        Box::new(Layer::<256, 64>::new()),
        Box::new(Layer::<256, 512>::new()),
        Box::new(Layer::<512, 512>::new()),
    ];
    let backends: Vec<_> = Backend::available().collect();
    println!("detected backend: {}", Backend::detect());

    let mut peaks = vec![Vec::new(); backends.len()];
    let mut times = vec![vec![Vec::new(); cases.len()]; backends.len()];
    for (b, backend) in backends.iter().enumerate() {
        cases.iter_mut().for_each(|case| case.check(*backend));
        for _ in 0..rounds {
            peaks[b].push(peak(*backend, batch));
            for (case, times) in cases.iter_mut().zip(&mut times[b]) {
                times.push(seconds_per_call(batch, || case.run(*backend)));
            }
        }
    }
    for ((backend, peaks), times) in backends.iter().zip(&peaks).zip(&times) {
        for (case, times) in cases.iter().zip(times) {
            let rates: Vec<f64> = times.iter().map(|seconds| case.operations() / seconds).collect();
            let fractions: Vec<f64> = rates.iter().zip(peaks).map(|(rate, peak)| rate / peak).collect();
            println!(
                "backend={backend} {} ns={:.0}/{:.0} gflops={:.1}/{:.1} peak={:.1}/{:.1} fraction={:.3}/{:.3}",
                case.sizes(),
                1e9 * case.operations() / best(&rates),
                1e9 * case.operations() / median(&rates),
                best(&rates) * 1e-9,
                median(&rates) * 1e-9,
                best(peaks) * 1e-9,
                median(peaks) * 1e-9,
                best(&rates) / best(peaks),
                median(&fractions),
            );
        }
    }
}

/// The highest.
fn best(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Calls `f` for about `batch`, at least once.
fn seconds_per_call(batch: Duration, mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    f();
    let once = start.elapsed().as_secs_f64().max(1e-9);
    if once > batch.as_secs_f64() {
        return once;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 1 and a million
    let calls = (batch.as_secs_f64() / once).clamp(1.0, 1e6) as u32;
    let start = Instant::now();
    for _ in 0..calls {
        f();
    }
    start.elapsed().as_secs_f64() / f64::from(calls)
}

trait Case {
    fn sizes(&self) -> String;
    fn operations(&self) -> f64;
    fn run(&mut self, backend: Backend);
    fn check(&mut self, backend: Backend);
}

/// Dense with D = H = M = W.
struct Layer<const L: usize, const W: usize> {
    w1: Box<Aligned<[[f32; W]; W]>>,
    b1: [f32; W],
    w2: Box<Aligned<[[f32; L]; W]>>,
    b2: [f32; L],
    x: Box<Aligned<[[f32; W]; L]>>,
    v: Box<Aligned<[[f32; W]; L]>>,
    y: Box<Aligned<[[f32; W]; L]>>,
    scratch: Vec<f32>,
}

fn boxed<const R: usize, const C: usize>(mut next: impl FnMut() -> f32) -> Box<Aligned<[[f32; C]; R]>> {
    let mut matrix = Box::new(Aligned([[0.0; C]; R]));
    matrix.as_flattened_mut().fill_with(&mut next);
    matrix
}

impl<const L: usize, const W: usize> Layer<L, W> {
    fn new() -> Self {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        let gain = (3.0 / W as f32).sqrt();
        Self {
            w1: boxed(|| gain * next()),
            b1: std::array::from_fn(|_| 0.1 * next()),
            w2: boxed(|| gain * next()),
            b2: std::array::from_fn(|_| 0.1 * next()),
            x: boxed(&mut next),
            v: boxed(&mut next),
            y: boxed(|| f32::NAN),
            scratch: vec![f32::NAN; Dense::<L, W, W>::SCRATCH],
        }
    }
}

impl<const L: usize, const W: usize> Case for Layer<L, W> {
    fn sizes(&self) -> String {
        format!("L={L} D={W} H={W} M={W}")
    }

    fn operations(&self) -> f64 {
        (2 * L * (W * W + W * L + L * W)) as f64
    }

    fn run(&mut self, backend: Backend) {
        let layer = Dense::new(&self.w1, &self.b1, &self.w2, &self.b2);
        let options = Options::new().backend(backend);
        let (x, v) = (black_box(&self.x.0), black_box(&self.v.0));
        layer.forward_with(&options, x, v, &mut self.y.0, &mut self.scratch).expect("the sizes agree");
        black_box(&mut self.y);
    }

    /// A few rows are enough: a row's bits do not depend on the others.
    fn check(&mut self, backend: Backend) {
        self.run(backend);
        let rows = L.min(6);
        let (w1, w2) = (Matrix::from_rows(&self.w1.0), Matrix::from_rows(&self.w2.0));
        let x = Matrix::from_rows(&self.x.0[..rows]);
        let scores = reference::dense_scores(&x, &w1, Some(&self.b1), &w2, Some(&self.b2));
        let answer = reference::attend(&scores, &Matrix::from_rows(&self.v.0), &Mask::default());
        if let Err(mismatch) = answer.check(self.y.0[..rows].as_flattened()) {
            panic!("{backend}, {}: {mismatch}", self.sizes());
        }
        assert!(self.y.as_flattened().iter().all(|y| y.is_finite()), "{backend}, {}", self.sizes());
    }
}

/// Floating-point operations a second of multiply-adds at this backend's width.
fn peak(backend: Backend, batch: Duration) -> f64 {
    const STEPS: usize = 2000;
    let (lanes, chains, burst): (usize, usize, fn(usize) -> f32) = match backend {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: only backends that this processor has are measured.
        Backend::Avx512 => (16, 24, |n| unsafe { x86::avx512(n) }),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Backend::Avx2 => (8, 12, |n| unsafe { x86::avx2(n) }),
        // the scalar backend's loops become vectors of four where the compiler has them
        _ => (4, 12, portable),
    };
    let seconds = seconds_per_call(batch, || {
        black_box(burst(black_box(STEPS)));
    });
    (2 * lanes * chains * STEPS) as f64 / seconds
}

/// Twelve chains of four floats' multiply-adds, fused or not as `wide` does them on this target.
fn portable(steps: usize) -> f32 {
    let (b, c) = (f32x4::splat(black_box(0.5)), f32x4::splat(black_box(0.25)));
    let mut sums = [f32x4::splat(1.0); 12];
    for _ in 0..steps {
        for sum in &mut sums {
            *sum = sum.mul_add(b, c);
        }
    }
    sums.into_iter().fold(f32x4::splat(0.0), |total, sum| total + sum).reduce_add()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_cvtss_f32, _mm256_fmadd_ps, _mm256_set1_ps, _mm512_add_ps, _mm512_fmadd_ps,
        _mm512_reduce_add_ps, _mm512_set1_ps,
    };
    use std::hint::black_box;

    #[target_feature(enable = "avx512f")]
    pub(super) fn avx512(steps: usize) -> f32 {
        let (b, c) = (_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(0.25)));
        let mut sums = [_mm512_set1_ps(1.0); 24];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, b, c);
            }
        }
        let mut total = sums[0];
        for sum in &sums[1..] {
            total = _mm512_add_ps(total, *sum);
        }
        _mm512_reduce_add_ps(total)
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2(steps: usize) -> f32 {
        let (b, c) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(black_box(0.25)));
        let mut sums = [_mm256_set1_ps(1.0); 12];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, b, c);
            }
        }
        let mut total = sums[0];
        for sum in &sums[1..] {
            total = _mm256_add_ps(total, *sum);
        }
        _mm256_cvtss_f32(total)
    }
}
