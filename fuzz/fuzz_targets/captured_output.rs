#![no_main]

#[path = "../bodies/captured_output.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
