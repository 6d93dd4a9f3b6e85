#![no_main]

#[path = "../bodies/folder_zip.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
