//! Runs a target's committed corpus through its body, on stable and without a fuzzer. Included by the tests of
//! the crates whose parsers are fuzzed.

use std::fs;
use std::path::{Path, PathBuf};

fn fuzz_folder() -> PathBuf {
    // Two or three folders up, whichever crate includes this.
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = manifest.ancestors().map(|folder| folder.join("fuzz")).find(|folder| folder.is_dir());
    found.expect("fuzz/ is in the checkout")
}

/// The committed inputs of a target. None is a failure: then the test would show nothing.
pub(crate) fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = fuzz_folder().join("corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .map(|path| (path.clone(), fs::read(path).expect("the file can be read")))
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    inputs
}

/// Runs every input, and names the one that fails.
pub(crate) fn replay(target: &str, body: fn(&[u8])) {
    for (path, input) in corpus(target) {
        if let Err(panic) = std::panic::catch_unwind(|| body(&input)) {
            eprintln!("the input was {}", path.display());
            std::panic::resume_unwind(panic);
        }
    }
}

/// Every target that there is, by name.
#[allow(dead_code, reason = "one of the including tests asks")]
pub(crate) fn targets() -> Vec<String> {
    let entries = fs::read_dir(fuzz_folder().join("fuzz_targets")).expect("there are targets");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
