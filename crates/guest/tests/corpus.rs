//! The fuzzers' committed corpus of what helpers say, replayed on stable; see fuzz/README.md.

use cofferdam_guest::protocol::{Answer, Event, Frames, Kind};
use std::collections::BTreeSet;

#[path = "../../../fuzz/bodies/helper_frame.rs"]
mod helper_frame;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn helper_frame() {
    replay::replay("helper_frame", helper_frame::run);
}

#[test]
fn the_corpus_still_speaks_the_protocol() {
    let mut kinds = BTreeSet::new();
    for (_, input) in replay::corpus("helper_frame") {
        let mut frames = Frames::default();
        frames.push(input.get(1..).unwrap_or_default());
        while let Ok(Some(frame)) = frames.take() {
            kinds.insert(match frame.kind {
                Kind::Message => match serde_json::from_slice(&frame.content) {
                    Ok(Event::Ready) => "ready",
                    Ok(Event::Reply { result: Ok(Answer::Entries(_)), .. }) => "entries",
                    Ok(Event::Reply { result: Ok(Answer::Stats(_)), .. }) => "stats",
                    Ok(Event::Reply { result: Ok(_), .. }) => "reply",
                    Ok(Event::Reply { result: Err(_), .. }) => "failure",
                    Ok(Event::Ended { .. }) => "ended",
                    Ok(Event::Accepted { .. }) => "accepted",
                    Err(_) => continue,
                },
                Kind::Data => "data",
                Kind::Eof => "eof",
                Kind::Close => "close",
                Kind::Credit => "credit",
            });
        }
    }
    let all = ["accepted", "close", "credit", "data", "ended", "entries", "eof"];
    assert_eq!(kinds, all.into_iter().chain(["failure", "ready", "reply", "stats"]).collect());
}
