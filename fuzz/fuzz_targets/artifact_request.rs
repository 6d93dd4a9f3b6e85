#![no_main]

#[path = "../bodies/artifact_request.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
