use synthesizer_attention::reference::{
    Matrix, Scores, TwoLayers, dense_scores, dot_product_scores, factorized_dense_scores, factorized_random_scores,
    mixture_scores, random_scores,
};
use synthesizer_attention::{
    Dense, DotProduct, DotProductWithKeys, Error, FactorizedDense, FactorizedRandom, FrozenFor, Linear, Mixture,
    Positional, Random,
};

use crate::call::{Call, Limits};
use crate::source::Source;

/// A layer of any variant but plain Dense, in one of four sizes.
pub fn family(data: &[u8]) {
    let mut source = Source::new(data);
    let source = &mut source;
    // L = A C, D, hidden and projected width H, M
    match source.below(4) {
        0 => sized::<4, 2, 2, 5, 3, 5>(source),
        1 => sized::<12, 3, 4, 7, 8, 65>(source),
        2 => sized::<33, 11, 3, 8, 17, 40>(source),
        _ => sized::<33, 1, 33, 1, 1, 33>(source),
    }
}

fn sized<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
    source: &mut Source<'_>,
) {
    match source.below(8) {
        0 => random::<L, D, M>(source),
        1 => factorized_random::<L, D, H, M>(source),
        2 => factorized_dense::<L, A, C, D, H, M>(source),
        3 => dot_product::<L, D, H, M>(source),
        4 => mixture::<L, D, H, M>(source),
        5 => positional_mixture::<L, D, H, M>(source),
        6 => frozen_random::<L, D, M>(source),
        _ => frozen_mixture::<L, D, H, M>(source),
    }
}

const fn anywhere(keys: usize) -> Limits {
    Limits { keys, positions: usize::MAX, frozen: None }
}

const fn positional(keys: usize) -> Limits {
    Limits { keys, positions: keys, frozen: None }
}

fn random<const L: usize, const D: usize, const M: usize>(source: &mut Source<'_>) {
    let call = Call::<D, M>::draw::<Random<'_, L, D>>(source);
    let r = source.matrix();
    let scores = || random_scores(&Matrix::from_rows(&*r), call.first, call.x.len());
    call.verify::<M, _>(&Random::<L, D>::new(&r), &positional(L), scores);
}

fn factorized_random<const L: usize, const D: usize, const K: usize, const M: usize>(source: &mut Source<'_>) {
    let call = Call::<D, M>::draw::<FactorizedRandom<'_, L, D, K>>(source);
    let (r1, r2) = (source.matrix::<L, K>(), source.matrix::<K, L>());
    let [r1_64, r2_64] = [Matrix::from_rows(&*r1), Matrix::from_rows(&*r2).transposed()];
    let layer = FactorizedRandom::<L, D, K>::new(&r1, &r2);
    let scores = || factorized_random_scores(&r1_64, &r2_64, call.first, call.x.len());
    call.verify::<M, _>(&layer, &positional(L), scores);
}

/// The weights of a Dense layer.
struct DenseWeights<const L: usize, const D: usize, const H: usize> {
    w1: Box<[[f32; H]; D]>,
    b1: Option<Box<[f32; H]>>,
    w2: Box<[[f32; L]; H]>,
    b2: Option<Box<[f32; L]>>,
    w1_64: Matrix,
    w2_64: Matrix,
}

impl<const L: usize, const D: usize, const H: usize> DenseWeights<L, D, H> {
    fn draw(source: &mut Source<'_>) -> Self {
        let (w1, b1, w2, b2) = (source.matrix(), source.bias(), source.matrix(), source.bias());
        let (w1_64, w2_64) = (Matrix::from_rows(&*w1), Matrix::from_rows(&*w2));
        Self { w1, b1, w2, b2, w1_64, w2_64 }
    }

    fn layer(&self) -> Dense<'_, L, D, H> {
        Dense::with_biases(&self.w1, self.b1.as_deref(), &self.w2, self.b2.as_deref())
    }

    fn two_layers(&self) -> TwoLayers<'_> {
        let (b1, b2) = (self.b1.as_deref().map(|b| &b[..]), self.b2.as_deref().map(|b| &b[..]));
        (&self.w1_64, b1, &self.w2_64, b2)
    }

    fn scores(&self, x: &Matrix) -> Scores {
        let (w1, b1, w2, b2) = self.two_layers();
        dense_scores(x, w1, b1, w2, b2)
    }
}

fn factorized_dense<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
    source: &mut Source<'_>,
) {
    let call = Call::<D, M>::draw::<FactorizedDense<'_, L, A, C, D, H, M>>(source);
    let (a, c) = (DenseWeights::<A, D, H>::draw(source), DenseWeights::<C, D, M>::draw(source));
    let layer = FactorizedDense::<L, A, C, D, H, M>::new(a.layer(), c.layer());
    let scores = || factorized_dense_scores(&Matrix::from_rows(&call.x), a.two_layers(), c.two_layers());
    call.verify::<M, _>(&layer, &anywhere(L), scores);
}

/// Projections of dot-product attention and a cache of keys.
struct Projections<const L: usize, const D: usize, const K: usize> {
    wq: Box<[[f32; K]; D]>,
    bq: Option<Box<[f32; K]>>,
    wk: Box<[[f32; K]; D]>,
    bk: Option<Box<[f32; K]>>,
    /// The rows that the keys are made of.
    x: Vec<[f32; D]>,
    keys: Box<[[f32; L]; K]>,
}

impl<const L: usize, const D: usize, const K: usize> Projections<L, D, K> {
    fn draw(source: &mut Source<'_>) -> Self {
        let (wq, bq, wk, bk) = (source.matrix(), source.bias(), source.matrix(), source.bias());
        let x = if source.chance(8) { source.below(L + 1) } else { L };
        let x = source.rows(x);
        let mut drawn = Self { wq, bq, wk, bk, x, keys: Box::new([[f32::NAN; L]; K]) };

        let mut keys = drawn.keys.clone();
        drawn.projections().project_keys(0, &drawn.x, &mut keys).expect("at most L");
        // one at a time, from the last
        let mut steps = drawn.keys.clone();
        for (i, x) in drawn.x.iter().enumerate().rev() {
            drawn.projections().project_keys(i, &[*x], &mut steps).expect("at most L");
        }
        let bits = |keys: &[[f32; L]; K]| keys.as_flattened().iter().map(|k| k.to_bits()).collect::<Vec<_>>();
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        assert!(keys.as_flattened().iter().zip(steps.as_flattened()).all(same), "keys one at a time");
        // and past the last column
        let before = bits(&steps);
        let past = [drawn.x.first().copied().unwrap_or([0.0; D]); 2];
        for first in [L - 1, usize::MAX] {
            let given = first.saturating_add(2);
            assert_eq!(drawn.projections().project_keys(first, &past, &mut steps), Err(Error::Keys { given, most: L }));
            assert_eq!(bits(&steps), before, "keys written on an error");
        }
        drawn.keys = keys;
        drawn
    }

    fn projections(&self) -> DotProduct<'_, L, D, K> {
        let query = Linear::with_bias(&self.wq, self.bq.as_deref());
        DotProduct::new(query, Linear::with_bias(&self.wk, self.bk.as_deref()))
    }

    fn scores(&self, x: &Matrix) -> Scores {
        let [bq, bk] = [&self.bq, &self.bk].map(|b| b.as_deref().map(|b| &b[..]));
        let [wq, wk] = [&self.wq, &self.wk].map(|w| Matrix::from_rows(&**w));
        dot_product_scores(x, &Matrix::from_rows(&self.x), &wq, bq, &wk, bk, L)
    }
}

fn dot_product<const L: usize, const D: usize, const K: usize, const M: usize>(source: &mut Source<'_>) {
    let call = Call::<D, M>::draw::<DotProductWithKeys<'_, L, D, K>>(source);
    let dot = Projections::<L, D, K>::draw(source);
    let layer = dot.projections().with_keys(&dot.keys, dot.x.len());
    call.verify::<M, _>(&layer, &anywhere(dot.x.len()), || dot.scores(&Matrix::from_rows(&call.x)));
}

type ThreeParts<'a, const L: usize, const D: usize, const H: usize> =
    Mixture<DotProductWithKeys<'a, L, D, H>, Mixture<Dense<'a, L, D, H>, Mixture<Random<'a, L, D>>>>;

fn mixture<const L: usize, const D: usize, const H: usize, const M: usize>(source: &mut Source<'_>) {
    let call = Call::<D, M>::draw::<ThreeParts<'_, L, D, H>>(source);
    let [a0, a1, a2] = *source.vector();
    let r = source.matrix();
    let dense = DenseWeights::<L, D, H>::draw(source);
    let dot = Projections::<L, D, H>::draw(source);
    let (random, keys) = (Random::<L, D>::new(&r), dot.x.len());
    let layer = Mixture::of(a0, random).and(a1, dense.layer()).and(a2, dot.projections().with_keys(&dot.keys, keys));
    call.verify::<M, _>(&layer, &Limits { keys, positions: L, frozen: None }, || {
        let x = Matrix::from_rows(&call.x);
        let random = random_scores(&Matrix::from_rows(&*r), call.first, call.x.len());
        mixture_scores(&[(a0, &random), (a1, &dense.scores(&x)), (a2, &dot.scores(&x))])
    });
}

/// A mixture of Random and factorized Random.
struct PositionalWeights<const L: usize, const K: usize> {
    alphas: [f32; 2],
    r: Box<[[f32; L]; L]>,
    r1: Box<[[f32; K]; L]>,
    r2: Box<[[f32; L]; K]>,
}

type TwoParts<'a, const L: usize, const D: usize, const K: usize> =
    Mixture<FactorizedRandom<'a, L, D, K>, Mixture<Random<'a, L, D>>>;

impl<const L: usize, const K: usize> PositionalWeights<L, K> {
    fn draw(source: &mut Source<'_>) -> Self {
        Self { alphas: *source.vector(), r: source.matrix(), r1: source.matrix(), r2: source.matrix() }
    }

    fn layer<const D: usize>(&self) -> TwoParts<'_, L, D, K> {
        let [a0, a1] = self.alphas;
        Mixture::of(a0, Random::new(&self.r)).and(a1, FactorizedRandom::new(&self.r1, &self.r2))
    }

    fn scores(&self, first: usize, rows: usize) -> Scores {
        let [a0, a1] = self.alphas;
        let [r1, r2] = [Matrix::from_rows(&*self.r1), Matrix::from_rows(&*self.r2).transposed()];
        let random = random_scores(&Matrix::from_rows(&*self.r), first, rows);
        mixture_scores(&[(a0, &random), (a1, &factorized_random_scores(&r1, &r2, first, rows))])
    }
}

fn positional_mixture<const L: usize, const D: usize, const K: usize, const M: usize>(source: &mut Source<'_>) {
    let call = Call::<D, M>::draw::<TwoParts<'_, L, D, K>>(source);
    let weights = PositionalWeights::<L, K>::draw(source);
    call.verify::<M, _>(&weights.layer(), &positional(L), || weights.scores(call.first, call.x.len()));
}

fn frozen_random<const L: usize, const D: usize, const M: usize>(source: &mut Source<'_>) {
    let call = Call::<D, M>::draw::<Random<'_, L, D>>(source);
    let to = frozen_for(source, L);
    let r = source.matrix();
    frozen::<L, D, M, _>(&call, &Random::<L, D>::new(&r), to, || {
        random_scores(&Matrix::from_rows(&*r), call.first, call.x.len())
    });
}

fn frozen_mixture<const L: usize, const D: usize, const K: usize, const M: usize>(source: &mut Source<'_>) {
    let call = Call::<D, M>::draw::<TwoParts<'_, L, D, K>>(source);
    let to = frozen_for(source, L);
    let weights = PositionalWeights::<L, K>::draw(source);
    frozen::<L, D, M, _>(&call, &weights.layer(), to, || weights.scores(call.first, call.x.len()));
}

fn frozen_for(source: &mut Source<'_>, most: usize) -> FrozenFor {
    if source.chance(8) {
        FrozenFor::Causal
    } else if source.chance(8) {
        FrozenFor::Keys(source.below(most + 2))
    } else {
        FrozenFor::Keys(most)
    }
}

/// Takes the weights of a layer and makes the call with those.
fn frozen<const L: usize, const D: usize, const M: usize, T: Positional<Row = [f32; D]>>(
    call: &Call<D, M>,
    layer: &T,
    to: FrozenFor,
    scores: impl FnOnce() -> Scores,
) {
    let mut weights: Box<[[f32; L]; L]> = vec![[f32::NAN; L]; L].try_into().expect("L rows");
    let mut scratch = vec![f32::NAN; T::SCRATCH];
    let most = match to {
        FrozenFor::Keys(keys) => keys,
        FrozenFor::Causal => L,
    };
    match layer.freeze(to, &mut weights, &mut scratch) {
        Ok(frozen) => {
            let limits = Limits { keys: L, positions: L, frozen: Some(to) };
            call.verify::<M, _>(&frozen, &limits, scores);
        }
        Err(found) => assert_eq!(found, Error::Keys { given: most, most: L }),
    }
}
