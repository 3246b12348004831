use core::fmt;

use super::portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// An instruction set the kernels can run on.
///
/// Left alone, a call takes the fastest one that the processor has, found at run time on x86-64 and when the crate is
/// compiled everywhere else. Naming one ([`Options::backend`](crate::Options::backend)) makes a result repeatable from
/// one machine to another: on one backend the bits depend on nothing but the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// One float at a time. Every target has it.
    Scalar,
    /// Four lanes through the `wide` crate: SSE2, NEON or wasm simd128.
    Portable,
    /// AVX2 and FMA, eight lanes (x86-64).
    Avx2,
    /// AVX-512F, sixteen lanes (x86-64).
    Avx512,
}

impl Backend {
    /// Every backend, slowest first, whether this processor has it or not.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Portable, Self::Avx2, Self::Avx512];

    /// The fastest backend of this processor: what a call uses unless told otherwise.
    #[inline]
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::Avx512::detect().is_some() {
                return Self::Avx512;
            }
            if avx2::Avx2::detect().is_some() {
                return Self::Avx2;
            }
        }
        if portable::AVAILABLE { Self::Portable } else { Self::Scalar }
    }

    /// Whether this processor, and the target the crate was compiled for, have this backend.
    #[inline]
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            Self::Portable => portable::AVAILABLE,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::Avx512::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The backends that can be named here, slowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|b| b.is_available())
    }

    /// Its name in lower case: `scalar`, `portable`, `avx2`, `avx512`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
