//! Any bytes as every argument.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| rl_fuzz::arguments::check(text));
