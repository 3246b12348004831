//! Weights from PyTorch's layout, and aligned ones.

mod common;

use common::{golden::rows, layers::backends, rng::Rng};
use synthesizer_attention::{
    Dense, Options, Synthesizer,
    reference::{Mask, Matrix, attend, dense_scores},
    weights::{Aligned, input_major, input_major_into},
};

const PYTORCH: [[f32; 3]; 2] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
const OURS: [[f32; 2]; 3] = [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]];

#[test]
fn input_major_is_the_transpose() {
    static AT_COMPILE_TIME: Aligned<[[f32; 2]; 3]> = Aligned(input_major(&PYTORCH));
    assert_eq!(*AT_COMPILE_TIME, OURS);
    assert_eq!(input_major(&PYTORCH), OURS);
    let mut into = [[f32::NAN; 2]; 3];
    input_major_into(&PYTORCH, &mut into);
    assert_eq!(into, OURS);
    // there and back
    assert_eq!(input_major(&input_major(&PYTORCH)), PYTORCH);
}

#[test]
fn aligned_is_aligned() {
    static IN_FLASH: Aligned<[f32; 3]> = Aligned([1.0, 2.0, 3.0]);
    let mut on_the_stack = [Aligned([0_u8; 1]); 2];
    on_the_stack[1][0] = 7;
    assert_eq!(std::ptr::from_ref(&*IN_FLASH).addr() % 64, 0);
    assert!(on_the_stack.iter().all(|x| std::ptr::from_ref(&x.0).addr() % 64 == 0));
    assert_eq!((on_the_stack[0].0, on_the_stack[1].0), ([0], [7]));
    assert_eq!(align_of::<Aligned<f32>>(), 64);
}

/// Where a layer is square the compiler can't see a forgotten transpose. The reference can.
#[test]
fn a_forgotten_transpose_is_seen() {
    const N: usize = 40;
    let mut rng = Rng::new(3);
    let [w1, w2] = [(); 2].map(|()| rng.array::<N, N>(0.3)); // as PyTorch has them: [out, in]
    let [b1, b2] = [(); 2].map(|()| *rng.array::<1, N>(0.1)).map(|[b]| b);
    let (x, v) = (rng.rows::<N>(N, 1.0), rng.rows::<N>(N, 1.0));
    let [t1, t2] = [&w1, &w2].map(|w| Matrix::from_rows(&**w).transposed());
    let scores = dense_scores(&Matrix::from_rows(&x), &t1, Some(&b1), &t2, Some(&b2));
    let answer = attend(&scores, &Matrix::from_rows(&v), &Mask::default());

    let (converted1, converted2) = (Box::new(input_major(&w1)), Box::new(input_major(&w2)));
    let scratch = &mut vec![f32::NAN; Dense::<N, N, N>::SCRATCH];
    for backend in backends() {
        let mut y_of = |layer: Dense<'_, N, N, N>| {
            let mut y = rows::<N>(&vec![f32::NAN; N * N]);
            layer.forward_with(&Options::new().backend(backend), &x, &v, &mut y, scratch).unwrap();
            answer.check(y.as_flattened())
        };
        y_of(Dense::new(&converted1, &b1, &converted2, &b2)).unwrap();
        for (w1, w2) in [(&w1, &converted2), (&converted1, &w2), (&w1, &w2)] {
            let wrong = y_of(Dense::new(w1, &b1, w2, &b2)).unwrap_err();
            assert!((f64::from(wrong.found) - wrong.expected).abs() > 100.0 * wrong.bound, "barely seen: {wrong}");
        }
    }
}

/// Kernels read weights at any address a float may have.
#[test]
fn weights_need_no_alignment() {
    const N: usize = 33;
    let mut rng = Rng::new(4);
    let (w, x) = (rng.vec(N * N + 16, 0.3), rng.rows::<N>(N, 1.0));
    for backend in backends() {
        for offset in 0..16 {
            let w: &[[f32; N]; N] = w[offset..][..N * N].as_chunks().0.try_into().unwrap();
            let answer = attend(
                &dense_scores(&Matrix::from_rows(&x), &Matrix::from_rows(w), None, &Matrix::from_rows(w), None),
                &Matrix::from_rows(w),
                &Mask::default(),
            );
            let (mut y, mut scratch) = (rows::<N>(&vec![f32::NAN; N * N]), vec![f32::NAN; Dense::<N, N, N>::SCRATCH]);
            let options = Options::new().backend(backend);
            Dense::without_bias(w, w).forward_with(&options, &x, w, &mut y, &mut scratch).unwrap();
            answer.check(y.as_flattened()).unwrap_or_else(|e| panic!("{backend}, offset {offset}: {e}"));
        }
    }
}
