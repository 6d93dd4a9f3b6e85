//! The fuzzers' committed corpus of what interpreters say, replayed on stable; see fuzz/README.md.

use cofferdam_kernels::frame::{Frame, Frames};
use std::collections::BTreeSet;

#[path = "../../../fuzz/bodies/kernel_frame.rs"]
mod kernel_frame;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn kernel_frame() {
    replay::replay("kernel_frame", kernel_frame::run);
}

#[test]
fn the_corpus_still_speaks_the_protocol() {
    let mut kinds = BTreeSet::new();
    for (_, input) in replay::corpus("kernel_frame") {
        let mut frames = Frames::default();
        frames.push(input.get(1..).unwrap_or_default());
        while let Ok(Some(frame)) = frames.next_frame() {
            kinds.insert(match frame {
                Frame::Ready { .. } => "ready",
                Frame::Shown(_) => "shown",
                Frame::End(_) => "end",
            });
        }
    }
    assert_eq!(kinds, BTreeSet::from(["end", "ready", "shown"]));
}
