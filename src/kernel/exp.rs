//! exp(x) for x <= 0, the only exponential a softmax asks for.
//!
//! With n the integer nearest to x / ln 2 and r = x - n ln 2, |r| <= ln 2 / 2, exp(x) = 2^n exp(r).
//!
//! - n comes from adding [`MAGIC`] = 1.5 * 2^23 + [`BIAS`], whose unit in the last place is 1: the sum's low bits are
//!   the integer n + BIAS. Shifted into the exponent they give 2^(n + 24), never subnormal, and a last multiplication
//!   by 2^-24 rounds once where the result is.
//! - ln 2 is split in two so that n times its larger part is exact.
//! - exp(r) is a polynomial of degree 6, fitted to the least relative error on |r| <= 0.3466: 2^-28.
//!
//! Error, over every float32 from -104 to 0: below 1 unit in the last place with a fused multiply-add, below 2 without,
//! plus one step of the subnormal numbers where the result is one. Below -104 the result is exactly 0, as it is for
//! -inf, and comes from a selection, or from raising x to where 2^(n + 24) is 0: computing it would underflow, which costs
//! a hundred cycles and more on many processors, once for every masked key and every padded column. NaN gives NaN.

use crate::simd::Simd;

/// What is added to n: the exponent bias of a float32, 127, and the 24 that keep 2^(n + 24) normal.
pub(crate) const BIAS: u8 = 127 + 24;
/// 1.5 * 2^23 + BIAS.
pub(crate) const MAGIC: f32 = 12_582_912.0 + BIAS as f32;
/// 2^-24.
pub(crate) const UNBIAS: f32 = 1.0 / 16_777_216.0;

/// exp(-104) is below half the least subnormal number, so it is 0 like all that lie lower.
pub(crate) const LOWEST: f32 = -104.0;
/// Where n is -BIAS: shifted, the sum's low bits are 0.0.
pub(crate) const ZERO: f32 = -104.75;
/// The upper nine bits of ln 2: n times this is exact.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// The exponentials of R vectors, step by step beside each other: one waits for another at every step.
#[inline(always)]
pub(crate) fn exp_each<S: Simd, const R: usize>(s: S, x: [S::F32; R]) -> [S::F32; R] {
    let (mut biased, mut r, mut p) = (x, x, [s.splat(POLYNOMIAL[0]); R]);
    for i in 0..R {
        r[i] = s.exp_argument(x[i]);
        biased[i] = s.mul_add(r[i], s.splat(core::f32::consts::LOG2_E), s.splat(MAGIC));
    }
    for i in 0..R {
        let n = s.sub(biased[i], s.splat(MAGIC));
        r[i] = s.mul_add(n, s.splat(-LN_2_HIGH), r[i]);
        r[i] = s.mul_add(n, s.splat(-LN_2_LOW), r[i]);
    }
    for c in &POLYNOMIAL[1..] {
        for i in 0..R {
            p[i] = s.mul_add(p[i], r[i], s.splat(*c));
        }
    }
    for i in 0..R {
        p[i] = s.scale(p[i], biased[i], x[i]);
    }
    p
}

#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let [e] = exp_each(s, [x]);
    e
}

/// 1 + r + r^2 q(r), highest degree first; q fitted with weights r^2 / exp(r) (Lawson's iteration), then rounded.
const POLYNOMIAL: [f32; 7] = [1.381_432e-3, 8.368_851e-3, 4.166_84e-2, 0.166_665_2, 0.499_999_94, 1.0, 1.0];

#[cfg(test)]
mod tests {
    use std::{println, string::String, vec::Vec};

    use super::exp;
    use crate::Backend;
    use crate::simd::{Kernel, Simd, dispatch};

    /// exp of each float, in place.
    struct Each<'a>(&'a mut [f32]);

    impl Kernel for Each<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            for v in self.0.chunks_mut(S::LANES) {
                let e = exp(s, s.load(v));
                s.store(v, e);
            }
        }
    }

    fn run(backend: Backend, x: &mut [f32]) {
        dispatch(Some(backend), Each(x)).unwrap();
    }

    /// exp(x) in float64, cheaply where three terms of the series are exact enough.
    fn exact(x: f32) -> f64 {
        let x = f64::from(x);
        if x > -1.0 / 8192.0 { 1.0 + x * (1.0 + x * (0.5 + x / 6.0)) } else { x.exp() }
    }

    /// The distance between floats near y, for results at most 1.
    fn unit(y: f64) -> f64 {
        let exponent = (y.to_bits() >> 52) as i32 - 1023;
        2.0_f64.powi(exponent.max(-126) - 23)
    }

    /// For each backend the worst error over these floats, in units in the last place where the result is normal and in
    /// steps where it is subnormal; half a unit where every result is the float nearest to the exact one.
    #[allow(clippy::cast_possible_truncation)] // the stride is small; rounding to the nearest float is what is wanted
    fn worst(backends: &[Backend], bits: core::ops::RangeInclusive<u32>, stride: usize) -> Vec<[f64; 2]> {
        let mut worst = std::vec![[0.5_f64; 2]; backends.len()];
        let (mut x, mut y, mut expected, mut nearest) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut first = *bits.start();
        while first <= *bits.end() {
            x.clear();
            x.extend((first..=*bits.end()).step_by(stride).take(4096).map(f32::from_bits));
            first += 4096 * stride as u32;
            expected.clear();
            expected.extend(x.iter().map(|x| exact(*x)));
            nearest.clear();
            nearest.extend(expected.iter().map(|exact| *exact as f32));
            for (backend, worst) in backends.iter().zip(&mut worst) {
                y.clone_from(&x);
                run(*backend, &mut y);
                for i in 0..y.len() {
                    if y[i] != nearest[i] {
                        let error = (f64::from(y[i]) - expected[i]).abs() / unit(expected[i]);
                        let worst = &mut worst[usize::from(expected[i] < f64::from(f32::MIN_POSITIVE))];
                        *worst = if error <= *worst { *worst } else { error }; // a NaN stays and fails
                    }
                }
            }
        }
        worst
    }

    /// The bound the module states: every float32 of the range on x86-64, every 997th where tests run emulated.
    fn check(first: f32, last: f32) {
        let backends: Vec<_> = Backend::available().collect();
        let stride = if cfg!(target_arch = "x86_64") { 1 } else { 997 };
        let worst = worst(&backends, first.to_bits()..=last.to_bits(), stride);
        for (backend, [normal, subnormal]) in backends.into_iter().zip(worst) {
            println!(
                "{backend}, every {stride}th: {normal:.3} units in the last place, {subnormal:.3} subnormal steps"
            );
            let fused = matches!(backend, Backend::Avx2 | Backend::Avx512)
                || backend == Backend::Portable && cfg!(any(target_arch = "aarch64", target_feature = "fma"));
            assert!(normal <= if fused { 1.0 } else { 2.0 }, "{backend}: {normal} units");
            assert!(subnormal <= 1.0, "{backend}: {subnormal} subnormal steps");
        }
    }

    // two tests of as many floats, to run side by side

    #[test]
    fn error_bound_down_to_a_32nd() {
        check(-0.0, -1.0 / 32.0);
    }

    #[test]
    fn error_bound_from_a_32nd() {
        check(-1.0 / 32.0, -104.0);
    }

    #[test]
    fn special_values() {
        for backend in Backend::available() {
            for lane in 0..20 {
                let mut x = [-1.0; 20];
                for (given, expected) in [
                    (f32::NEG_INFINITY, 0.0),
                    (f32::MIN, 0.0),
                    (-104.1, 0.0),
                    (-0.0, 1.0),
                    (0.0, 1.0),
                    (f32::NAN, f32::NAN),
                ] {
                    x[lane] = given;
                    let mut y = x;
                    run(backend, &mut y);
                    let what: String = std::format!("{backend}, lane {lane}: exp({given}) = {}", y[lane]);
                    assert!(y[lane].to_bits() == expected.to_bits() || y[lane].is_nan() && expected.is_nan(), "{what}");
                    assert!(y[(lane + 1) % 20] < 0.3679 && y[(lane + 1) % 20] > 0.3678, "a neighbour of {what}");
                }
            }
        }
    }
}
