//! The bits of all answers to the golden cases, pinned, so that a change of them is a decision.
//!
//! They depend on how many lanes a sum is split over and on whether a product and a sum round once, and on nothing else:
//! not on the processor, the target, its byte order or the build's optimisation. Where a change is meant, the failing
//! test prints the rows to put here.

use synthesizer_attention::Backend;

/// What a hash is taken of.
#[derive(Clone, Copy, Debug)]
pub enum Set {
    /// The single layers: Y and the attention weights.
    Layers,
    Heads,
    Encoders,
}

/// Lanes, whether multiply-adds are fused, and the hash of each set.
const PINNED: [(usize, bool, [u64; 3]); 5] = [
    (1, false, [0x0a3c_61e7_9a92_b8f1, 0xdc29_2d14_e65f_b470, 0xf4e1_c82a_de2c_cbae]),
    (4, false, [0xac2a_5460_55fe_7156, 0xe738_d245_ee56_53bf, 0x00e3_f5df_3a9b_7e32]),
    (4, true, [0x265d_043f_971c_f7e7, 0x100f_9e33_638d_5af0, 0xa037_1d7d_831b_9260]), // AArch64
    (8, true, [0x39c0_7a43_6b2a_4ebb, 0xdbd2_c137_3c69_370e, 0xfbfb_a722_6106_fb81]),
    (16, true, [0x6296_4c7d_f86e_28d0, 0x48aa_74a4_85a0_9b2d, 0x220f_e273_fc5b_6c52]),
];

/// FNV-1a over the bits of floats (draft-eastlake-fnv).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    pub fn add(&mut self, floats: &[f32]) {
        for byte in floats.iter().flat_map(|x| x.to_bits().to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The lanes of a backend, and whether it fuses.
fn arithmetic(backend: Backend) -> (usize, bool) {
    match backend {
        Backend::Scalar => (1, false),
        Backend::Portable => (4, cfg!(any(target_arch = "aarch64", target_feature = "fma"))),
        Backend::Avx2 => (8, true),
        Backend::Avx512 => (16, true),
        _ => panic!("{backend} has no pinned bits"),
    }
}

pub fn assert_pinned(set: Set, found: &[(Backend, Hash)]) {
    let mut changed = Vec::new();
    for (backend, hash) in found {
        let (lanes, fused) = arithmetic(*backend);
        let row = PINNED.iter().find(|row| (row.0, row.1) == (lanes, fused)).expect("a row for every backend");
        if hash.0 != row.2[set as usize] {
            changed.push(format!("{lanes} lanes, fused: {fused}: {set:?} {:#x} on {backend}", hash.0));
        }
    }
    assert!(changed.is_empty(), "other bits than those pinned in tests/common/pinned.rs:\n{}", changed.join("\n"));
}
