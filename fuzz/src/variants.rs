use synthesizer_attention::{Error, FrozenFor, Options, Synthesizer};

use crate::call::{Call, Limits};
use crate::common::variants::{
    DenseWeights, DotProductWeights, FactorizedDenseWeights, FactorizedRandomWeights, MixtureWeights,
    PositionalWeights, RandomWeights, Variant,
};
use crate::source::Source;

/// And values of more than four vectors, which no other variant would see in another way.
pub fn dense(data: &[u8]) {
    match data.split_first() {
        Some((0..32, data)) => Dense::run::<9, 3, 3, 17, 5, 67>(&mut Source::new(data)),
        _ => of_some_size::<Dense>(data),
    }
}

pub fn random(data: &[u8]) {
    of_some_size::<Random>(data);
}

pub fn factorized_random(data: &[u8]) {
    of_some_size::<FactorizedRandom>(data);
}

pub fn factorized_dense(data: &[u8]) {
    of_some_size::<FactorizedDense>(data);
}

pub fn dot_product(data: &[u8]) {
    of_some_size::<DotProduct>(data);
}

/// Random, Dense and dot product; or Random and factorized Random.
pub fn mixture(data: &[u8]) {
    of_some_size::<Mixture>(data);
}

/// Random, or a mixture with factorized Random, with the softmax taken ahead of time.
pub fn frozen(data: &[u8]) {
    of_some_size::<Frozen>(data);
}

/// What a target does with layers of one size: L = A C keys, rows of D, hidden width or rank H, values of M.
trait Target {
    fn run<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
        source: &mut Source<'_>,
    );
}

/// A size that has kernels of its own, or one that shares them.
fn of_some_size<T: Target>(data: &[u8]) {
    let mut source = Source::new(data);
    if source.chance(4) {
        T::run::<33, 11, 3, 2, 9, 35>(&mut source);
    } else {
        T::run::<6, 2, 3, 5, 3, 17>(&mut source);
    }
}

struct Dense;
struct Random;
struct FactorizedRandom;
struct FactorizedDense;
struct DotProduct;
struct Mixture;
struct Frozen;

impl Target for Dense {
    fn run<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
        source: &mut Source<'_>,
    ) {
        let weights = DenseWeights::<L, D, H>::load(&mut source.tensors(), "");
        verify::<L, D, M, _>(source, &weights, L);
    }
}

impl Target for Random {
    fn run<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
        source: &mut Source<'_>,
    ) {
        let weights = RandomWeights::<L>::load(&mut source.tensors());
        verify::<L, D, M, _>(source, &weights, L);
    }
}

impl Target for FactorizedRandom {
    fn run<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
        source: &mut Source<'_>,
    ) {
        let weights = FactorizedRandomWeights::<L, H>::load(&mut source.tensors());
        verify::<L, D, M, _>(source, &weights, L);
    }
}

impl Target for FactorizedDense {
    fn run<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
        source: &mut Source<'_>,
    ) {
        let weights = FactorizedDenseWeights::<A, C, D, H>::load(&mut source.tensors());
        verify::<L, D, M, _>(source, &weights, L);
    }
}

impl Target for DotProduct {
    fn run<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
        source: &mut Source<'_>,
    ) {
        let mut weights = DotProductWeights::<L, D>::load(&mut source.tensors());
        let keys = project_keys(source, &mut weights);
        verify::<L, D, M, _>(source, &weights, keys);
    }
}

impl Target for Mixture {
    fn run<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
        source: &mut Source<'_>,
    ) {
        if source.chance(8) {
            let weights = PositionalWeights::<L, H>::load(&mut source.tensors());
            return verify::<L, D, M, _>(source, &weights, L);
        }
        let mut weights = MixtureWeights::<L, D, H>::load(&mut source.tensors());
        let keys = project_keys(source, &mut weights);
        verify::<L, D, M, _>(source, &weights, keys);
    }
}

impl Target for Frozen {
    fn run<const L: usize, const A: usize, const C: usize, const D: usize, const H: usize, const M: usize>(
        source: &mut Source<'_>,
    ) {
        if source.chance(8) {
            let weights = PositionalWeights::<L, H>::load(&mut source.tensors());
            verify_frozen::<L, D, M, _>(source, &weights);
        } else {
            let weights = RandomWeights::<L>::load(&mut source.tensors());
            verify_frozen::<L, D, M, _>(source, &weights);
        }
    }
}

/// Keys of rows drawn here, projected in one chunk or two; gives their number.
fn project_keys<const L: usize, const D: usize>(source: &mut Source<'_>, weights: &mut impl Variant<L, D>) -> usize {
    let keys = if source.chance(8) { source.below(L + 1) } else { L };
    let cut = source.below(keys + 1);
    let (x, options) = (source.rows(keys), Options::new());
    weights.project_keys(&options, 0, &x[..cut]);
    weights.project_keys(&options, cut, &x[cut..]);
    keys
}

/// A call of the layer of these weights, which has so many keys.
fn verify<const L: usize, const D: usize, const M: usize, W: Variant<L, D>>(
    source: &mut Source<'_>,
    weights: &W,
    keys: usize,
) {
    let call = Call::<D, M>::draw::<W::Layer<'_>>(source);
    let limits = Limits { keys, positions: <W::Layer<'_>>::POSITIONS, frozen: None };
    call.verify(&weights.layer(), &limits, |x, first| weights.scores(x, first));
}

/// A call of the layer of these weights, frozen for some use.
fn verify_frozen<const L: usize, const D: usize, const M: usize, W: Variant<L, D>>(
    source: &mut Source<'_>,
    weights: &W,
) {
    let to = match source.below(4) {
        0 | 1 => FrozenFor::Causal,
        2 => FrozenFor::Keys(source.below(L + 2)),
        _ => FrozenFor::Keys(L),
    };
    let call = Call::<D, M>::draw::<W::Layer<'_>>(source);
    match (weights.freeze(to).expect("its scores depend on the position alone"), to) {
        (Ok(frozen), _) => {
            let limits = Limits { keys: L, positions: L, frozen: Some(to) };
            call.verify(&frozen.layer(), &limits, |x, first| weights.scores(x, first));
        }
        (Err(found), FrozenFor::Keys(given)) => assert_eq!(found, Error::Keys { given, most: L }),
        (Err(found), FrozenFor::Causal) => panic!("{found:?}"),
    }
}
