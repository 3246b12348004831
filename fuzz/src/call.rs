use synthesizer_attention::reference::{Answer, Mask, Matrix, Scores, attend};
use synthesizer_attention::{Backend, Error, FrozenFor, Options, Synthesizer};

use crate::source::Source;

/// A call of any layer over rows of D with values of M: right or wrong in any of the ways that types allow.
pub struct Call<const D: usize, const M: usize> {
    pub x: Vec<[f32; D]>,
    v: Vec<[f32; M]>,
    /// Rows of y.
    height: usize,
    pub first: usize,
    causal: bool,
    mask: Option<Vec<bool>>,
    scratch: usize,
    /// Floats before the scratch, so that it starts at any address.
    offset: usize,
    poison: f32,
}

/// What a layer can be called with.
pub struct Limits {
    /// The most keys there may be: the maximum length or fewer.
    pub keys: usize,
    /// The most positions, where scores depend on them.
    pub positions: usize,
    pub frozen: Option<FrozenFor>,
}

/// What stands where nothing may be written.
const GUARD: f32 = f32::from_bits(0x7fa5_1234);

impl<const D: usize, const M: usize> Call<D, M> {
    /// A call of a layer of type T, mostly a right one. `keys` and `rows` go up to a little past its maximum length.
    pub fn draw<T: Synthesizer>(source: &mut Source<'_>) -> Self {
        let most = T::MAX_LEN;
        let keys = if source.chance(8) { source.below(most + 2) } else { most };
        let rows = if source.chance(8) { source.below(most + 4) } else { keys };
        let height = if source.chance(1) { source.below(most + 4) } else { rows };
        let first = match source.below(16) {
            0..8 => 0,
            8..15 => source.below(most + 2),
            _ => usize::MAX - source.below(4),
        };
        let causal = source.chance(8);
        let mask = source.chance(8).then(|| {
            let len = if source.chance(1) { source.below(most + 2) } else { keys };
            let kept = source.below(17) as u8;
            (0..len).map(|_| source.chance(kept.min(16))).collect()
        });
        let one = T::scratch_len(1);
        let scratch = match source.below(16) {
            0..6 => T::SCRATCH,
            6..10 => one,
            10..15 => T::scratch_len(1 + source.below(70)) + source.below(20),
            _ => one.saturating_sub(source.below(64)),
        };
        let offset = source.below(17);
        let poison = [f32::NAN, f32::INFINITY, f32::MAX, f32::from_bits(1)][source.below(4)];
        let (x, v) = (source.rows(rows), source.rows(keys));
        Self { x, v, height, first, causal, mask, scratch, offset, poison }
    }

    /// Calls `layer` on every backend: the answer is inside the reference's bounds, or the call is refused for a reason
    /// that there is and nothing has been written. N, at least the maximum length, is the width of the rows that the
    /// attention weights are looked at in. (Every pair of a layer and a width is an instance that takes seconds to
    /// build, unless N is M.)
    pub fn verify<const N: usize, T: Synthesizer<Row = [f32; D]>>(
        &self,
        layer: &T,
        limits: &Limits,
        scores: impl FnOnce() -> Scores,
    ) {
        let needs_scratch = limits.frozen.is_none();
        let reasons = self.reasons(limits, T::MAX_LEN, if needs_scratch { T::scratch_len(1) } else { 0 });
        let answer = reasons.is_empty().then(|| attend(&scores(), &Matrix::from_rows(&self.v), &self.mask()));
        for backend in Backend::ALL {
            let options = self.options().backend(backend);
            if !backend.is_available() {
                let found = self.run(layer, &options).expect_err("no such backend");
                assert!(found == Error::Backend { asked: backend } || reasons.contains(&found), "{found:?}");
                continue;
            }
            match (self.run(layer, &options), &answer) {
                (Err(found), None) => assert!(reasons.contains(&found), "{found:?}, and what is wrong is {reasons:?}"),
                (Ok(y), Some(answer)) => {
                    let flat = y.as_flattened();
                    answer.check(flat).unwrap_or_else(|e| panic!("{backend}: {e}"));
                    self.check_weights::<N, T>(layer, &options, answer);
                    self.check_steps(layer, &options, &y);
                }
                (found, _) => panic!("{backend}: {found:?}, and what is wrong is {reasons:?}"),
            }
        }
        // the backend that is picked without being named
        assert_eq!(self.run(layer, &self.options()).is_ok(), reasons.is_empty());
    }

    /// Everything that is wrong with the call.
    fn reasons(&self, limits: &Limits, max_len: usize, needed: usize) -> Vec<Error> {
        let (rows, keys) = (self.x.len(), self.v.len());
        let end = self.first.saturating_add(rows);
        let mut reasons = Vec::new();
        let mut refuse = |wrong: bool, reason: Error| reasons.extend(wrong.then_some(reason));
        refuse(keys > max_len, Error::Keys { given: keys, most: max_len });
        refuse(keys > limits.keys, Error::Keys { given: keys, most: limits.keys });
        refuse(self.height != rows, Error::Rows { given: self.height, needed: rows });
        refuse(end > limits.positions, Error::Position { given: end, most: limits.positions });
        if let Some(mask) = &self.mask {
            refuse(mask.len() != keys, Error::KeyMask { given: mask.len(), needed: keys });
        }
        refuse(self.scratch < needed, Error::Scratch { given: self.scratch, needed });
        if let Some(to) = limits.frozen {
            let other_use = match to {
                FrozenFor::Keys(taken) => self.causal || keys != taken,
                FrozenFor::Causal => !self.causal || keys < end,
            };
            refuse(self.mask.is_some() || other_use, Error::Frozen { to });
        }
        reasons
    }

    fn options(&self) -> Options<'_> {
        let options = Options::new().first(self.first);
        let options = if self.causal { options.causal() } else { options };
        self.mask.as_ref().map_or(options, |mask| options.key_mask(mask))
    }

    fn mask(&self) -> Mask<'_> {
        // past 1000 every key is seen
        Mask { causal: self.causal, first: self.first.min(1000), keys: self.mask.as_deref() }
    }

    /// One call, with guards around y and the scratch.
    fn run<T: Synthesizer<Row = [f32; D]>>(&self, layer: &T, options: &Options<'_>) -> Result<Vec<[f32; M]>, Error> {
        let mut y = vec![[GUARD; M]; self.height + 2];
        let mut scratch = self.scratch(self.scratch);
        let (before, inside, after) = parts(&mut scratch, self.offset, self.scratch);
        let result = layer.forward_with(options, &self.x, &self.v, &mut y[1..=self.height], inside);
        assert!(is_guard(before) && is_guard(after), "written outside the scratch");
        let written = result.is_ok();
        assert!(written || inside.iter().all(|s| s.to_bits() == self.poison.to_bits()), "scratch written on an error");
        let ends = y[0].iter().chain(&y[self.height + 1]);
        assert!(ends.copied().all(|y| y.to_bits() == GUARD.to_bits()), "written outside y");
        y.pop();
        y.remove(0);
        assert!(written || is_guard(y.as_flattened()), "y written on an error");
        result.map(|()| y)
    }

    /// The attention weights against the reference's, and zeros past the last key.
    fn check_weights<const N: usize, T: Synthesizer<Row = [f32; D]>>(
        &self,
        layer: &T,
        options: &Options<'_>,
        answer: &Answer,
    ) {
        let (rows, keys) = (self.x.len(), self.v.len());
        let mut weights = vec![[GUARD; N]; rows];
        let mut scratch = self.scratch(self.scratch);
        let (_, inside, _) = parts(&mut scratch, self.offset, self.scratch);
        layer.attention_weights(options, &self.x, keys, &mut weights, inside).expect("as forward");
        answer.check_weights(weights.as_flattened(), N).unwrap_or_else(|e| panic!("weights: {e}"));
        assert!(weights.iter().all(|row| row[keys..].iter().all(|w| w.to_bits() == 0)), "a weight past the last key");
    }

    /// Row by row in the least scratch: the same bits.
    fn check_steps<T: Synthesizer<Row = [f32; D]>>(&self, layer: &T, options: &Options<'_>, whole: &[[f32; M]]) {
        let mut scratch = vec![self.poison; T::scratch_len(1)];
        for (i, (x, whole)) in self.x.iter().zip(whole).enumerate() {
            let mut y = [[GUARD; M]];
            let options = options.first(self.first.saturating_add(i));
            layer.forward_with(&options, &[*x], &self.v, &mut y, &mut scratch).expect("as the whole");
            let same = |a: &f32, b: &f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(y[0].iter().zip(whole).all(|(a, b)| same(a, b)), "row {i} alone: {y:?}, with others {whole:?}");
        }
    }

    fn scratch(&self, len: usize) -> Vec<f32> {
        let mut scratch = vec![GUARD; self.offset + len + 16];
        scratch[self.offset..][..len].fill(self.poison);
        scratch
    }
}

/// Before, inside, after.
fn parts(buffer: &mut [f32], offset: usize, len: usize) -> (&[f32], &mut [f32], &[f32]) {
    let (before, rest) = buffer.split_at_mut(offset);
    let (inside, after) = rest.split_at_mut(len);
    (before, inside, after)
}

fn is_guard(floats: &[f32]) -> bool {
    floats.iter().all(|f| f.to_bits() == GUARD.to_bits())
}
