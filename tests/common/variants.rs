//! Each variant's weights, owned; the layer that borrows them; and the reference's scores of the same numbers.

use synthesizer_attention::{
    Dense, DotProduct, DotProductWithKeys, Empty, Error, FactorizedDense, FactorizedRandom, Frozen, FrozenFor, Linear,
    Mixture, Options, Positional, Random, Synthesizer,
    reference::{
        Matrix, Scores, dense_scores, dot_product_scores, factorized_dense_scores, factorized_random_scores,
        mixture_scores, random_scores,
    },
};

use super::golden::{array, rows};

/// Where weights come from: a tensor's name, rows and columns, input-major. `None` for a bias that is not there.
pub type Load<'a> = dyn FnMut(&str, usize, usize) -> Option<Vec<f32>> + 'a;

/// A variant with maximum length L over rows of D.
pub trait Variant<const L: usize, const D: usize> {
    type Layer<'a>: Synthesizer<Row = [f32; D]>
    where
        Self: 'a;

    fn layer(&self) -> Self::Layer<'_>;

    /// The reference's scores of these rows.
    fn scores(&self, x: &Matrix, first: usize) -> Scores;

    /// Every tensor by its name.
    fn tensors(&mut self) -> Vec<(String, &mut [f32])>;

    /// Sets weights so that key j has the score `logits[j]` in every row, or one that is infinite, NaN or huge with it.
    fn set_logits(&mut self, logits: &[f32; L]);

    /// Gives rows `first..` of X as keys to those that have keys.
    fn project_keys(&mut self, _options: &Options<'_>, _first: usize, _x: &[[f32; D]]) {}

    /// The same with its softmax taken ahead of time, where that can be.
    fn freeze(&self, _to: FrozenFor) -> Option<Result<FrozenWeights<L, D>, Error>> {
        None
    }
}

pub fn load_array<const R: usize, const C: usize>(load: &mut Load<'_>, name: &str) -> Box<[[f32; C]; R]> {
    array(&load(name, R, C).unwrap_or_else(|| panic!("no {name}")))
}

pub fn load_bias<const N: usize>(load: &mut Load<'_>, name: &str) -> Option<Box<[f32; N]>> {
    load(name, 1, N).map(|values| values.into_boxed_slice().try_into().unwrap())
}

fn named<'a>(tensors: Vec<(&str, Option<&'a mut [f32]>)>) -> Vec<(String, &'a mut [f32])> {
    tensors.into_iter().filter_map(|(name, values)| Some((name.to_owned(), values?))).collect()
}

/// Dense, with biases or without.
pub struct DenseWeights<const L: usize, const D: usize, const H: usize> {
    pub w1: Box<[[f32; H]; D]>,
    pub b1: Option<Box<[f32; H]>>,
    pub w2: Box<[[f32; L]; H]>,
    pub b2: Option<Box<[f32; L]>>,
}

impl<const L: usize, const D: usize, const H: usize> DenseWeights<L, D, H> {
    /// `factor` is empty, or `a` or `b` for a factor of factorized dense.
    pub fn load(load: &mut Load<'_>, factor: &str) -> Self {
        let [w1, b1, w2, b2] = [("w", 1), ("b", 1), ("w", 2), ("b", 2)].map(|(kind, i)| format!("{kind}{factor}{i}"));
        Self {
            w1: load_array(load, &w1),
            b1: load_bias(load, &b1),
            w2: load_array(load, &w2),
            b2: load_bias(load, &b2),
        }
    }
}

impl<const L: usize, const D: usize, const H: usize> Variant<L, D> for DenseWeights<L, D, H> {
    type Layer<'a> = Dense<'a, L, D, H>;

    fn layer(&self) -> Dense<'_, L, D, H> {
        Dense::with_biases(&self.w1, self.b1.as_deref(), &self.w2, self.b2.as_deref())
    }

    fn scores(&self, x: &Matrix, _: usize) -> Scores {
        let [b1, b2] = [self.b1.as_ref().map(|b| &b[..]), self.b2.as_ref().map(|b| &b[..])];
        dense_scores(x, &Matrix::from_rows(&*self.w1), b1, &Matrix::from_rows(&*self.w2), b2)
    }

    fn tensors(&mut self) -> Vec<(String, &mut [f32])> {
        let Self { w1, b1, w2, b2 } = self;
        let [w1, w2] = [w1.as_flattened_mut(), w2.as_flattened_mut()];
        let [b1, b2] = [b1.as_mut().map(|b| &mut b[..]), b2.as_mut().map(|b| &mut b[..])];
        named(vec![("w1", Some(w1)), ("b1", b1), ("w2", Some(w2)), ("b2", b2)])
    }

    fn set_logits(&mut self, logits: &[f32; L]) {
        self.w2.as_flattened_mut().fill(0.0);
        self.b2 = Some(Box::new(*logits));
    }
}

pub struct FactorizedDenseWeights<const A: usize, const C: usize, const D: usize, const H: usize> {
    a: DenseWeights<A, D, H>,
    c: DenseWeights<C, D, H>,
}

impl<const A: usize, const C: usize, const D: usize, const H: usize> FactorizedDenseWeights<A, C, D, H> {
    pub fn load(load: &mut Load<'_>) -> Self {
        Self { a: DenseWeights::load(load, "a"), c: DenseWeights::load(load, "b") }
    }
}

impl<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize> Variant<L, D>
    for FactorizedDenseWeights<A, C, D, H>
{
    type Layer<'a> = FactorizedDense<'a, L, A, C, D, H, H>;

    fn layer(&self) -> Self::Layer<'_> {
        FactorizedDense::new(self.a.layer(), self.c.layer())
    }

    fn scores(&self, x: &Matrix, _: usize) -> Scores {
        let [wa1, wa2] = [Matrix::from_rows(&*self.a.w1), Matrix::from_rows(&*self.a.w2)];
        let [wc1, wc2] = [Matrix::from_rows(&*self.c.w1), Matrix::from_rows(&*self.c.w2)];
        let [ba1, bc1] = [&self.a.b1, &self.c.b1].map(|b| b.as_ref().map(|b| &b[..]));
        let (ba2, bc2) = (self.a.b2.as_ref().map(|b| &b[..]), self.c.b2.as_ref().map(|b| &b[..]));
        factorized_dense_scores(x, (&wa1, ba1, &wa2, ba2), (&wc1, bc1, &wc2, bc2))
    }

    fn tensors(&mut self) -> Vec<(String, &mut [f32])> {
        let a = self.a.tensors().into_iter().map(|(name, values)| (format!("a {name}"), values));
        a.chain(self.c.tensors().into_iter().map(|(name, values)| (format!("c {name}"), values))).collect()
    }

    /// The first `A` logits, over and over: `C` is 1.
    fn set_logits(&mut self, logits: &[f32; L]) {
        self.a.set_logits(logits[..A].try_into().unwrap());
        self.c.set_logits(&[1.0; C]);
    }
}

pub struct RandomWeights<const L: usize>(Box<[[f32; L]; L]>);

impl<const L: usize> RandomWeights<L> {
    pub fn load(load: &mut Load<'_>) -> Self {
        Self(load_array(load, "r"))
    }
}

impl<const L: usize, const D: usize> Variant<L, D> for RandomWeights<L> {
    type Layer<'a> = Random<'a, L, D>;

    fn layer(&self) -> Random<'_, L, D> {
        Random::new(&self.0)
    }

    fn scores(&self, x: &Matrix, first: usize) -> Scores {
        random_scores(&Matrix::from_rows(&*self.0), first, x.rows())
    }

    fn tensors(&mut self) -> Vec<(String, &mut [f32])> {
        named(vec![("r", Some(self.0.as_flattened_mut()))])
    }

    fn set_logits(&mut self, logits: &[f32; L]) {
        self.0.fill(*logits);
    }

    fn freeze(&self, to: FrozenFor) -> Option<Result<FrozenWeights<L, D>, Error>> {
        Some(FrozenWeights::of(&Random::<L, D>::new(&self.0), to))
    }
}

pub struct FactorizedRandomWeights<const L: usize, const K: usize> {
    r1: Box<[[f32; K]; L]>,
    r2_transposed: Box<[[f32; L]; K]>,
}

impl<const L: usize, const K: usize> FactorizedRandomWeights<L, K> {
    pub fn load(load: &mut Load<'_>) -> Self {
        Self { r1: load_array(load, "r1"), r2_transposed: load_array(load, "r2") }
    }
}

impl<const L: usize, const D: usize, const K: usize> Variant<L, D> for FactorizedRandomWeights<L, K> {
    type Layer<'a> = FactorizedRandom<'a, L, D, K>;

    fn layer(&self) -> FactorizedRandom<'_, L, D, K> {
        FactorizedRandom::new(&self.r1, &self.r2_transposed)
    }

    fn scores(&self, x: &Matrix, first: usize) -> Scores {
        let r2 = Matrix::from_rows(&*self.r2_transposed).transposed();
        factorized_random_scores(&Matrix::from_rows(&*self.r1), &r2, first, x.rows())
    }

    fn tensors(&mut self) -> Vec<(String, &mut [f32])> {
        let [r1, r2] = [self.r1.as_flattened_mut(), self.r2_transposed.as_flattened_mut()];
        named(vec![("r1", Some(r1)), ("r2", Some(r2))])
    }

    fn set_logits(&mut self, logits: &[f32; L]) {
        self.r1.as_flattened_mut().fill(0.0);
        self.r1.iter_mut().for_each(|row| row[0] = 1.0);
        self.r2_transposed.as_flattened_mut().fill(0.0);
        self.r2_transposed[0] = *logits;
    }

    fn freeze(&self, to: FrozenFor) -> Option<Result<FrozenWeights<L, D>, Error>> {
        Some(FrozenWeights::of(&FactorizedRandom::<L, D, K>::new(&self.r1, &self.r2_transposed), to))
    }
}

/// Dot product of D columns, with its keys and the rows of X that they are of.
pub struct DotProductWeights<const L: usize, const D: usize> {
    wq: Box<[[f32; D]; D]>,
    bq: Option<Box<[f32; D]>>,
    wk: Box<[[f32; D]; D]>,
    bk: Option<Box<[f32; D]>>,
    keys: Box<[[f32; L]; D]>,
    x: Vec<[f32; D]>,
}

impl<const L: usize, const D: usize> DotProductWeights<L, D> {
    pub fn load(load: &mut Load<'_>) -> Self {
        let (wq, bq) = (load_array(load, "wq"), load_bias(load, "bq"));
        let (wk, bk) = (load_array(load, "wk"), load_bias(load, "bk"));
        // a column of the cache that no key was written to must not matter
        Self { wq, bq, wk, bk, keys: array(&vec![f32::NAN; L * D]), x: Vec::new() }
    }

    fn projections(&self) -> DotProduct<'_, L, D, D> {
        let query = Linear::with_bias(&self.wq, self.bq.as_deref());
        DotProduct::new(query, Linear::with_bias(&self.wk, self.bk.as_deref()))
    }
}

impl<const L: usize, const D: usize> Variant<L, D> for DotProductWeights<L, D> {
    type Layer<'a> = DotProductWithKeys<'a, L, D, D>;

    fn layer(&self) -> DotProductWithKeys<'_, L, D, D> {
        self.projections().with_keys(&self.keys, self.x.len())
    }

    fn scores(&self, x: &Matrix, _: usize) -> Scores {
        let [wq, wk] = [&self.wq, &self.wk].map(|w| Matrix::from_rows(&**w));
        let [bq, bk] = [&self.bq, &self.bk].map(|b| b.as_ref().map(|b| &b[..]));
        dot_product_scores(x, &Matrix::from_rows(&self.x), &wq, bq, &wk, bk, L)
    }

    fn tensors(&mut self) -> Vec<(String, &mut [f32])> {
        let [wq, wk] = [self.wq.as_flattened_mut(), self.wk.as_flattened_mut()];
        let [bq, bk] = [&mut self.bq, &mut self.bk].map(|b| b.as_mut().map(|b| &mut b[..]));
        named(vec![("wq", Some(wq)), ("bq", bq), ("wk", Some(wk)), ("bk", bk)])
    }

    /// Every query is `1 / 4 D` in all columns, and a key its logit in all columns.
    fn set_logits(&mut self, logits: &[f32; L]) {
        self.wq.as_flattened_mut().fill(0.0);
        self.bq = Some(Box::new([0.25 / D as f32; D]));
        self.wk.as_flattened_mut().fill(0.0);
        self.wk[0].fill(1.0);
        self.bk = None;
        let mut x = vec![0.0; L * D];
        x.chunks_mut(D).zip(logits).for_each(|(row, logit)| row[0] = *logit);
        self.project_keys(&Options::new(), 0, &rows(&x));
    }

    fn project_keys(&mut self, options: &Options<'_>, first: usize, x: &[[f32; D]]) {
        let mut keys = self.keys.clone();
        self.projections().project_keys_with(options, first, x, &mut keys).unwrap();
        self.keys = keys;
        self.x.truncate(first);
        self.x.extend_from_slice(x);
    }
}

/// Random, Dense and dot product.
pub struct MixtureWeights<const L: usize, const D: usize, const H: usize> {
    alphas: Box<[f32; 3]>,
    random: RandomWeights<L>,
    dense: DenseWeights<L, D, H>,
    dot: DotProductWeights<L, D>,
}

impl<const L: usize, const D: usize, const H: usize> MixtureWeights<L, D, H> {
    pub fn load(load: &mut Load<'_>) -> Self {
        let (random, dense) = (RandomWeights::load(load), DenseWeights::load(load, ""));
        Self { alphas: load_bias(load, "alphas").unwrap(), random, dense, dot: DotProductWeights::load(load) }
    }
}

impl<const L: usize, const D: usize, const H: usize> Variant<L, D> for MixtureWeights<L, D, H> {
    type Layer<'a> =
        Mixture<DotProductWithKeys<'a, L, D, D>, Mixture<Dense<'a, L, D, H>, Mixture<Random<'a, L, D>, Empty>>>;

    fn layer(&self) -> Self::Layer<'_> {
        let [random, dense, dot] = *self.alphas;
        Mixture::of(random, self.random.layer()).and(dense, self.dense.layer()).and(dot, self.dot.layer())
    }

    fn scores(&self, x: &Matrix, first: usize) -> Scores {
        let random = Variant::<L, D>::scores(&self.random, x, first);
        let parts = [random, self.dense.scores(x, first), self.dot.scores(x, first)];
        mixture_scores(&self.alphas.iter().copied().zip(&parts).collect::<Vec<_>>())
    }

    fn tensors(&mut self) -> Vec<(String, &mut [f32])> {
        let mut all = named(vec![("alphas", Some(&mut self.alphas[..]))]);
        all.extend(Variant::<L, D>::tensors(&mut self.random));
        all.extend(self.dense.tensors());
        all.extend(self.dot.tensors());
        all
    }

    fn set_logits(&mut self, logits: &[f32; L]) {
        *self.alphas = [1.0, 1.0, 1.0];
        Variant::<L, D>::set_logits(&mut self.random, logits);
        self.dense.set_logits(&[0.0; L]);
        self.dot.set_logits(&[0.0; L]);
    }

    fn project_keys(&mut self, options: &Options<'_>, first: usize, x: &[[f32; D]]) {
        self.dot.project_keys(options, first, x);
    }
}

/// Random and factorized random: a mixture that does not look at X.
pub struct PositionalWeights<const L: usize, const K: usize>(RandomWeights<L>, FactorizedRandomWeights<L, K>);

impl<const L: usize, const K: usize> PositionalWeights<L, K> {
    pub fn load(load: &mut Load<'_>) -> Self {
        Self(RandomWeights::load(load), FactorizedRandomWeights::load(load))
    }

    const ALPHAS: [f32; 2] = [0.75, 0.25];
}

impl<const L: usize, const D: usize, const K: usize> Variant<L, D> for PositionalWeights<L, K> {
    type Layer<'a> = Mixture<FactorizedRandom<'a, L, D, K>, Mixture<Random<'a, L, D>, Empty>>;

    fn layer(&self) -> Self::Layer<'_> {
        Mixture::of(Self::ALPHAS[0], self.0.layer()).and(Self::ALPHAS[1], self.1.layer())
    }

    fn scores(&self, x: &Matrix, first: usize) -> Scores {
        let parts = [Variant::<L, D>::scores(&self.0, x, first), Variant::<L, D>::scores(&self.1, x, first)];
        mixture_scores(&Self::ALPHAS.into_iter().zip(&parts).collect::<Vec<_>>())
    }

    fn tensors(&mut self) -> Vec<(String, &mut [f32])> {
        let mut all = Variant::<L, D>::tensors(&mut self.0);
        all.extend(Variant::<L, D>::tensors(&mut self.1));
        all
    }

    fn set_logits(&mut self, logits: &[f32; L]) {
        Variant::<L, D>::set_logits(&mut self.0, logits);
        Variant::<L, D>::set_logits(&mut self.1, &[0.0; L]);
    }

    fn freeze(&self, to: FrozenFor) -> Option<Result<FrozenWeights<L, D>, Error>> {
        Some(FrozenWeights::of(&Variant::<L, D>::layer(self), to))
    }
}

/// Attention weights taken ahead of time.
pub struct FrozenWeights<const L: usize, const D: usize> {
    weights: Box<[[f32; L]; L]>,
    to: FrozenFor,
}

impl<const L: usize, const D: usize> FrozenWeights<L, D> {
    fn of<P: Positional<Row = [f32; D]>>(layer: &P, to: FrozenFor) -> Result<Self, Error> {
        let mut weights = array(&vec![f32::NAN; L * L]);
        layer.freeze::<L, D>(to, &mut weights, &mut vec![f32::NAN; P::scratch_len(1)])?;
        Ok(Self { weights, to })
    }
}

impl<const L: usize, const D: usize> Variant<L, D> for FrozenWeights<L, D> {
    type Layer<'a> = Frozen<'a, L, D>;

    fn layer(&self) -> Frozen<'_, L, D> {
        Frozen::new(&self.weights, self.to).unwrap()
    }

    fn scores(&self, _: &Matrix, _: usize) -> Scores {
        unreachable!("scores of weights that are known: compare with the layer they were taken from")
    }

    fn tensors(&mut self) -> Vec<(String, &mut [f32])> {
        named(vec![("weights", Some(self.weights.as_flattened_mut()))])
    }

    fn set_logits(&mut self, _: &[f32; L]) {
        unreachable!("weights that are known have no scores")
    }
}
