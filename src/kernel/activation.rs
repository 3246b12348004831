//! GELU, `x Phi(x)` with the normal distribution's Phi, in PyTorch's two forms.
//!
//! Both are computed as `max(x, 0) - a T(a)` where `a = |x|` and T is the upper tail, 1 - Phi(a): that is `x Phi(x)` on
//! either side of 0, nothing cancels where Phi is small, and the one thing that is left falls from 1/2 to 0.
//!
//! - The exact form: `T(a) = erfc(a / sqrt 2) / 2 = exp(g(a) - a^2 / 2)`, where g is so smooth that a polynomial of
//!   degree 8 gives it, fitted on 0 to 7 with weights T (Lawson's iteration); T is right to 5e-8, past 7 to 1e-12.
//! - The tanh form: with `u = sqrt(2 / pi) (a + 0.044715 a^3)`, `T(a) = (1 - tanh u) / 2 = e / (1 + e)` where
//!   `e = exp(-2 u)`. The reciprocal of 1 + e, a number between 1 and 2, is the parabola nearest to it (off by a
//!   hundredth) and two steps of Newton's.
//!
//! NaN gives NaN; +inf gives +inf, and -inf gives 0, the limit.

use core::marker::PhantomData;

use super::MatMut;
use super::exp::exp;
use crate::simd::{Kernel, Simd};

/// Which function; the type that carries it as a constant is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Relu,
    Gelu,
    GeluTanh,
}

/// A function known when the crate is compiled, so that those not used are not linked.
pub trait Elementwise {
    const FUNCTION: Function;
}

/// `x = f(x)` for `width` columns of `count` rows.
pub(crate) struct Activate<'a, A> {
    pub(crate) rows: MatMut<'a>,
    pub(crate) count: usize,
    pub(crate) width: usize,
    pub(crate) function: PhantomData<A>,
}

impl<A: Elementwise> Kernel for Activate<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        for row in self.rows.rows(self.count, self.width) {
            for v in row.chunks_mut(S::LANES) {
                let x = s.load(v);
                let y = match A::FUNCTION {
                    Function::Relu => s.max(s.splat(0.0), x), // the second where either is NaN
                    Function::Gelu => gelu(s, x, tail),
                    Function::GeluTanh => gelu(s, x, tail_tanh),
                };
                s.store(v, y);
            }
        }
    }
}

/// `max(x, 0) - a T(a)`
#[inline(always)]
fn gelu<S: Simd>(s: S, x: S::F32, tail: impl Fn(S, S::F32) -> S::F32) -> S::F32 {
    let zero = s.splat(0.0);
    // -|x|, not below -16 where T is 0 already, so that infinity times 0 does not come up
    let minus_a = s.max(s.splat(-16.0), s.sub(zero, s.max(s.sub(zero, x), x)));
    let a = s.sub(zero, minus_a);
    s.mul_add(minus_a, tail(s, a), s.max(zero, x))
}

/// g, lowest degree last.
const LOG_TAIL: [f32; 9] = [
    -1.195_426_2e-6,
    1.906_52e-5,
    -9.446_544e-5,
    -1.680_451_4e-4,
    4.978_699e-3,
    -3.643_667_3e-2,
    0.181_715_04,
    -0.797_886_85,
    -core::f32::consts::LN_2,
];
/// Where g's polynomial ends.
const LAST: f32 = 7.0;

#[inline(always)]
fn tail<S: Simd>(s: S, a: S::F32) -> S::F32 {
    let zero = s.splat(0.0);
    let b = s.sub(zero, s.max(s.splat(-LAST), s.sub(zero, a)));
    let mut g = s.splat(LOG_TAIL[0]);
    for c in &LOG_TAIL[1..] {
        g = s.mul_add(g, b, s.splat(*c));
    }
    exp(s, s.mul_add(s.mul(a, s.splat(-0.5)), a, g))
}

/// -2 sqrt(2 / pi)
const SLOPE: f32 = -1.595_769_2;
const CUBE: f32 = 0.044_715;
/// The parabola nearest to 1 / z on 1 to 2, relative to it, highest degree first.
const RECIPROCAL: [f32; 3] = [0.323_232_32, -1.454_545_5, 2.121_212_2];

#[inline(always)]
fn tail_tanh<S: Simd>(s: S, a: S::F32) -> S::F32 {
    let (one, two) = (s.splat(1.0), s.splat(2.0));
    let bend = s.mul_add(s.mul(a, a), s.splat(SLOPE * CUBE), s.splat(SLOPE));
    let e = exp(s, s.mul(a, bend));
    let z = s.add(one, e);
    let [c2, c1, c0] = RECIPROCAL.map(|c| s.splat(c));
    let mut r = s.mul_add(s.mul_add(c2, z, c1), z, c0);
    for _ in 0..2 {
        r = s.mul(r, s.sub(two, s.mul(z, r)));
    }
    s.mul(e, r)
}
