//! A run in which a backend of this processor was not exercised fails here.

use synthesizer_attention::{Backend, Error, Options, Random, Synthesizer};

/// Slowest first.
fn expected() -> Vec<Backend> {
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let all = [
            (Backend::Scalar, true),
            (Backend::Portable, true), // SSE2, which all of them have
            (Backend::Avx2, avx2),
            (Backend::Avx512, avx2 && is_x86_feature_detected!("avx512f")),
        ];
        all.into_iter().filter_map(|(backend, has)| has.then_some(backend)).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let vectors = cfg!(any(
            all(target_arch = "aarch64", target_feature = "neon"),
            target_feature = "simd128",
            target_feature = "sse2"
        ));
        [Some(Backend::Scalar), vectors.then_some(Backend::Portable)].into_iter().flatten().collect()
    }
}

#[test]
fn every_backend_of_this_processor_is_exercised() {
    let available: Vec<_> = Backend::available().collect();
    println!("available: {available:?}; detected: {}", Backend::detect());
    assert_eq!(available, expected());
    assert_eq!(Some(&Backend::detect()), available.last(), "the fastest one is taken");
    assert!(Backend::ALL.into_iter().all(|backend| backend.is_available() == available.contains(&backend)));
}

/// A backend by its name runs, or says that it is not there and writes nothing.
#[test]
fn a_backend_by_its_name() {
    let r = [[0.0, 1.0], [1.0, 0.0]];
    let layer = Random::<2, 1>::new(&r);
    for asked in Backend::ALL {
        let mut y = [[-1.0]; 2];
        let done = layer.forward_with(
            &Options::new().backend(asked),
            &[[0.0]; 2],
            &[[1.0], [1.0]],
            &mut y,
            &mut [0.0; Random::<2, 1>::SCRATCH],
        );
        if asked.is_available() {
            assert_eq!(done, Ok(()));
            approx::assert_abs_diff_eq!(y.as_flattened(), [1.0, 1.0].as_slice(), epsilon = 1e-6);
        } else {
            assert_eq!((done, y), (Err(Error::Backend { asked }), [[-1.0]; 2]));
        }
        println!("{asked}: {}", if asked.is_available() { "ran" } else { "not of this processor, refused" });
    }
}

#[test]
fn names() {
    assert_eq!(Backend::ALL.map(Backend::name), ["scalar", "portable", "avx2", "avx512"]);
    assert_eq!(Backend::ALL.map(|backend| backend.to_string()), Backend::ALL.map(Backend::name));
}
