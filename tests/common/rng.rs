/// A seeded source of random numbers: `SplitMix64` (Steele, Lea and Flood, 2014).
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In `0..end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits() >> 32).unwrap() % end
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// In `[0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Normally distributed, by Box and Muller.
    #[allow(clippy::cast_possible_truncation, reason = "rounded to float32")]
    pub fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        (radius * (std::f64::consts::TAU * self.uniform()).cos()) as f32
    }

    /// `len` normal numbers times `scale`.
    pub fn vec(&mut self, len: usize, scale: f32) -> Vec<f32> {
        (0..len).map(|_| self.normal() * scale).collect()
    }

    /// `R` rows of `C` normal numbers times `scale`, made on the heap.
    pub fn array<const R: usize, const C: usize>(&mut self, scale: f32) -> Box<[[f32; C]; R]> {
        super::golden::array(&self.vec(R * C, scale))
    }

    /// `count` rows of `C` normal numbers times `scale`.
    pub fn rows<const C: usize>(&mut self, count: usize, scale: f32) -> Vec<[f32; C]> {
        super::golden::rows(&self.vec(count * C, scale))
    }

    /// A layer's tensor of so many rows and columns, of a scale that gives scores of moderate size.
    pub fn weights(&mut self, name: &str, rows: usize, cols: usize) -> Vec<f32> {
        match name.as_bytes()[0] {
            b'b' | b'c' | b'h' => self.vec(rows * cols, 0.1),
            b'w' | b'f' => self.vec(rows * cols, 1.5 / (rows as f32).sqrt()),
            b'a' => vec![0.5, 0.75, 0.25],
            _ => self.vec(rows * cols, 1.0),
        }
    }
}
