use std::{boxed::Box, vec::Vec};

/// A tensor of fixed shape: `f32`, or an array of tensors. Sealed.
pub trait Tensor: Sized {
    /// How many dimensions it has.
    const RANK: usize;

    #[doc(hidden)]
    fn shape() -> Vec<usize>;

    /// The next of the values as a tensor.
    #[doc(hidden)]
    fn next(values: &mut dyn Iterator<Item = f32>) -> Self;

    /// The same on the heap. Only its parts pass over the stack.
    #[doc(hidden)]
    fn boxed(values: &mut dyn Iterator<Item = f32>) -> Box<Self>;
}

impl Tensor for f32 {
    const RANK: usize = 0;

    fn shape() -> Vec<usize> {
        Vec::new()
    }

    fn next(values: &mut dyn Iterator<Item = f32>) -> Self {
        values.next().unwrap_or(f32::NAN) // there are as many as the shape says
    }

    fn boxed(values: &mut dyn Iterator<Item = f32>) -> Box<Self> {
        Box::new(Self::next(values))
    }
}

impl<T: Tensor, const N: usize> Tensor for [T; N] {
    const RANK: usize = 1 + T::RANK;

    fn shape() -> Vec<usize> {
        let mut shape = T::shape();
        shape.insert(0, N);
        shape
    }

    fn next(values: &mut dyn Iterator<Item = f32>) -> Self {
        core::array::from_fn(|_| T::next(values))
    }

    fn boxed(values: &mut dyn Iterator<Item = f32>) -> Box<Self> {
        let parts: Box<[T]> = (0..N).map(|_| T::next(values)).collect();
        parts.try_into().unwrap_or_else(|_| unreachable!("N parts were collected"))
    }
}

/// The float32 of the same value as a float16.
pub(super) fn from_f16(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let (sign, exponent, fraction) = (bits >> 15 << 31, bits >> 10 & 31, bits & 1023);
    let magnitude = match exponent {
        // subnormal: a multiple of 2^-24, exactly
        0 => (fraction as f32 / 16_777_216.0).to_bits(),
        31 => 255 << 23 | fraction << 13,
        _ => (exponent + 127 - 15) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// The float32 of the same value as a bfloat16, which is its upper half.
pub(super) fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::{from_bf16, from_f16};

    #[test]
    #[allow(clippy::float_cmp, reason = "conversions are exact")]
    fn halves() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3c00, 1.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(from_f16(bits), value);
            assert_eq!(from_f16(bits | 0x8000).to_bits(), (-value).to_bits());
        }
        assert!(from_f16(0x7e00).is_nan() && from_f16(0xfc01).is_nan());
        // every finite one rounds back to itself
        for bits in 0..0x7c00 {
            let next = from_f16(bits + 1);
            assert!(from_f16(bits) < next, "{bits:#x}");
        }
        assert_eq!([0x3f80, 0xc000, 0x7f7f].map(from_bf16), [1.0, -2.0, 3.389_531_4e38]);
        assert!(from_bf16(0x7fc0).is_nan() && from_bf16(0xff80) == f32::NEG_INFINITY);
    }
}
