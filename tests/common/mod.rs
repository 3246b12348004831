//! What the integration tests share: layers of every variant, the golden cases and a seeded source of random numbers.
#![allow(dead_code, unreachable_pub, reason = "each test binary compiles this for itself and uses a part")]
#![allow(clippy::unnecessary_box_returns, reason = "arrays of weights are too large for a test thread's stack")]

pub mod golden;
pub mod heads;
pub mod layers;
pub mod pinned;
pub mod rng;
pub mod variants;

/// Where a list takes minutes, every so many-th of it is tried: all on x86-64, fewer on what the gate runs beside it. A
/// prime that divides no length here, so that every kind of entry has its turn.
pub const STRIDE: usize = if cfg!(target_arch = "x86_64") {
    1
} else if cfg!(target_arch = "x86") {
    5
} else {
    191
};
