//! The built `cofferdam`, for tests that run it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that holds the debug binary, which is built where it is missing.
pub fn folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/debug/deps/test-1234
    let folder = test.ancestors().nth(2).expect("a test lies in target/debug/deps").to_owned();
    let binary = folder.join("cofferdam");
    if !binary.is_file() {
        build(folder.parent().expect("target/debug lies in target"));
    }
    assert!(binary.is_file(), "{} is missing", binary.display());
    folder
}

fn build(target: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-p", "cofferdam-cli", "--target-dir"]).arg(target).current_dir(crate::root());
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "cofferdam could not be built");
}
