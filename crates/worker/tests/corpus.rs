//! The fuzzers' committed corpus of artifact names, replayed on stable; see fuzz/README.md.

#[path = "../../../fuzz/bodies/artifact_path.rs"]
mod artifact_path;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn artifact_path() {
    replay::replay("artifact_path", artifact_path::run);
}
