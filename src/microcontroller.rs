//! On a microcontroller: what a layer needs, where it goes, what to set. (This page is part of the documentation alone.)
//!
//! # Memory
//! A layer is a handful of references. Its weights are borrowed, so that they stay in flash; what it works in, the caller
//! gives. For Dense with H = D on a core without vectors, in bytes:
//!
//! | L, D | weights, flash | scratch, four rows a block | scratch, one row | x, v and y of L rows |
//! |---|---|---|---|---|
//! | 16, 16 | 2176 | 512 | 128 | 3072 |
//! | 16, 32 | 6336 | 768 | 192 | 6144 |
//! | 29, 32 | 8052 | 976 | 244 | 11136 |
//! | 32, 64 | 24960 | 1536 | 384 | 24576 |
//! | 64, 64 | 33280 | 2048 | 512 | 49152 |
//!
//! `SCRATCH` and `PARAMETERS` are constants of every layer, in floats of four bytes. There is never a matrix of L x L
//! scores. Token by token, x and y are one row and v is the cache of values so far; nothing is kept between the calls.
//!
//! ```
//! use synthesizer_attention::{Dense, Error, Options, Synthesizer};
//!
//! type Layer = Dense<'static, 16, 4, 4>;
//! // a `static` that is never changed is placed in flash; `weights::input_major` turns PyTorch's around at compile time
//! static LAYER: Layer = Dense::new(&[[0.5; 4]; 4], &[0.0; 4], &[[0.25; 16]; 4], &[0.0; 16]);
//!
//! /// What a task keeps in RAM.
//! struct Stream {
//!     values: [[f32; 4]; 16],
//!     len: usize,
//!     scratch: [f32; Layer::MIN_SCRATCH],
//! }
//!
//! impl Stream {
//!     fn step(&mut self, x: &[f32; 4], value: [f32; 4]) -> Result<[f32; 4], Error> {
//!         let given = self.len + 1;
//!         *self.values.get_mut(self.len).ok_or(Error::Keys { given, most: Layer::MAX_LEN })? = value;
//!         let (values, mut y) = (&self.values[..given], [[0.0; 4]]);
//!         LAYER.forward_with(&Options::new().causal().first(self.len), &[*x], values, &mut y, &mut self.scratch)?;
//!         self.len = given;
//!         Ok(y[0])
//!     }
//! }
//! # let mut stream = Stream { values: [[0.0; 4]; 16], len: 0, scratch: [0.0; Layer::MIN_SCRATCH] };
//! # assert_eq!(stream.step(&[1.0; 4], [2.0; 4])?, [2.0; 4]);
//! # Ok::<(), Error>(())
//! ```
//!
//! `SCRATCH` is what suits the target; less is slower, down to `MIN_SCRATCH`, which is enough for steps of one row. On a
//! core with tightly coupled memory, scratch is what to put there first, then the weights: in a product every number of a
//! block's scratch is read once for every four columns, and the weights once for every four rows. Alignment to more than a
//! float brings nothing.
//!
//! # Stack
//! Measured by painting it under emulation: at most 624 bytes for any layer and 808 for a two-layer encoder with four
//! heads, on Cortex-M at opt-level 3; interrupts and the caller's own come to it. Nothing recurses.
//!
//! # Code
//! Built at opt-level "s", one Dense layer takes 2.9 KB of flash on a Cortex-M4F, softmax and exponential included; another
//! size of it adds 0.7 KB, and Random 0.6 KB. At opt-level 3 it is 7.0 KB, and takes 4 to 12 % fewer instructions.
//!
//! # Time
//! Thousands of instructions of a forward pass at opt-level 3, counted under emulation (D = H = M):
//!
//! | core | 16, 16 | 16, 32 | 29, 32 | 32, 64 | 64, 64 |
//! |---|---|---|---|---|---|
//! | Cortex-M4F, `target-cpu=cortex-m4` | 57 | 119 | 315 | 829 | 2485 |
//! | Cortex-M7, `target-cpu=cortex-m7` | 44 | 86 | 227 | 565 | 1689 |
//! | Cortex-M55, `target-cpu=cortex-m55` | 55 | 114 | 302 | 793 | 2381 |
//!
//! On the M4F a multiply and an add stand where the M7 has one instruction; the pair is the faster of the two there. The
//! kernels leave the M55's vectors unused, because those flush subnormal numbers to zero, which the contract on numbers
//! does not allow.
//!
//! A core without a floating-point unit runs the same code in software, at sixteen to thirty-three times the instructions.
//!
//! # Subnormal numbers
//! The exponential of a very low score is a subnormal number, as it should be. Cortex-M and RISC-V units compute with those
//! at full speed. With flush-to-zero set, weights below 1.2e-38 are 0 instead, which moves an output by less than that
//! times the largest value.
//!
//! # Profile
//! ```toml
//! [profile.release]
//! opt-level = 3     # or "s"
//! lto = true
//! codegen-units = 1
//! panic = "abort"   # the forward path has no panic to unwind from
//! ```
//! and `-C target-cpu=` your core in `.cargo/config.toml`'s `rustflags`. No feature is needed, and no allocator.
//!
//! `tests/firmware` in the repository is a crate that does all of this on six cores under QEMU, and `.ci/firmware` the
//! command that repeats the figures above.
