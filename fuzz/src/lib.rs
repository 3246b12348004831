//! What the fuzz targets do: layers and calls out of bytes, every backend against the float64 reference and the
//! contract. Nothing here knows libFuzzer, so the corpora replay under `cargo test` too.

mod call;
mod dense;
mod family;
mod source;

pub use dense::dense;
pub use family::family;
