//! Every variant against PyTorch: inside the reference's bound, and no less accurate than PyTorch's own float32.

mod common;
#[cfg(all(unix, target_pointer_width = "64"))]
#[path = "common/fence.rs"]
mod fence;

use std::collections::BTreeMap;

use common::{
    golden::{self, Case, Errors},
    layers::{Call, Layer, WEIGHTS, assert_same, backends, golden_inputs, golden_layer_with_keys},
    pinned::{Hash, Set, assert_pinned},
};
use synthesizer_attention::{Backend, FrozenFor, Options, reference::Mask};

/// How much less accurate than PyTorch a backend may be: the mean error, and the worst.
const MEAN: f64 = 1.25;
const WORST: f64 = 4.0;

/// The cases without a mask of the variant that the crate is about.
const DENSE_FAMILY: [&str; 4] = ["dense", "dense_large_logits", "dense_no_bias", "dense_cross"];

/// Calls `check` with every single-layer case; gives their number.
fn each_case(mut check: impl FnMut(&Case, &Call<'_>)) -> usize {
    let cases = golden::cases(&["dense", "random", "factorized", "dot_product", "mixture"]);
    for case in &cases {
        let (layer, (x, v), keys) =
            (golden_layer_with_keys(case, &Options::new()), golden_inputs(case), case.key_mask());
        let mask = Mask { causal: case.causal(), first: case.first(), keys: keys.as_deref() };
        check(case, &Call { layer: &*layer, x: &x, v: &v, mask });
    }
    cases.len()
}

#[test]
fn as_accurate_as_pytorch() {
    let backends = backends();
    let mut all: Vec<_> = backends.iter().map(|_| (Errors::default(), Errors::default())).collect();
    let mut passed = BTreeMap::<String, Vec<(usize, f64)>>::new();
    let mut dense_family = 0;
    let count = each_case(|case, call| {
        let answer = call.answer();
        let in_family = DENSE_FAMILY.contains(&case.variant.as_str());
        dense_family += usize::from(in_family);
        let passed = passed.entry(case.variant.clone()).or_insert_with(|| vec![(0, 0.0); backends.len()]);
        for (i, backend) in backends.iter().enumerate() {
            let y = call.run(*backend);
            let ratio = answer.check(&y).unwrap_or_else(|e| panic!("{} on {backend}: {e}", case.name));
            let weights = call.weights(*backend);
            let checked = answer.check_weights(&weights, WEIGHTS);
            checked.unwrap_or_else(|e| panic!("{} on {backend}, attention weights: {e}", case.name));
            passed[i] = (passed[i].0 + 1, passed[i].1.max(ratio));
            all[i].0.add(case, &y);
            if in_family {
                all[i].1.add(case, &y);
            }
        }
    });
    assert_eq!((count, dense_family), (251, 71));

    println!("\ncases passed, and the worst error in units of its bound");
    for (variant, passed) in passed {
        let of_backend = |(backend, (cases, ratio)): (&Backend, (usize, f64))| format!("{backend} {cases} {ratio:.3}");
        let line: Vec<_> = backends.iter().zip(passed).map(of_backend).collect();
        println!("{variant:40} {}", line.join(", "));
    }
    for (backend, (all, dense_family)) in backends.iter().zip(&all) {
        println!("\n{backend}: {count} cases\n{all}");
        println!("{backend}: the dense family, 71 cases\n{dense_family}");
    }
    for (all, dense_family) in &all {
        dense_family.assert_within(MEAN, WORST);
        all.assert_within(MEAN, WORST);
    }
}

/// The layer whose softmax was taken ahead of time gives the bits of the one that takes it.
#[test]
fn frozen_layers_give_the_same_bits() {
    let detected = Backend::detect(); // the one that freezes
    println!("backend: {detected}");
    let mut frozen = 0;
    each_case(|case, call| {
        let to = if case.causal() { FrozenFor::Causal } else { FrozenFor::Keys(call.keys()) };
        let Some(layer) = call.layer.freeze(to) else { return };
        let layer: Box<dyn Layer> = layer.unwrap();
        let same_call = Call { layer: &*layer, ..*call };
        let y = call.run(detected);
        assert_same(&y, &same_call.run(detected), &case.name);
        assert_same(&call.weights(detected), &same_call.weights(detected), &format!("{}, weights", case.name));
        assert_same(&y, &same_call.run_in(detected, 0, 0), &format!("{}, no scratch", case.name));
        for backend in Backend::available() {
            let answer = call.answer().check(&same_call.run(backend));
            answer.unwrap_or_else(|e| panic!("{} frozen, on {backend}: {e}", case.name));
        }
        frozen += 1;
    });
    assert_eq!(frozen, 48, "random and factorized random, causal or not, of twelve shapes");
}

#[test]
fn bits_are_pinned() {
    let mut found: Vec<_> = backends().into_iter().map(|backend| (backend, Hash::default())).collect();
    each_case(|case, call| {
        for (backend, hash) in &mut found {
            let layer = golden_layer_with_keys(case, &Options::new().backend(*backend));
            let call = Call { layer: &*layer, ..*call };
            hash.add(&call.run(*backend));
            hash.add(&call.weights(*backend));
        }
    });
    assert_pinned(Set::Layers, &found);
}

#[test]
fn gives_the_published_example() {
    let case = golden::seed_example();
    let (layer, (x, v)) = (golden_layer_with_keys(&case, &Options::new()), golden_inputs(&case));
    let call = Call::new(&*layer, &x, &v);
    for backend in backends() {
        let y = call.run(backend);
        call.answer().check(&y).unwrap();
        for (y, printed) in y.iter().zip(case.flat("y_printed")) {
            approx::assert_abs_diff_eq!(*y, printed, epsilon = 1e-4);
        }
    }
}

#[cfg(all(unix, target_pointer_width = "64"))]
mod pages {
    use super::{
        fence::{Fence, fenced},
        *,
    };

    #[global_allocator]
    static FENCE: Fence = Fence;

    /// Every buffer of a call, the weights among them, starts after an unmapped page or ends before one.
    #[test]
    fn nothing_outside_the_buffers_is_touched() {
        let backends = backends();
        fenced(|side| {
            let mut frozen = 0;
            let count = each_case(|case, call| {
                println!("{side:?}: {}", case.name);
                let to = if case.causal() { FrozenFor::Causal } else { FrozenFor::Keys(call.keys()) };
                let same_call = call.layer.freeze(to).map(Result::unwrap);
                for backend in &backends {
                    assert_same(
                        &call.run(*backend),
                        &call.run_exactly(*backend),
                        &format!("{} on {backend}", case.name),
                    );
                    if let Some(layer) = &same_call {
                        Call { layer: &**layer, ..*call }.run_exactly(*backend);
                        frozen += 1;
                    }
                }
            });
            assert_eq!((count, frozen), (251, 48 * backends.len()));
        });
    }
}
