//! Any bytes as what is stored, and every operation on them.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: rl_fuzz::states::Input<'_>| rl_fuzz::states::check(&input));
