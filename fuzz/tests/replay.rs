//! The committed corpora, without libFuzzer.

use std::fs;
use std::path::Path;

use synthesizer_attention_fuzz::TARGETS;

#[test]
fn committed_corpora() {
    for (target, run) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus-seed").join(target);
        let mut inputs = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            println!("{}", path.display()); // the last one printed is the one that fails
            run(&fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs >= 10, "{target}: {inputs} inputs");
    }
}
