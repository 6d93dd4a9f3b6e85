//! What the tests of the repository share: where it is, which files it has, and its binary.

pub mod binary;
pub mod layers;
pub mod markdown;
pub mod sources;

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this package is two folders below the root").to_owned()
}

/// A path as it is written in messages: from the root.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
