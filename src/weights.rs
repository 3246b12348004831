//! Weights from PyTorch, and weights in flash.
//!
//! PyTorch's `nn.Linear.weight` is output-major, `[out, in]`: row j holds what every input contributes to output j. The
//! kernels of this crate want input-major, `[in, out]`: row k holds what input k contributes to every output, so that
//! one load brings the weights of neighbouring outputs. The two are transposes of each other, and where `in = out` the
//! compiler can't tell them apart: always convert.
//!
//! | PyTorch | shape there | shape here | how |
//! |---|---|---|---|
//! | `w1.weight` | `[H, D]` | `[[f32; H]; D]` | [`input_major`] |
//! | `w1.bias` | `[H]` | `[f32; H]` | as it is |
//! | `w2.weight` | `[L, H]` | `[[f32; L]; H]` | [`input_major`] |
//! | `w2.bias` | `[L]` | `[f32; L]` | as it is |
//!
//! ```
//! use synthesizer_attention::weights::{Aligned, input_major};
//!
//! // a layer from three inputs to two outputs, as PyTorch prints it, converted when the program is compiled
//! static W1: Aligned<[[f32; 2]; 3]> = Aligned(input_major(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]));
//! assert_eq!(*W1, [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]);
//! ```

use core::ops::{Deref, DerefMut};

/// The input-major `[IN, OUT]` form of an `nn.Linear.weight`, `[OUT, IN]`.
///
/// A `const fn`: in the initializer of a `static` it costs nothing at run time. (For very large matrices the compiler's
/// lint `long_running_const_eval` asks whether that was meant: allow it there.)
#[must_use]
pub const fn input_major<const OUT: usize, const IN: usize>(weight: &[[f32; IN]; OUT]) -> [[f32; OUT]; IN] {
    let mut transposed = [[0.0; OUT]; IN];
    input_major_into(weight, &mut transposed);
    transposed
}

/// The same into the caller's buffer, for weights that come at run time and must not pass over the stack.
pub const fn input_major_into<const OUT: usize, const IN: usize>(
    weight: &[[f32; IN]; OUT],
    transposed: &mut [[f32; OUT]; IN],
) {
    // loops that a const fn may have
    let mut i = 0;
    while i < IN {
        let mut o = 0;
        while o < OUT {
            transposed[i][o] = weight[o][i];
            o += 1;
        }
        i += 1;
    }
}

/// The same for each head's weight, `[HEADS, OUT, IN]`: what a multi-head layer keeps as one parameter.
#[must_use]
pub const fn input_major_heads<const HEADS: usize, const OUT: usize, const IN: usize>(
    weight: &[[[f32; IN]; OUT]; HEADS],
) -> [[[f32; OUT]; IN]; HEADS] {
    let mut transposed = [[[0.0; OUT]; IN]; HEADS];
    let mut i = 0;
    while i < HEADS {
        input_major_into(&weight[i], &mut transposed[i]);
        i += 1;
    }
    transposed
}

/// A value at an address that is a multiple of 64 bytes: a cache line and the widest vector.
///
/// The kernels take weights at any address that a float may have. Aligned ones are read a little faster on x86-64,
/// where a vector that straddles two cache lines costs two accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub struct Aligned<T>(pub T);

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
