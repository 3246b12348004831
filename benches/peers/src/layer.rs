use std::ops::{Deref, DerefMut};

/// Weights and inputs with D = H = M = W, the same in every run. Matrices are row-major and weights input-major.
pub struct Layer<const L: usize, const W: usize> {
    pub w1: Box<Aligned<[[f32; W]; W]>>,
    pub b1: [f32; W],
    pub w2: Box<Aligned<[[f32; L]; W]>>,
    pub b2: [f32; L],
    pub x: Box<Aligned<[[f32; W]; L]>>,
    pub v: Box<Aligned<[[f32; W]; L]>>,
}

impl<const L: usize, const W: usize> Layer<L, W> {
    #[must_use]
    #[allow(clippy::new_without_default, reason = "these numbers are nobody's default")]
    pub fn new() -> Self {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        let gain = (3.0 / W as f32).sqrt(); // scores of about the size of X's entries
        Self {
            w1: matrix(|| gain * next()),
            b1: std::array::from_fn(|_| 0.1 * next()),
            w2: matrix(|| gain * next()),
            b2: std::array::from_fn(|_| 0.1 * next()),
            x: matrix(&mut next),
            v: matrix(&mut next),
        }
    }
}

/// `R` rows of `C` numbers.
pub(crate) fn matrix<const R: usize, const C: usize>(next: impl FnMut() -> f32) -> Box<Aligned<[[f32; C]; R]>> {
    let mut matrix = Box::new(Aligned([[0.0; C]; R]));
    matrix.as_flattened_mut().fill_with(next);
    matrix
}

/// Aligned to whole cache lines, as a careful user of any of the peers would have it.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Aligned<T>(T);

impl<T> Deref for Aligned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
