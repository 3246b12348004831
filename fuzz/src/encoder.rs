use synthesizer_attention::{Activation, Error, Gelu, GeluTanh, LayerNorm, Norm, Relu, RmsNorm};

use crate::call::{Scratch, Setting, assert_same};
use crate::common::heads::{Block, EncoderWeights};
use crate::source::Source;

const L: usize = 19;
const D: usize = 18;
const F: usize = 33;

type Weights = EncoderWeights<L, D, 6, 3, F>;
type EncoderBlock<'a, N, A> = Block<'a, L, D, 6, 3, F, N, A>;

/// An encoder block gives what its parts give one after the other, to the bit. (Of those the other targets know what is
/// right.)
pub fn encoder(data: &[u8]) {
    let mut source = Source::new(data);
    let weights = Weights::load(&mut source.tensors());
    match source.below(3) {
        0 => run::<LayerNorm<'_, D>, _>(&mut source, &weights, weights.layer_norms(), Relu, false),
        1 => run::<RmsNorm<'_, D>, _>(&mut source, &weights, weights.rms_norms(), Gelu, true),
        _ => run::<LayerNorm<'_, D>, _>(&mut source, &weights, weights.layer_norms(), GeluTanh, true),
    }
}

fn run<N: Norm<Row = [f32; D]> + Copy, A: Activation + Copy>(
    source: &mut Source<'_>,
    weights: &Weights,
    norms: [N; 2],
    activation: A,
    pre: bool,
) {
    let rows = source.rows_as_keys(L);
    let x = source.rows::<D>(rows);
    let setting = Setting::draw(source, rows, L);
    let scratch = Scratch::draw(source, EncoderBlock::<'_, N, A>::SCRATCH, EncoderBlock::<'_, N, A>::scratch_len);

    let needed = EncoderBlock::<'_, N, A>::scratch_len(1);
    let mut reasons = setting.reasons(rows);
    let mut refuse = |wrong: bool, reason: Error| reasons.extend(wrong.then_some(reason));
    refuse(rows > L, Error::Keys { given: rows, most: L });
    refuse(scratch.len < needed, Error::Scratch { given: scratch.len, needed });

    let block = if pre { weights.pre(norms, activation) } else { weights.post(norms, activation) };
    let mut y = x.clone();
    let done = scratch.lend(|scratch| block.forward_with(&setting.options(), &mut y, scratch));
    if let Err(found) = done {
        assert!(reasons.contains(&found), "{found:?}, and what is wrong is {reasons:?}");
        return assert_same(&x, &y, "rows written on an error");
    }
    assert!(reasons.is_empty(), "not refused: {reasons:?}");
    assert_same(&y, &weights.by_parts(norms, activation, pre, &setting.options(), &x), "a block, and its parts");

    // and row by row, with the values in a cache
    if setting.causal && setting.first == 0 && setting.mask.is_none() {
        let mut values = vec![[f32::NAN; D]; rows];
        for (i, y) in y.iter().enumerate() {
            let options = setting.options().first(i);
            let mut x = [x[i]];
            let done = scratch.lend(|scratch| block.forward_cached(&options, &mut x, &mut values, scratch));
            done.expect("as the whole");
            assert_same(&x, &[*y], "a row alone, and with others");
        }
    }
}
