use std::hint::black_box;

use crate::layer::matrix;
use crate::{Aligned, Layer, Peer, Result};

/// Somebody else's matrix product.
pub(super) trait MatMul {
    /// What can be settled once for products of one size.
    type Plan;

    /// A plan for `C = A B` with A `[m, k]` and B `[k, n]`.
    fn plan(m: usize, k: usize, n: usize) -> Self::Plan;

    /// `C = A B`, all of them row-major.
    fn matmul<const M: usize, const K: usize, const N: usize>(
        plan: &Self::Plan,
        a: &[[f32; K]; M],
        b: &[[f32; N]; K],
        c: &mut [[f32; N]; M],
    );
}

/// The rest of the layer written out around it: bias, ReLU and softmax in plain Rust, sizes known when it is compiled.
struct ByHand<'a, P: MatMul, const L: usize, const W: usize> {
    layer: &'a Layer<L, W>,
    plans: [P::Plan; 3],
    hidden: Box<Aligned<[[f32; W]; L]>>,
    scores: Box<Aligned<[[f32; L]; L]>>,
    y: Box<Aligned<[[f32; W]; L]>>,
}

pub(super) fn load<'a, P: MatMul + 'a, const L: usize, const W: usize>(
    layer: &'a Layer<L, W>,
) -> Result<Box<dyn Peer + 'a>> {
    Ok(Box::new(ByHand::<P, L, W> {
        layer,
        plans: [P::plan(L, W, W), P::plan(L, W, L), P::plan(L, L, W)],
        hidden: matrix(|| 0.0),
        scores: matrix(|| 0.0),
        y: matrix(|| 0.0),
    }))
}

impl<P: MatMul, const L: usize, const W: usize> Peer for ByHand<'_, P, L, W> {
    fn forward(&mut self) -> Result<()> {
        let Layer { w1, b1, w2, b2, x, v } = black_box(self.layer);
        let [first, second, third] = &self.plans;
        P::matmul(first, x, w1, &mut self.hidden);
        for row in self.hidden.iter_mut() {
            row.iter_mut().zip(b1).for_each(|(h, b)| *h = (*h + b).max(0.0));
        }
        P::matmul(second, &self.hidden, w2, &mut self.scores);
        for row in self.scores.iter_mut() {
            row.iter_mut().zip(b2).for_each(|(s, b)| *s += b);
            softmax(row);
        }
        P::matmul(third, &self.scores, v, &mut self.y);
        black_box(&mut self.y);
        Ok(())
    }

    fn y(&self) -> Result<Vec<f32>> {
        Ok(self.y.as_flattened().to_vec())
    }
}

fn softmax<const N: usize>(row: &mut [f32; N]) {
    let max = row.iter().fold(f32::NEG_INFINITY, |max, s| if *s > max { *s } else { max });
    let mut sum = 0.0;
    for s in &mut *row {
        *s = (*s - max).exp();
        sum += *s;
    }
    let scale = 1.0 / sum;
    row.iter_mut().for_each(|s| *s *= scale);
}
