/// Choices and numbers out of a fuzzer's bytes; past their end, out of a generator (`SplitMix64`) that the first four
/// of them seed. So a short input still fills a large layer.
pub struct Source<'a> {
    bytes: &'a [u8],
    state: u64,
}

/// Scale of a tensor's numbers, and how many of 256 are one of `EXTREMES` instead.
const KINDS: [(f32, u8); 16] = [
    (1.0, 0),
    (1.0, 0),
    (1.0, 0),
    (1.0, 0),
    (0.1, 0),
    (30.0, 0),
    (3000.0, 0),
    (1e20, 0),
    (1e37, 0),
    (1e-20, 0),
    (1e-38, 0),
    (1e-43, 0),
    (1.0, 1),
    (1.0, 16),
    (1.0, 128),
    (1e20, 16),
];

const EXTREMES: [f32; 16] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    f32::from_bits(1),
    -f32::from_bits(1),
    f32::MIN_POSITIVE,
    1e-30,
    -104.0,
    f32::MAX,
    f32::MIN,
    f32::MAX / 2.0,
    3e38,
    -3e38,
];

impl<'a> Source<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        let (seed, bytes) = data.split_at(data.len().min(4));
        Self { bytes, state: seed.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte)) }
    }

    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_off_first() {
            Some(byte) => *byte,
            None => self.random().to_le_bytes()[0],
        }
    }

    /// In `0..end`, `end` at most 256.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// True for about `of` in 16, and false for a byte of 0.
    pub fn chance(&mut self, of: u8) -> bool {
        self.byte() % 16 >= 16 - of
    }

    /// `len` numbers of one kind.
    pub fn numbers(&mut self, len: usize) -> Vec<f32> {
        let (scale, wild) = KINDS[self.below(KINDS.len())];
        let number = |_| {
            let byte = self.byte();
            let [dice, noise, ..] = self.random().to_le_bytes();
            if dice < wild {
                return EXTREMES[usize::from(byte) % EXTREMES.len()];
            }
            // a byte alone would make every product exact
            scale * (f32::from(byte.cast_signed()) + f32::from(noise) / 256.3) / 64.0
        };
        (0..len).map(number).collect()
    }

    pub fn rows<const C: usize>(&mut self, count: usize) -> Vec<[f32; C]> {
        self.numbers(count * C).as_chunks().0.to_vec()
    }

    /// On the heap and exactly as long, so that a read outside is one that the address sanitizer sees.
    pub fn matrix<const R: usize, const C: usize>(&mut self) -> Box<[[f32; C]; R]> {
        self.rows(R).try_into().expect("R rows")
    }

    pub fn vector<const C: usize>(&mut self) -> Box<[f32; C]> {
        self.numbers(C).try_into().expect("C numbers")
    }

    pub fn bias<const C: usize>(&mut self) -> Option<Box<[f32; C]>> {
        if self.chance(4) { None } else { Some(self.vector()) }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
