//! What the integration tests share: layers of every variant, the golden cases and a seeded source of random numbers.
#![allow(dead_code, unreachable_pub, reason = "each test binary compiles this for itself and uses a part")]
#![allow(clippy::unnecessary_box_returns, reason = "arrays of weights are too large for a test thread's stack")]

pub mod golden;
pub mod heads;
pub mod layers;
pub mod pinned;
pub mod rng;
pub mod variants;
