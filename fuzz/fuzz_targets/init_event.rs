#![no_main]

#[path = "../bodies/init_event.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
