//! The fuzzers' committed corpus of chunks and requests, replayed on stable; see fuzz/README.md.

#[path = "../../../fuzz/bodies/artifact_chunk.rs"]
mod artifact_chunk;
#[path = "../../../fuzz/bodies/artifact_request.rs"]
mod artifact_request;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn artifact_chunk() {
    replay::replay("artifact_chunk", artifact_chunk::run);
}

#[test]
fn artifact_request() {
    replay::replay("artifact_request", artifact_request::run);
}
