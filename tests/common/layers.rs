//! Layers of every variant behind one object-safe trait over flat slices, and a call that guards its buffers.

use synthesizer_attention::{
    Backend, Error, FrozenFor, Options, Synthesizer,
    reference::{Answer, Mask, Matrix, Scores, attend},
};

use super::{
    golden::Case,
    rng::Rng,
    variants::{
        DenseWeights, DotProductWeights, FactorizedDenseWeights, FactorizedRandomWeights, FrozenWeights, Load,
        MixtureWeights, PositionalWeights, RandomWeights, Variant,
    },
};

/// A layer with its value width: `x` in rows of `d`, `v` and `y` in rows of `m`.
pub trait Layer {
    fn name(&self) -> &'static str;
    fn sizes(&self) -> Sizes;
    fn scores(&self, x: &Matrix, first: usize) -> Scores;
    fn tensors(&mut self) -> Vec<(String, &mut [f32])>;
    fn set_logits(&mut self, logits: &[f32]);
    fn project_keys_with(&mut self, options: &Options<'_>, first: usize, x: &[f32]);
    fn freeze(&self, to: FrozenFor) -> Option<Result<Box<dyn Layer>, Error>>;
    fn scratch_len(&self, rows: usize) -> usize;
    fn forward(
        &self,
        options: &Options<'_>,
        x: &[f32],
        v: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error>;
    /// Rows of [`WEIGHTS`].
    fn attention_weights(
        &self,
        options: &Options<'_>,
        x: &[f32],
        keys: usize,
        weights: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error>;
}

impl dyn Layer {
    pub fn project_keys(&mut self, first: usize, x: &[f32]) {
        self.project_keys_with(&Options::new(), first, x);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The maximum length.
    pub l: usize,
    /// The width of a row of X.
    pub d: usize,
    /// The width of a row of V.
    pub m: usize,
    /// The default length of scratch.
    pub scratch: usize,
    /// There are no more rows than this many positions, if the layer looks at positions.
    pub positions: usize,
}

/// The width of a row of attention weights: more than the keys of any layer here.
pub const WEIGHTS: usize = 80;

struct Of<W, const L: usize, const D: usize, const M: usize>(&'static str, W);

fn rows<const C: usize>(values: &[f32]) -> &[[f32; C]] {
    let (rows, rest) = values.as_chunks();
    assert!(rest.is_empty(), "{} values in rows of {C}", values.len());
    rows
}

fn rows_mut<const C: usize>(values: &mut [f32]) -> &mut [[f32; C]] {
    let (rows, rest) = values.as_chunks_mut();
    assert!(rest.is_empty(), "{} left over in rows of {C}", rest.len());
    rows
}

impl<W: Variant<L, D> + 'static, const L: usize, const D: usize, const M: usize> Layer for Of<W, L, D, M> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn sizes(&self) -> Sizes {
        let (scratch, positions) = (<W::Layer<'_> as Synthesizer>::SCRATCH, <W::Layer<'_> as Synthesizer>::POSITIONS);
        Sizes { l: L, d: D, m: M, scratch, positions }
    }

    fn scores(&self, x: &Matrix, first: usize) -> Scores {
        self.1.scores(x, first)
    }

    fn tensors(&mut self) -> Vec<(String, &mut [f32])> {
        self.1.tensors()
    }

    fn set_logits(&mut self, logits: &[f32]) {
        self.1.set_logits(logits.try_into().unwrap());
    }

    fn project_keys_with(&mut self, options: &Options<'_>, first: usize, x: &[f32]) {
        self.1.project_keys(options, first, rows(x));
    }

    fn freeze(&self, to: FrozenFor) -> Option<Result<Box<dyn Layer>, Error>> {
        Some(self.1.freeze(to)?.map(|w| boxed::<FrozenWeights<L, D>, L, D, M>("frozen", w)))
    }

    fn scratch_len(&self, rows: usize) -> usize {
        <W::Layer<'_> as Synthesizer>::scratch_len(rows)
    }

    fn forward(
        &self,
        options: &Options<'_>,
        x: &[f32],
        v: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.1.layer().forward_with(options, rows(x), rows::<M>(v), rows_mut(y), scratch)
    }

    fn attention_weights(
        &self,
        options: &Options<'_>,
        x: &[f32],
        keys: usize,
        weights: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.1.layer().attention_weights(options, rows(x), keys, rows_mut::<WEIGHTS>(weights), scratch)
    }
}

fn boxed<W: Variant<L, D> + 'static, const L: usize, const D: usize, const M: usize>(
    name: &'static str,
    weights: W,
) -> Box<dyn Layer> {
    Box::new(Of::<W, L, D, M>(name, weights))
}

/// A layer of every variant, of random weights that give scores of moderate size. Factorized dense has `A C = L`, the
/// random factors rank K.
pub fn random_layers<
    const L: usize,
    const D: usize,
    const H: usize,
    const M: usize,
    const A: usize,
    const C: usize,
    const K: usize,
>(
    rng: &mut Rng,
) -> Vec<Box<dyn Layer>> {
    let load: &mut Load<'_> = &mut |name, rows, cols| Some(rng.weights(name, rows, cols));
    let dense = DenseWeights::<L, D, H>::load(load, "");
    let dense_no_bias = DenseWeights::<L, D, H> { b1: None, b2: None, ..DenseWeights::load(load, "") };
    vec![
        boxed::<_, L, D, M>("dense", dense),
        boxed::<_, L, D, M>("dense_no_bias", dense_no_bias),
        boxed::<_, L, D, M>("random", RandomWeights::<L>::load(load)),
        boxed::<_, L, D, M>("factorized_random", FactorizedRandomWeights::<L, K>::load(load)),
        boxed::<_, L, D, M>("factorized_dense", FactorizedDenseWeights::<A, C, D, H>::load(load)),
        boxed::<_, L, D, M>("dot_product", DotProductWeights::<L, D>::load(load)),
        boxed::<_, L, D, M>("mixture", MixtureWeights::<L, D, H>::load(load)),
        boxed::<_, L, D, M>("positional_mixture", PositionalWeights::<L, K>::load(load)),
    ]
}

/// The layer of a golden case: every shape of `generate.py`.
pub fn golden_layer(case: &Case) -> Box<dyn Layer> {
    match ["N", "d", "h", "m"].map(|size| case.size(size)) {
        [1, 1, 1, 1] => of_case::<1, 1, 1, 1, 1, 1, 1>(case),
        [2, 3, 3, 3] => of_case::<2, 3, 3, 3, 1, 2, 2>(case),
        [4, 5, 5, 5] => of_case::<4, 5, 5, 5, 2, 2, 4>(case),
        [4, 5, 4, 5] => of_case::<4, 5, 4, 5, 2, 2, 4>(case),
        [7, 9, 9, 9] => of_case::<7, 9, 9, 9, 1, 7, 7>(case),
        [8, 8, 8, 8] => of_case::<8, 8, 8, 8, 2, 4, 8>(case),
        [16, 16, 16, 16] => of_case::<16, 16, 16, 16, 4, 4, 8>(case),
        [17, 19, 23, 7] => of_case::<17, 19, 23, 7, 1, 17, 8>(case),
        [29, 12, 32, 12] => of_case::<29, 12, 32, 12, 1, 29, 8>(case),
        [33, 8, 16, 24] => of_case::<33, 8, 16, 24, 3, 11, 8>(case),
        [50, 20, 40, 20] => of_case::<50, 20, 40, 20, 5, 10, 8>(case),
        [64, 32, 32, 32] => of_case::<64, 32, 32, 32, 8, 8, 8>(case),
        sizes => panic!("{}: no layer of sizes {sizes:?}", case.name),
    }
}

fn of_case<
    const L: usize,
    const D: usize,
    const H: usize,
    const M: usize,
    const A: usize,
    const C: usize,
    const K: usize,
>(
    case: &Case,
) -> Box<dyn Layer> {
    let load: &mut Load<'_> = &mut |name, rows, cols| case.weights(name, rows, cols);
    let is = |name: &str| case.variant.starts_with(name);
    if is("dense") {
        boxed::<_, L, D, M>("dense", DenseWeights::<L, D, H>::load(load, ""))
    } else if is("random") {
        boxed::<_, L, D, M>("random", RandomWeights::<L>::load(load))
    } else if is("factorized_random") {
        boxed::<_, L, D, M>("factorized_random", FactorizedRandomWeights::<L, K>::load(load))
    } else if is("factorized_dense") {
        boxed::<_, L, D, M>("factorized_dense", FactorizedDenseWeights::<A, C, D, H>::load(load))
    } else if is("dot_product") {
        boxed::<_, L, D, M>("dot_product", DotProductWeights::<L, D>::load(load))
    } else if is("mixture") {
        boxed::<_, L, D, M>("mixture", MixtureWeights::<L, D, H>::load(load))
    } else {
        panic!("an unknown variant: {}", case.variant)
    }
}

/// One call, to be run in several ways.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub layer: &'a dyn Layer,
    pub x: &'a [f32],
    pub v: &'a [f32],
    pub mask: Mask<'a>,
}

impl<'a> Call<'a> {
    /// Without a mask.
    pub fn new(layer: &'a dyn Layer, x: &'a [f32], v: &'a [f32]) -> Self {
        Self { layer, x, v, mask: Mask::default() }
    }

    pub fn rows(&self) -> usize {
        self.x.len() / self.layer.sizes().d
    }

    pub fn keys(&self) -> usize {
        self.v.len() / self.layer.sizes().m
    }

    pub fn options(&self, backend: Backend) -> Options<'a> {
        let options = Options::new().first(self.mask.first).backend(backend);
        let options = if self.mask.causal { options.causal() } else { options };
        self.mask.keys.map_or(options, |mask| options.key_mask(mask))
    }

    pub fn scores(&self) -> Scores {
        self.layer.scores(&Matrix::from_f32(self.rows(), self.layer.sizes().d, self.x), self.mask.first)
    }

    /// What the reference says of it.
    pub fn answer(&self) -> Answer {
        self.answer_to(&self.scores())
    }

    pub fn answer_to(&self, scores: &Scores) -> Answer {
        attend(scores, &Matrix::from_f32(self.keys(), self.layer.sizes().m, self.v), &self.mask)
    }

    /// Y, computed with the default scratch and with the least there may be, to the same bits.
    pub fn run(&self, backend: Backend) -> Vec<f32> {
        let y = self.run_in(backend, self.layer.sizes().scratch, 0);
        let least = self.run_in(backend, self.layer.scratch_len(1), 1);
        assert_same(&y, &least, &format!("{} on {backend}, the least scratch", self.layer.name()));
        y
    }

    /// Y, computed in so much scratch `offset` floats past an aligned address. Scratch and Y hold NaN before, and what
    /// lies around any buffer is NaN and has to stay as it is.
    pub fn run_in(&self, backend: Backend, scratch: usize, offset: usize) -> Vec<f32> {
        let (x, v) = (Guarded::of(self.x, 5), Guarded::of(self.v, 3));
        let mut y = Guarded::of(&vec![f32::NAN; self.rows() * self.layer.sizes().m], 7);
        let mut scratch = Guarded::of(&vec![f32::NAN; scratch], offset);
        let done = self.layer.forward(&self.options(backend), x.inner(), v.inner(), y.inner_mut(), scratch.inner_mut());
        done.unwrap_or_else(|e| panic!("{} on {backend}: {e}", self.layer.name()));
        y.assert_intact("Y");
        scratch.assert_intact("scratch");
        y.inner().to_vec()
    }

    /// Y, computed in buffers that are allocations of their own and no longer than need be.
    pub fn run_exactly(&self, backend: Backend) -> Vec<f32> {
        let mut y = vec![f32::NAN; self.rows() * self.layer.sizes().m];
        let mut scratch = vec![f32::NAN; self.layer.scratch_len(1)];
        let done = self.layer.forward(&self.options(backend), self.x, self.v, &mut y, &mut scratch);
        done.unwrap_or_else(|e| panic!("{} on {backend}: {e}", self.layer.name()));
        y
    }

    /// softmax(B), rows of [`WEIGHTS`].
    pub fn weights(&self, backend: Backend) -> Vec<f32> {
        let mut weights = Guarded::of(&vec![f32::NAN; self.rows() * WEIGHTS], 9);
        let mut scratch = Guarded::of(&vec![f32::NAN; self.layer.scratch_len(3)], 2);
        let (options, to) = (self.options(backend), weights.inner_mut());
        let done = self.layer.attention_weights(&options, self.x, self.keys(), to, scratch.inner_mut());
        done.unwrap_or_else(|e| panic!("{} on {backend}: {e}", self.layer.name()));
        weights.assert_intact("the attention weights");
        scratch.assert_intact("scratch");
        weights.inner().to_vec()
    }
}

/// Values inside a larger buffer of one kind of NaN, a given number of floats past a multiple of 64 bytes.
pub struct Guarded {
    all: Vec<f32>,
    start: usize,
    len: usize,
}

const GUARD: f32 = f32::from_bits(0x7FC0_DEAD);

impl Guarded {
    pub fn of(values: &[f32], offset: usize) -> Self {
        let mut all = vec![GUARD; values.len() + 96];
        let start = 32 + all.as_ptr().align_offset(64) + offset;
        all[start..start + values.len()].copy_from_slice(values);
        Self { all, start, len: values.len() }
    }

    pub fn inner(&self) -> &[f32] {
        &self.all[self.start..][..self.len]
    }

    pub fn inner_mut(&mut self) -> &mut [f32] {
        &mut self.all[self.start..][..self.len]
    }

    pub fn assert_intact(&self, what: &str) {
        let outside = self.all[..self.start].iter().chain(&self.all[self.start + self.len..]);
        assert!(outside.copied().all(|x| x.to_bits() == GUARD.to_bits()), "something outside {what} was written");
    }
}

/// The backends of this processor, which are printed: each test runs on all of them.
pub fn backends() -> Vec<Backend> {
    let backends: Vec<_> = Backend::available().collect();
    let names: Vec<_> = backends.iter().map(|backend| backend.name()).collect();
    println!("backends: {}", names.join(", "));
    backends
}

/// Whether two floats have the same bits, or both are NaN.
pub fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

pub fn assert_same(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(same(*a, *b), "{what}: element {i}: {a:e} and {b:e}");
    }
}

/// The values of a golden case that a call takes: X (rows of NaN for a layer that does not look at it) and V.
pub fn golden_inputs(case: &Case) -> (Vec<f32>, Vec<f32>) {
    let rows = case.try_size("rows").unwrap_or(case.size("n") - case.first());
    let x = if case.has("x") { case.flat("x") } else { vec![f32::NAN; rows * case.size("d")] };
    (x, case.flat("v"))
}

/// A layer of a golden case with the keys that its dot product has, projected under these options.
pub fn golden_layer_with_keys(case: &Case, options: &Options<'_>) -> Box<dyn Layer> {
    let mut layer = golden_layer(case);
    if case.has("wk") {
        layer.project_keys_with(options, 0, &case.flat("x"));
    }
    layer
}
