#![no_main]

#[path = "../bodies/artifact_chunk.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
