use std::ops::Range;
use std::slice;

use synthesizer_attention::reference::{Answer, Mask, Matrix, Scores, attend};
use synthesizer_attention::{Backend, Error, FrozenFor, Options, Synthesizer};

use crate::source::Source;

/// The options of a call: a place, masks and a backend.
pub struct Setting {
    pub first: usize,
    pub causal: bool,
    pub mask: Option<Vec<bool>>,
    /// None for the one that is picked without being named.
    backend: Option<Backend>,
}

impl Setting {
    /// Of a call of so many keys, mostly a right one.
    pub fn draw(source: &mut Source<'_>, keys: usize, most: usize) -> Self {
        let first = match source.below(16) {
            0..8 => 0,
            8..15 => source.below(most + 2),
            _ => usize::MAX - source.below(4),
        };
        let causal = source.chance(8);
        let mask = source.chance(8).then(|| {
            let len = if source.chance(1) { source.below(most + 2) } else { keys };
            let kept = source.below(17) as u8;
            (0..len).map(|_| source.chance(kept)).collect()
        });
        let backend = Backend::ALL.get(source.below(Backend::ALL.len() + 1)).copied();
        Self { first, causal, mask, backend }
    }

    pub fn options(&self) -> Options<'_> {
        let options = Options::new().first(self.first);
        let options = if self.causal { options.causal() } else { options };
        let options = self.backend.map_or(options, |backend| options.backend(backend));
        self.mask.as_ref().map_or(options, |mask| options.key_mask(mask))
    }

    pub fn mask(&self) -> Mask<'_> {
        // past 1000 every key is seen
        Mask { causal: self.causal, first: self.first.min(1000), keys: self.mask.as_deref() }
    }

    /// What is wrong with it in a call of so many keys.
    pub fn reasons(&self, keys: usize) -> Vec<Error> {
        let mask = self.mask.as_ref().filter(|mask| mask.len() != keys);
        let mask = mask.map(|mask| Error::KeyMask { given: mask.len(), needed: keys });
        let backend = self.backend.filter(|backend| !backend.is_available()).map(|asked| Error::Backend { asked });
        mask.into_iter().chain(backend).collect()
    }
}

/// A call of any layer over rows of D with values of M: right or wrong in any of the ways that types allow.
pub struct Call<const D: usize, const M: usize> {
    pub x: Vec<[f32; D]>,
    v: Vec<[f32; M]>,
    /// Rows of y.
    height: usize,
    pub setting: Setting,
    scratch: Scratch,
    /// The first of the rows that are looked at.
    start: usize,
}

/// What a layer can be called with.
pub struct Limits {
    /// The most keys there may be: the maximum length or fewer.
    pub keys: usize,
    /// The most positions, where scores depend on them.
    pub positions: usize,
    pub frozen: Option<FrozenFor>,
}

impl<const D: usize, const M: usize> Call<D, M> {
    /// A call of a layer of type T, mostly a right one. `keys` and `rows` go up to a little past its maximum length.
    pub fn draw<T: Synthesizer>(source: &mut Source<'_>) -> Self {
        let (keys, rows) = source.keys_and_rows(T::MAX_LEN);
        let height = if source.chance(1) { source.below(T::MAX_LEN + 4) } else { rows };
        let setting = Setting::draw(source, keys, T::MAX_LEN);
        let scratch = Scratch::draw(source, T::SCRATCH, T::scratch_len);
        let start = source.below(256) % rows.max(1);
        let (x, v) = (source.rows(rows), source.rows(keys));
        Self { x, v, height, setting, scratch, start }
    }

    /// Calls `layer`: the answer is inside the reference's bounds, or the call is refused for a reason that there is
    /// and nothing has been written.
    pub fn verify<T: Synthesizer<Row = [f32; D]>>(
        &self,
        layer: &T,
        limits: &Limits,
        scores: impl FnOnce(&Matrix, usize) -> Scores,
    ) {
        let reasons = self.reasons::<T>(limits);
        match self.run(layer) {
            Err(found) => assert!(reasons.contains(&found), "{found:?}, and what is wrong is {reasons:?}"),
            Ok(y) => {
                assert!(reasons.is_empty(), "not refused: {reasons:?}");
                // few rows a call: the reference is slow, and there are many calls
                let rows = self.start..y.len().min(self.start + 3);
                let mask = self.setting.mask();
                let mask = Mask { first: mask.first + rows.start, ..mask };
                let scores =
                    scores(&Matrix::from_rows(&self.x[rows.clone()]), self.setting.first.saturating_add(rows.start));
                let answer = attend(&scores, &Matrix::from_rows(&self.v), &mask);
                answer.check(y[rows.clone()].as_flattened()).unwrap_or_else(|e| panic!("{e}"));
                self.check_weights(layer, rows.clone(), &answer);
                self.check_alone(layer, &y[rows]);
            }
        }
    }

    /// Everything that is wrong with the call.
    fn reasons<T: Synthesizer>(&self, limits: &Limits) -> Vec<Error> {
        let (rows, keys) = (self.x.len(), self.v.len());
        let end = self.setting.first.saturating_add(rows);
        let needed = if limits.frozen.is_some() { 0 } else { T::scratch_len(1) };
        let mut reasons = self.setting.reasons(keys);
        let mut refuse = |wrong: bool, reason: Error| reasons.extend(wrong.then_some(reason));
        refuse(keys > T::MAX_LEN, Error::Keys { given: keys, most: T::MAX_LEN });
        refuse(keys > limits.keys, Error::Keys { given: keys, most: limits.keys });
        refuse(self.height != rows, Error::Rows { given: self.height, needed: rows });
        refuse(end > limits.positions, Error::Position { given: end, most: limits.positions });
        refuse(self.scratch.len < needed, Error::Scratch { given: self.scratch.len, needed });
        if let Some(to) = limits.frozen {
            let other_use = match to {
                FrozenFor::Keys(taken) => self.setting.causal || keys != taken,
                FrozenFor::Causal => !self.setting.causal || keys < end,
            };
            refuse(self.setting.mask.is_some() || other_use, Error::Frozen { to });
        }
        reasons
    }

    fn run<T: Synthesizer<Row = [f32; D]>>(&self, layer: &T) -> Result<Vec<[f32; M]>, Error> {
        guarded(self.height, |y| {
            self.scratch.lend(|scratch| layer.forward_with(&self.setting.options(), &self.x, &self.v, y, scratch))
        })
    }

    /// The attention weights of some rows, in rows of M, against the reference's, and zeros past the last key. (Rows of
    /// another width would be another instance of the kernels.)
    fn check_weights<T: Synthesizer<Row = [f32; D]>>(&self, layer: &T, rows: Range<usize>, answer: &Answer) {
        let (options, x, keys) = (self.options_at(rows.start), &self.x[rows], self.v.len());
        let weights = guarded::<M>(x.len(), |to| {
            self.scratch.lend(|scratch| layer.attention_weights(&options, x, keys, to, scratch))
        });
        if keys > M {
            assert_eq!(weights, Err(Error::Keys { given: keys, most: M }));
            return;
        }
        let weights = weights.expect("as forward");
        answer.check_weights(weights.as_flattened(), M).unwrap_or_else(|e| panic!("weights: {e}"));
        assert!(weights.iter().all(|row| row[keys..].iter().all(|w| w.to_bits() == 0)), "a weight past the last key");
    }

    /// The first of these rows by itself in the least scratch: the same bits.
    fn check_alone<T: Synthesizer<Row = [f32; D]>>(&self, layer: &T, rows: &[[f32; M]]) {
        let (Some(x), Some(row)) = (self.x.get(self.start), rows.first()) else { return };
        let (mut y, mut scratch) = ([[f32::NAN; M]], vec![self.scratch.poison; T::scratch_len(1)]);
        let options = self.options_at(self.start);
        layer.forward_with(&options, slice::from_ref(x), &self.v, &mut y, &mut scratch).expect("as the whole");
        assert_same(&y, slice::from_ref(row), "a row alone, and with others");
    }

    /// The options of a call that starts at this row.
    fn options_at(&self, row: usize) -> Options<'_> {
        self.setting.options().first(self.setting.first.saturating_add(row))
    }
}

/// Scratch of some length at some address, with something in it.
pub struct Scratch {
    pub len: usize,
    offset: usize,
    pub poison: f32,
}

impl Scratch {
    /// Mostly enough: the default, the least, or for a number of rows.
    pub fn draw(source: &mut Source<'_>, default: usize, for_rows: impl Fn(usize) -> usize) -> Self {
        let len = match source.below(16) {
            0..6 => default,
            6..10 => for_rows(1),
            10..15 => for_rows(1 + source.below(70)) + source.below(20),
            _ => for_rows(1).saturating_sub(source.below(64)),
        };
        let offset = source.below(17);
        let poison = [f32::NAN, f32::INFINITY, f32::MAX, f32::from_bits(1)][source.below(4)];
        Self { len, offset, poison }
    }

    /// Lends it to a call, which must not write to it where it refuses, and never around it.
    pub fn lend(&self, call: impl FnOnce(&mut [f32]) -> Result<(), Error>) -> Result<(), Error> {
        let mut buffer = vec![GUARD; self.offset + self.len + 16];
        let inside = self.offset..self.offset + self.len;
        buffer[inside.clone()].fill(self.poison);
        let result = call(&mut buffer[inside.clone()]);
        let untouched = |f: &f32| f.to_bits() == self.poison.to_bits();
        assert!(result.is_ok() || buffer[inside.clone()].iter().all(untouched), "scratch written on an error");
        let around = [&buffer[..inside.start], &buffer[inside.end..]];
        assert!(around.into_iter().flatten().all(is_guard), "written outside the scratch");
        result
    }
}

/// What stands where nothing may be written.
const GUARD: f32 = f32::from_bits(0x7fa5_1234);

fn is_guard(f: &f32) -> bool {
    f.to_bits() == GUARD.to_bits()
}

/// The rows that a call writes, which must not write around them, nor to them where it refuses.
pub fn guarded<const C: usize>(
    rows: usize,
    call: impl FnOnce(&mut [[f32; C]]) -> Result<(), Error>,
) -> Result<Vec<[f32; C]>, Error> {
    let mut y = vec![[GUARD; C]; rows + 2];
    let result = call(&mut y[1..=rows]);
    let (first, last) = (y.remove(0), y.pop());
    assert!(first.iter().chain(last.iter().flatten()).all(is_guard), "written outside y");
    assert!(result.is_ok() || y.as_flattened().iter().all(is_guard), "y written on an error");
    result.map(|()| y)
}

/// The same bits, or NaN in both.
pub fn assert_same<const C: usize>(a: &[[f32; C]], b: &[[f32; C]], what: &str) {
    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    assert!(a.len() == b.len() && a.as_flattened().iter().zip(b.as_flattened()).all(same), "{what}: {a:?} and {b:?}");
}
