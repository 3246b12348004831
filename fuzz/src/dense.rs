use synthesizer_attention::Dense;
use synthesizer_attention::reference::{Matrix, dense_scores};

use crate::call::{Call, Limits};
use crate::source::Source;

/// A Dense layer of one of seven sizes.
pub fn dense(data: &[u8]) {
    let mut source = Source::new(data);
    let source = &mut source;
    // L, D, H, M, and the width that attention weights are written in
    match source.below(7) {
        0 => layer::<1, 1, 1, 1, 1>(source),
        1 => layer::<4, 5, 4, 5, 5>(source),
        2 => layer::<7, 9, 11, 3, 65>(source),
        3 => layer::<16, 16, 16, 16, 16>(source),
        4 => layer::<17, 19, 23, 67, 67>(source),
        5 => layer::<33, 8, 16, 24, 33>(source),
        _ => layer::<20, 40, 33, 68, 68>(source),
    }
}

fn layer<const L: usize, const D: usize, const H: usize, const M: usize, const N: usize>(source: &mut Source<'_>) {
    let call = Call::<D, M>::draw::<Dense<'_, L, D, H>>(source);
    let (w1, b1, w2, b2) = (source.matrix(), source.bias(), source.matrix(), source.bias());
    let layer = Dense::<L, D, H>::with_biases(&w1, b1.as_deref(), &w2, b2.as_deref());
    let limits = Limits { keys: L, positions: usize::MAX, frozen: None };
    call.verify::<N, _>(&layer, &limits, || {
        let [b1, b2] = [b1.as_deref().map(<[f32; H]>::as_slice), b2.as_deref().map(<[f32; L]>::as_slice)];
        dense_scores(&Matrix::from_rows(&call.x), &Matrix::from_rows(&*w1), b1, &Matrix::from_rows(&*w2), b2)
    });
}
