use std::hint::black_box;

use synthesizer_attention::{Dense, Synthesizer};

use crate::layer::matrix;
use crate::{Aligned, Layer, Peer, Result};

struct ThisCrate<'a, const L: usize, const W: usize> {
    layer: &'a Layer<L, W>,
    y: Box<Aligned<[[f32; W]; L]>>,
    scratch: Vec<f32>,
}

pub(super) fn load<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Result<Box<dyn Peer + '_>> {
    let scratch = vec![f32::NAN; Dense::<L, W, W>::SCRATCH];
    Ok(Box::new(ThisCrate { layer, y: matrix(|| f32::NAN), scratch }))
}

impl<const L: usize, const W: usize> Peer for ThisCrate<'_, L, W> {
    fn forward(&mut self) -> Result<()> {
        let Layer { w1, b1, w2, b2, x, v } = black_box(self.layer);
        Dense::new(w1, b1, w2, b2).forward(&x[..], &v[..], &mut self.y[..], &mut self.scratch)?;
        black_box(&mut self.y);
        Ok(())
    }

    fn y(&self) -> Result<Vec<f32>> {
        Ok(self.y.as_flattened().to_vec())
    }
}
