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

    /// Numbers of keys and rows for a layer of this maximum length, either up to a little past it: often all, and mostly
    /// few rows, since the reference takes a while for each.
    pub fn keys_and_rows(&mut self, most: usize) -> (usize, usize) {
        match self.below(8) {
            0 | 1 => (most, most),
            2 => (self.below(most + 2), self.below(most + 4)),
            3..6 => (most, self.below(4)),
            _ => (self.below(most + 2), self.below(4)),
        }
    }

    /// A number of rows where each of them is a key too.
    pub fn rows_as_keys(&mut self, most: usize) -> usize {
        match self.below(16) {
            0 => most,
            1 => self.below(most + 4),
            _ => self.below(5),
        }
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

    /// Weights by their names, as the tests' layers load them; a bias may be missing.
    pub fn tensors(&mut self) -> impl FnMut(&str, usize, usize) -> Option<Vec<f32>> {
        |name, rows, cols| {
            let none = name.starts_with('b') && self.chance(4);
            (!none).then(|| self.numbers(rows * cols))
        }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
