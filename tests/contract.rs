//! The contract on numbers: one list of inputs that went wrong somewhere, for every variant, mask and backend.
//!
//! The reference states what is right. Beside it stand the stated values that the contract gives (zeros, NaN, finite),
//! and a row whose scores and values an input leaves as they were must keep its bits.

mod common;

use std::cell::LazyCell;

use common::{
    STRIDE,
    layers::{Call, Layer, WEIGHTS, assert_same, backends, random_layers},
    rng::Rng,
};
use synthesizer_attention::{
    Backend, FrozenFor,
    reference::{Mask, Scores},
};

/// What a call is made of.
struct Inputs {
    layer: Box<dyn Layer>,
    x: Vec<f32>,
    v: Vec<f32>,
    /// Scores of the keys, alike in every row; those of the layer's own weights where there are none.
    logits: Option<Vec<f32>>,
}

/// What the contract says beside the reference.
#[derive(Clone, Copy, PartialEq)]
enum Expect {
    /// What the reference says.
    Reference,
    /// Finite wherever there is a key.
    Finite,
    /// Zeros in every row.
    Zeros,
    /// NaN in the rows that see a score of NaN or +inf, finite in the others.
    NanRows,
}

struct Fault {
    name: String,
    /// Starts from scores that are given rather than from the layer's own.
    logits: bool,
    put: Box<dyn Fn(&mut Inputs)>,
    expect: Expect,
}

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;
const SPECIALS: [(&str, f32); 4] = [("NaN", NAN), ("-NaN", -NAN), ("+inf", INF), ("-inf", -INF)];

/// The key and row where a single fault is.
const AT: usize = 2;

/// The list.
fn faults() -> Vec<Fault> {
    let mut list = Vec::new();
    let mut add = |name: String, logits: bool, expect: Expect, put: Box<dyn Fn(&mut Inputs)>| {
        list.push(Fault { name, logits, put, expect });
    };
    add("nothing wrong".into(), false, Expect::Finite, Box::new(|_| {}));
    for (name, value) in SPECIALS {
        add(
            format!("{name} in X"),
            false,
            Expect::Reference,
            Box::new(move |i| {
                let d = i.layer.sizes().d;
                i.x[AT * d + d / 2] = value;
            }),
        );
        add(
            format!("{name} in V"),
            false,
            Expect::Reference,
            Box::new(move |i| {
                let m = i.layer.sizes().m;
                i.v[AT * m + m / 2] = value;
            }),
        );
        for tensor in 0..9 {
            add(
                format!("{name} in weight {tensor}"),
                false,
                Expect::Reference,
                Box::new(move |i| {
                    if let Some((_, weights)) = i.layer.tensors().get_mut(tensor) {
                        let middle = weights.len() / 2;
                        weights[middle] = value;
                    }
                }),
            );
        }
    }
    let v_of = |f: fn(usize) -> f32| move |i: &mut Inputs| i.v.iter_mut().enumerate().for_each(|(n, v)| *v = f(n));
    let alternating = |n: usize| if n.is_multiple_of(3) { -1.0 } else { 1.0 };
    add("X past overflow".into(), false, Expect::Reference, Box::new(|i| i.x[..3].fill(3e38)));
    add("V of 1e-40".into(), false, Expect::Finite, Box::new(v_of(|n| (n % 7) as f32 * 1e-40)));
    add("V of half the largest".into(), false, Expect::Finite, Box::new(v_of(|_| 0.5 * f32::MAX)));
    let half = move |i: &mut Inputs| i.v.iter_mut().enumerate().for_each(|(n, v)| *v = alternating(n) * 0.5 * f32::MAX);
    add("V of half the largest, both signs".into(), false, Expect::Finite, Box::new(half));
    add("V of the largest".into(), false, Expect::Reference, Box::new(v_of(|_| f32::MAX)));
    let subnormal_hidden = |i: &mut Inputs| {
        i.x.iter_mut().for_each(|x| *x *= 1e-40);
        for (name, weights) in i.layer.tensors() {
            if name.ends_with("w2") {
                weights.iter_mut().for_each(|w| *w *= 1e37);
            } else if name.ends_with("b1") {
                weights.fill(0.0);
            }
        }
    };
    add("a subnormal hidden layer".into(), false, Expect::Finite, Box::new(subnormal_hidden));

    // scores that are given: every key's, or one's with the others rising slowly
    let scores: [(&str, Expect, fn(usize) -> f32); 9] = [
        ("all -inf", Expect::Zeros, |_| -INF),
        ("a NaN, all others -inf", Expect::NanRows, |j| if j == AT { NAN } else { -INF }),
        ("+inf and -inf", Expect::NanRows, |j| if j % 2 == 0 { -INF } else { INF }),
        ("3e38 and -3e38", Expect::Finite, |j| if j % 2 == 0 { -3e38 } else { 3e38 }),
        ("all 3e38", Expect::Finite, |_| 3e38),
        ("all -3e38", Expect::Finite, |_| -3e38),
        ("90, 2, -2", Expect::Finite, |j| [90.0, 2.0, -2.0][j % 3]),
        ("378", Expect::Finite, |j| if j == AT { 378.0 } else { j as f32 }),
        ("0 to -104", Expect::Finite, |j| -8.0 * (j % 14) as f32),
    ];
    for (name, expect, f) in scores {
        for in_v in [1.0, NAN] {
            let expect = if in_v.is_nan() && expect == Expect::Finite { Expect::Reference } else { expect };
            let put = move |i: &mut Inputs| {
                i.logits.as_mut().unwrap().iter_mut().enumerate().for_each(|(j, logit)| *logit = f(j));
                let m = i.layer.sizes().m;
                i.v[AT * m] *= in_v;
            };
            add(format!("scores {name}, times {in_v} in V"), true, expect, Box::new(put));
        }
    }
    for (name, value) in SPECIALS.into_iter().chain([("-1e4", -1e4), ("-3e38", -3e38), ("-95", -95.0)]) {
        for in_v in [1.0, NAN, INF, 1e30] {
            let expect = match value {
                _ if value.is_nan() || value == INF => Expect::NanRows,
                _ if in_v.is_finite() => Expect::Finite,
                _ => Expect::Reference,
            };
            let put = move |i: &mut Inputs| {
                i.logits.as_mut().unwrap()[AT] = value;
                let m = i.layer.sizes().m;
                i.v[AT * m..][..m].iter_mut().for_each(|v| *v *= in_v);
            };
            let expect = if expect == Expect::NanRows && !in_v.is_finite() { Expect::Reference } else { expect };
            add(format!("a score {name}, times {in_v} in V"), true, expect, Box::new(put));
        }
    }
    list
}

/// A call and the reference's scores of it.
type Scored<'a> = (&'a Call<'a>, &'a Scores);

fn sees_nan(call: &Call<'_>, scores: &Scores, row: usize) -> bool {
    let seen = (0..call.keys()).filter(|&j| call.mask.allows(row, j));
    seen.map(|j| scores.value.at(row, j)).any(|score| score.is_nan() || score == f64::INFINITY)
}

/// Whether row `i` sees the same scores and values in both.
fn untouched(a: Scored<'_>, b: Scored<'_>, i: usize) -> bool {
    let m = a.0.layer.sizes().m;
    let seen = (0..a.0.keys()).filter(|&j| a.0.mask.allows(i, j));
    let mut same_key = seen.map(|j| {
        let (p, q) = (a.1.value.at(i, j), b.1.value.at(i, j));
        let mut values = a.0.v[j * m..][..m].iter().zip(&b.0.v[j * m..][..m]);
        p.to_bits() == q.to_bits() && values.all(|(p, q)| p.to_bits() == q.to_bits())
    });
    same_key.all(|same| same)
}

/// Runs the call on every backend; gives the number of rows that had to keep the bits they have without the fault.
fn check(what: &str, expect: Expect, backends: &[Backend], with: Scored<'_>, without: Scored<'_>) -> usize {
    let ((call, scores), (clean, _)) = (with, without);
    let (answer, m) = (call.answer_to(scores), call.layer.sizes().m);
    let kept: Vec<_> = (0..call.rows()).filter(|&i| untouched(with, without, i)).collect();
    for backend in backends {
        let what = format!("{}, {backend}, {what}", call.layer.name());
        let y = call.run(*backend);
        answer.check(&y).unwrap_or_else(|e| panic!("{what}: {e}"));
        let weights = call.weights(*backend);
        answer.check_weights(&weights, WEIGHTS).unwrap_or_else(|e| panic!("{what}, attention weights: {e}"));
        for row in weights.chunks(WEIGHTS) {
            assert!(row[call.keys()..].iter().all(|w| w.to_bits() == 0), "{what}: zeros past the keys");
        }
        for (i, row) in y.chunks(m).enumerate() {
            let no_key = (0..call.keys()).all(|j| !call.mask.allows(i, j));
            let every = |what_it_is: &str, is: fn(f32) -> bool| {
                assert!(row.iter().all(|y| is(*y)), "{what}: row {i} is not {what_it_is}: {row:?}");
            };
            match expect {
                _ if no_key => every("zeros, without a key", |y| y == 0.0),
                Expect::Zeros => every("zeros", |y| y == 0.0),
                Expect::NanRows if sees_nan(call, scores, i) => every("NaN", f32::is_nan),
                Expect::NanRows | Expect::Finite => every("finite", f32::is_finite),
                Expect::Reference => {}
            }
        }
        let clean_y = clean.run(*backend);
        for &i in &kept {
            assert_same(&clean_y[i * m..][..m], &y[i * m..][..m], &format!("{what}: row {i} changed"));
        }
    }
    kept.len() * backends.len()
}

/// Every layer, mask and backend against the list, or every [`STRIDE`]-th of these calls, `first` calls on. `layers`
/// makes the same layers each time.
///
/// The four callers start 48 calls apart, as many as there are of one fault: a stride of less than 4 * 48 leaves no
/// fault out.
fn run(layers: fn(&mut Rng) -> Vec<Box<dyn Layer>>, keys: usize, first: usize) {
    let backends = backends();
    let (mut turn, mut calls, mut kept) = (first, 0, 0);
    let masked: Vec<bool> = (0..keys).map(|j| ![0, 3, keys - 1].contains(&j) && j % 5 != 4).collect();
    let around_the_fault: Vec<bool> = (0..keys).map(|j| j != AT).collect();
    let none = vec![false; keys];
    let masks = [
        ("no mask", Mask::default()),
        ("causal", Mask { causal: true, ..Mask::default() }),
        ("key mask", Mask { keys: Some(&masked), ..Mask::default() }),
        ("causal, key mask", Mask { causal: true, keys: Some(&masked), ..Mask::default() }),
        ("the fault masked", Mask { keys: Some(&around_the_fault), ..Mask::default() }),
        ("no key", Mask { keys: Some(&none), ..Mask::default() }),
    ];
    let prepare = |fault: Option<&Fault>, logits: bool| -> Vec<Inputs> {
        let mut rng = Rng::new(11);
        let layers = layers(&mut rng);
        let inputs = layers.into_iter().map(|layer| {
            let sizes = layer.sizes();
            let (x, v) = (rng.vec(keys * sizes.d, 1.0), rng.vec(keys * sizes.m, 1.0));
            let logits = logits.then(|| (0..sizes.l).map(|j| (j % 8) as f32 * 0.25).collect());
            let mut inputs = Inputs { layer, x, v, logits };
            if let Some(fault) = fault {
                (fault.put)(&mut inputs);
            }
            match &inputs.logits {
                Some(logits) => inputs.layer.set_logits(logits),
                None => inputs.layer.project_keys(0, &inputs.x),
            }
            inputs
        });
        inputs.collect()
    };
    let clean = [false, true].map(|logits| prepare(None, logits));
    for fault in faults() {
        // nothing is drawn and nothing scored for a call that is left out
        let faulty = LazyCell::new(|| prepare(Some(&fault), fault.logits));
        for (i, clean) in clean[usize::from(fault.logits)].iter().enumerate() {
            let calls_of = LazyCell::new(|| {
                let calls = [&faulty[i], clean].map(|i| Call::new(&*i.layer, &i.x, &i.v));
                (calls, calls.map(|call| call.scores()))
            });
            for (mask_name, mask) in masks {
                turn += 1;
                if !turn.is_multiple_of(STRIDE) {
                    continue;
                }
                let (unmasked, [scores, clean_scores]) = &*calls_of;
                let [call, clean] = unmasked.map(|call| Call { mask, ..call });
                let what = format!("{mask_name}, {}", fault.name);
                kept += check(&what, fault.expect, &backends, (&call, scores), (&clean, clean_scores));
                calls += backends.len();
                check_frozen(&fault.name, &call);
            }
        }
    }
    println!("{calls} calls; {kept} rows that had to keep their bits");
    assert!(kept > calls, "hardly a row was left as it was");
}

/// Taking the softmax ahead of time must not change what comes of it.
fn check_frozen(what: &str, call: &Call<'_>) {
    let to = match call.mask {
        Mask { keys: None, causal: true, .. } => FrozenFor::Causal,
        Mask { keys: None, causal: false, .. } => FrozenFor::Keys(call.keys()),
        _ => return,
    };
    if let Some(frozen) = call.layer.freeze(to) {
        let frozen = frozen.unwrap();
        let frozen = Call { layer: &*frozen, ..*call };
        let y = call.run(Backend::detect());
        assert_same(&y, &frozen.run(Backend::detect()), &format!("{} frozen, {what}", call.layer.name()));
    }
}

#[test]
fn tails() {
    run(random_layers::<35, 7, 21, 5, 5, 7, 3>, 33, 0);
}

#[test]
fn tails_wider_than_a_vector() {
    run(random_layers::<33, 20, 40, 37, 11, 3, 8>, 33, 48);
}

#[test]
fn whole_vectors() {
    run(random_layers::<48, 16, 32, 16, 8, 6, 8>, 48, 2 * 48);
}

/// Layers so small that all their sizes are constants to the kernels.
#[test]
fn small() {
    run(random_layers::<21, 7, 19, 5, 3, 7, 3>, 21, 3 * 48);
}
