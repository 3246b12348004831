//! This crate beside its peers.
//!
//!     cargo run --release --manifest-path benches/peers/Cargo.toml                          the table
//!     cargo run --release --manifest-path benches/peers/Cargo.toml -- figure FIGURE.svg     time against L at D = 64
//!
//! ONNX Runtime's library is found by `ORT_DYLIB_PATH`; the PyPI package `onnxruntime` has one. Whoever fails to load or
//! gives a wrong answer is reported on standard error and not timed.

mod figure;
mod measure;
mod table;

use std::error::Error;

use measure::measure;

fn main() -> Result<(), Box<dyn Error>> {
    synthesizer_attention_peers::one_thread();
    keep_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let sizes = [
                measure::<4, 5>(),
                measure::<16, 16>(),
                measure::<16, 32>(),
                measure::<32, 64>(),
                measure::<50, 40>(),
                measure::<64, 64>(),
                measure::<128, 64>(),
                measure::<128, 128>(),
                measure::<256, 64>(),
                measure::<256, 512>(),
            ];
            table::print(&sizes);
            Ok(())
        }
        ["figure", path] => {
            let lengths = [
                measure::<4, 64>(),
                measure::<8, 64>(),
                measure::<16, 64>(),
                measure::<32, 64>(),
                measure::<64, 64>(),
                measure::<128, 64>(),
                measure::<256, 64>(),
                measure::<512, 64>(),
            ];
            figure::write(path, &lengths)
        }
        _ => Err("usage: peers [figure FILE.svg]".into()),
    }
}

/// Tells glibc to keep the memory that it has. By default it returns large blocks to the system, and peers that allocate
/// in every call spend up to a third of their time on having them mapped again.
fn keep_memory() {
    const LARGEST: libc::c_int = 32 << 20; // what glibc takes
    #[cfg(target_env = "gnu")]
    for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: any value may be given; those that can't be used are refused.
        let accepted = unsafe { libc::mallopt(parameter, LARGEST) };
        assert_eq!(accepted, 1, "mallopt({parameter})");
    }
}
