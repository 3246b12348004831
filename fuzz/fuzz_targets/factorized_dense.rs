#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| synthesizer_attention_fuzz::factorized_dense(data));
