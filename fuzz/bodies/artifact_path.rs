//! Names of artifacts, as a directory of the sandbox lists them: folders, then the file, separated by NUL, which
//! no name has.

use cofferdam_worker::artifacts::ArtifactPath;
use std::path::{Component, Path};

pub(crate) fn run(data: &[u8]) {
    // A name that a filesystem cannot have must be refused as well.
    let _ = ArtifactPath::below(None, data).map(|path| harmless(&path));
    let mut folder = None;
    for name in data.split(|byte| *byte == 0) {
        let Ok(path) = ArtifactPath::below(folder.as_ref(), name) else { return };
        assert_eq!(path.split().1.as_bytes(), name);
        assert_eq!(path.depth(), folder.as_ref().map_or(0, ArtifactPath::depth) + 1);
        harmless(&path);
        folder = Some(path);
    }
}

/// On the host it stays below the folder that it is put into, and it can be printed.
fn harmless(path: &ArtifactPath) {
    let shown = path.to_string();
    let parts: Vec<_> = Path::new(&shown).components().collect();
    assert_eq!(parts.len(), path.depth());
    assert!(parts.iter().all(|part| matches!(part, Component::Normal(_))), "{shown:?}");
    assert!(!shown.chars().any(char::is_control));
}
