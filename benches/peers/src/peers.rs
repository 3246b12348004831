use std::error::Error;

use crate::Layer;

#[cfg(feature = "burn")]
mod burn;
#[cfg(any(feature = "matrixmultiply", feature = "nano-gemm", feature = "faer", feature = "nalgebra"))]
mod by_hand;
#[cfg(feature = "candle")]
mod candle;
#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "matrixmultiply")]
mod matrixmultiply;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "nano-gemm")]
mod nano_gemm;
#[cfg(feature = "onnxruntime")]
mod onnxruntime;
#[cfg(feature = "rten")]
mod rten;
#[cfg(feature = "synthesizer-attention")]
mod this_crate;
#[cfg(feature = "tract")]
mod tract;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A loaded layer with its inputs.
pub trait Peer {
    /// Computes Y.
    ///
    /// # Errors
    /// The peer's own.
    fn forward(&mut self) -> Result<()>;

    /// Calls `forward` so many times. Peers that would hand every call to a thread pool make all of them from inside it.
    ///
    /// # Errors
    /// The first of `forward`'s.
    fn repeat(&mut self, calls: u32) -> Result<()> {
        (0..calls).try_for_each(|_| self.forward())
    }

    /// Y of the last call, row after row.
    ///
    /// # Errors
    /// The peer's own.
    fn y(&self) -> Result<Vec<f32>>;
}

/// A peer that can be loaded.
pub struct Candidate<const L: usize, const W: usize> {
    pub name: &'static str,
    pub load: for<'a> fn(&'a Layer<L, W>) -> Result<Box<dyn Peer + 'a>>,
}

/// Every peer of this build; this crate, if it is among them, comes first.
#[must_use]
pub fn all<const L: usize, const W: usize>() -> Vec<Candidate<L, W>> {
    Vec::from([
        #[cfg(feature = "synthesizer-attention")]
        Candidate { name: "this crate", load: this_crate::load },
        #[cfg(feature = "onnxruntime")]
        Candidate { name: "ONNX Runtime", load: onnxruntime::load },
        #[cfg(feature = "tract")]
        Candidate { name: "tract", load: tract::load },
        #[cfg(feature = "rten")]
        Candidate { name: "rten", load: rten::load },
        #[cfg(feature = "candle")]
        Candidate { name: "candle", load: candle::load },
        #[cfg(feature = "burn")]
        Candidate { name: "burn (flex)", load: burn::load },
        #[cfg(feature = "nano-gemm")]
        Candidate { name: "nano-gemm", load: nano_gemm::load },
        #[cfg(feature = "matrixmultiply")]
        Candidate { name: "matrixmultiply", load: matrixmultiply::load },
        #[cfg(feature = "nalgebra")]
        Candidate { name: "nalgebra SMatrix", load: nalgebra::load },
        #[cfg(feature = "faer")]
        Candidate { name: "faer", load: faer::load },
    ])
}
