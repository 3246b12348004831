//! What the fuzz targets do: layers and calls out of bytes, on a backend of this processor, against the float64
//! reference and the contract. Nothing here knows libFuzzer, so the corpora replay under `cargo test` too.

mod call;
mod checkpoint;
#[path = "../../tests/common/mod.rs"]
mod common; // the layers of every variant that the integration tests have
mod encoder;
mod multi_head;
mod source;
mod variants;

pub use checkpoint::checkpoint;
pub use encoder::encoder;
pub use multi_head::multi_head;
pub use variants::{dense, dot_product, factorized_dense, factorized_random, frozen, mixture, random};

/// What a target does with its bytes.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: [(&str, Target); 10] = [
    ("dense", dense),
    ("random", random),
    ("factorized_random", factorized_random),
    ("factorized_dense", factorized_dense),
    ("dot_product", dot_product),
    ("mixture", mixture),
    ("frozen", frozen),
    ("multi_head", multi_head),
    ("encoder", encoder),
    ("checkpoint", checkpoint),
];
