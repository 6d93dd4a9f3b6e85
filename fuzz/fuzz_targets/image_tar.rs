#![no_main]

#[path = "../bodies/image_tar.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
