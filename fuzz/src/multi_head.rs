use std::slice;

use synthesizer_attention::Error;

use crate::call::{Scratch, Setting, assert_same, guarded};
use crate::common::heads::{Attention, MultiHeadWeights};
use crate::source::Source;

/// Self-attention of Dense heads over one hidden layer, narrower than a vector or wider.
pub fn multi_head(data: &[u8]) {
    let mut source = Source::new(data);
    if source.chance(4) { run::<33, 18, 9, 2>(&mut source) } else { run::<7, 12, 4, 3>(&mut source) }
}

fn run<const L: usize, const D: usize, const K: usize, const HEADS: usize>(source: &mut Source<'_>) {
    let weights = MultiHeadWeights::<L, D, K, HEADS>::load(&mut source.tensors());
    let rows = source.rows_as_keys(L);
    let x = source.rows::<D>(rows);
    let height = if source.chance(1) { source.below(L + 4) } else { rows };
    let setting = Setting::draw(source, rows, L);
    let scratch =
        Scratch::draw(source, Attention::<'_, L, D, K, HEADS>::SCRATCH, Attention::<'_, L, D, K, HEADS>::scratch_len);
    let row = source.below(256) % rows.max(1);

    let needed = Attention::<'_, L, D, K, HEADS>::scratch_len(1);
    let mut reasons = setting.reasons(rows);
    let mut refuse = |wrong: bool, reason: Error| reasons.extend(wrong.then_some(reason));
    refuse(rows > L, Error::Keys { given: rows, most: L });
    refuse(height != rows, Error::Rows { given: height, needed: rows });
    refuse(scratch.len < needed, Error::Scratch { given: scratch.len, needed });

    let (layer, options) = (weights.layer(), setting.options());
    let y = match guarded(height, |y| scratch.lend(|scratch| layer.forward_with(&options, &x, y, scratch))) {
        Ok(y) => y,
        Err(found) => return assert!(reasons.contains(&found), "{found:?}, and what is wrong is {reasons:?}"),
    };
    assert!(reasons.is_empty(), "not refused: {reasons:?}");
    let reference = weights.reference(&x, &setting.mask());
    reference.check(y.as_flattened(), D).unwrap_or_else(|e| panic!("{e}"));

    // one row by itself, from values that are there already: the same bits
    let Some(alone) = x.get(row) else { return };
    let v = guarded(rows, |v| layer.project_values(&options, &x, v)).expect("as many rows");
    let options = options.first(setting.first.saturating_add(row));
    let found = guarded(1, |y| scratch.lend(|scratch| layer.attend(&options, slice::from_ref(alone), &v, y, scratch)));
    assert_same(&found.expect("as the whole"), &y[row..=row], "a row alone, and with others");
}
