//! The reference against PyTorch's float64 answers, and its bound against PyTorch's float32 ones.

mod common;

use std::collections::BTreeMap;

use common::golden::{self, Case};
use synthesizer_attention::reference::{
    Bounded, Mask, Matrix, Scores, attend, dense_scores, dot_product_scores, factorized_dense_scores,
    factorized_random_scores, mixture_scores, multi_head_dense, random_scores,
};

fn matrix(case: &Case, name: &str) -> Matrix {
    let (shape, values) = case.tensor(name);
    Matrix::from_f32(shape[0], shape[1], &values)
}

/// The weight of a `torch.nn.Linear`, input-major.
fn weight(case: &Case, name: &str) -> Matrix {
    matrix(case, name).transposed()
}

fn bias(case: &Case, name: &str) -> Option<Vec<f32>> {
    case.has(name).then(|| case.flat(name))
}

fn dense(case: &Case) -> Scores {
    let [b1, b2] = ["b1", "b2"].map(|name| bias(case, name));
    dense_scores(&matrix(case, "x"), &weight(case, "w1"), b1.as_deref(), &weight(case, "w2"), b2.as_deref())
}

fn dot_product(case: &Case) -> Scores {
    let (x, [bq, bk]) = (matrix(case, "x"), ["bq", "bk"].map(|name| bias(case, name)));
    let [wq, wk] = ["wq", "wk"].map(|name| weight(case, name));
    dot_product_scores(&x, &x, &wq, bq.as_deref(), &wk, bk.as_deref(), case.size("N"))
}

fn factorized_dense(case: &Case) -> Scores {
    let [wa1, wa2, wb1, wb2] = ["wa1", "wa2", "wb1", "wb2"].map(|name| weight(case, name));
    let [ba1, ba2, bb1, bb2] = ["ba1", "ba2", "bb1", "bb2"].map(|name| bias(case, name));
    let (a, c) = ((&wa1, ba1.as_deref(), &wa2, ba2.as_deref()), (&wb1, bb1.as_deref(), &wb2, bb2.as_deref()));
    factorized_dense_scores(&matrix(case, "x"), a, c)
}

fn scores(case: &Case) -> Scores {
    let n = case.size("n");
    match case.variant.as_str() {
        v if v.starts_with("dense") => dense(case),
        v if v.starts_with("dot_product") => dot_product(case),
        v if v.starts_with("factorized_dense") => factorized_dense(case),
        v if v.starts_with("factorized_random") => {
            factorized_random_scores(&matrix(case, "r1"), &matrix(case, "r2"), 0, n)
        }
        v if v.starts_with("random") => random_scores(&matrix(case, "r"), 0, n),
        v if v.starts_with("mixture_random_dense_dot") => {
            let parts = [random_scores(&matrix(case, "r"), 0, n), dense(case), dot_product(case)];
            let alphas = case.flat("alphas");
            mixture_scores(&alphas.iter().copied().zip(&parts).collect::<Vec<_>>())
        }
        v => panic!("an unknown variant: {v}"),
    }
}

fn multi_head(case: &Case) -> Bounded {
    let ((_, w2), (shape, b2)) = (case.tensor("w2"), case.tensor("b2"));
    let (heads, n_max) = (shape[0], shape[1]);
    let width = w2.len() / (heads * n_max);
    let w2: Vec<Matrix> =
        w2.chunks(n_max * width).map(|head| Matrix::from_f32(n_max, width, head).transposed()).collect();
    let w2: Vec<_> = w2.iter().zip(b2.chunks(n_max).map(Some)).collect();
    let [w1, wv, wo] = ["w1", "wv", "wo"].map(|name| weight(case, name));
    let [b1, bv, bo] = ["b1", "bv", "bo"].map(|name| bias(case, name));
    let mask = Mask { causal: case.causal(), ..Mask::default() };
    multi_head_dense(&matrix(case, "x"), (&w1, b1.as_deref()), &w2, (&wv, bv.as_deref()), (&wo, bo.as_deref()), &mask)
}

/// Compares with the float64 answer of the case to `close` relative to its largest, and checks that the float32 one
/// lies inside the bound; gives the worst error of that in units of the bound.
fn compare(case: &Case, y: &Bounded, close: f64) -> f64 {
    let expected = case.y();
    let largest = expected.iter().fold(0.0, |largest: f64, y| largest.max(y.abs()));
    let cols = y.cols();
    assert_eq!(expected.len(), y.rows() * cols, "{}", case.name);
    for (at, expected) in expected.iter().enumerate() {
        let found = y.value.at(at / cols, at % cols);
        assert!((found - expected).abs() <= close * largest, "{}: element {at}: {found} for {expected}", case.name);
    }
    assert!((0..y.rows()).all(|i| !y.uncertain(i)), "{}: nothing here overflows", case.name);
    y.check(&case.y_f32(), cols).unwrap_or_else(|e| panic!("{}: PyTorch's float32 answer: {e}", case.name))
}

#[test]
fn agrees_with_pytorch() {
    let cases = golden::cases(&["dense", "random", "factorized", "dot_product", "mixture"]);
    assert_eq!(cases.len(), 251);
    let mut ratios = BTreeMap::<&str, f64>::new();
    for case in &cases {
        let keys = case.key_mask();
        let mask = Mask { causal: case.causal(), first: case.first(), keys: keys.as_deref() };
        let answer = attend(&scores(case), &matrix(case, "v"), &mask);
        let ratio = ratios.entry(&case.variant).or_default();
        // Float64 rounds logits of 1e4 by 1e-12, and so their weights.
        let close = if case.variant == "dense_large_logits" { 1e-10 } else { 1e-13 };
        *ratio = ratio.max(compare(case, &answer.y, close));
    }
    for (variant, ratio) in ratios {
        println!("{variant:40} PyTorch's float32 error is at most {ratio:.3} of the bound");
    }
}

#[test]
fn multi_head_agrees_with_pytorch() {
    for case in golden::cases(&["multi_head"]) {
        let ratio = compare(&case, &multi_head(&case), 1e-13);
        println!("{:40} PyTorch's float32 error is at most {ratio:.4} of the bound", case.name);
    }
}

#[test]
fn gives_the_published_example() {
    let case = golden::seed_example();
    let y = attend(&dense(&case), &matrix(&case, "v"), &Mask::default()).y;
    for (at, printed) in case.flat("y_printed").iter().enumerate() {
        let found = y.value.at(at / y.cols(), at % y.cols());
        assert!((found - f64::from(*printed)).abs() <= 0.5e-4 + 1e-7, "element {at}: {found} for {printed}");
    }
}
