//! The fuzzers' committed corpus, replayed on stable through the very code that is fuzzed; see fuzz/README.md.

use cofferdam_linux::launcher::{LauncherEvent, LauncherRequest};
use cofferdam_linux::protocol::{Event, Request};
use std::collections::BTreeSet;
use std::fmt::Debug;

#[path = "../../../fuzz/replay.rs"]
mod replay;

macro_rules! targets {
    ($($name:ident = $body:literal,)*) => {
        $(#[path = $body] mod $name;)*

        mod replayed {
            $(#[test] fn $name() { super::replay::replay(stringify!($name), super::$name::run); })*
        }

        const HERE: &[&str] = &[$(stringify!($name),)*];
    };
}

targets! {
    init_request = "../../../fuzz/bodies/init_request.rs",
    listing = "../../../fuzz/bodies/listing.rs",
    init_event = "../../../fuzz/bodies/init_event.rs",
    launcher_message = "../../../fuzz/bodies/launcher_message.rs",
    cgroup_layout = "../../../fuzz/bodies/cgroup_layout.rs",
    values = "../../../fuzz/bodies/values.rs",
    captured_output = "../../../fuzz/bodies/captured_output.rs",
}

/// Replayed by the same test of the crates that have them, as this crate knows none of those.
const ELSEWHERE: &[&str] = &[
    "artifact_path",
    "artifact_chunk",
    "artifact_request",
    "folder_zip",
    "image_tar",
    "helper_frame",
    "kernel_frame",
    "proof_chain",
    "proof_document",
    "proof_keys",
    "report",
];

#[test]
fn every_target_has_a_corpus_and_is_replayed() {
    let mut replayed: Vec<&str> = HERE.iter().chain(ELSEWHERE).copied().collect();
    replayed.sort_unstable();
    assert_eq!(replay::targets(), replayed);
    replayed.into_iter().for_each(|target| assert!(!replay::corpus(target).is_empty()));
}

/// The kinds of messages that the corpus of a target decodes to.
fn kinds<T: Debug, E>(target: &str, decode: impl Fn(&'static [u8]) -> Result<T, E>) -> BTreeSet<String> {
    let inputs = replay::corpus(target).into_iter();
    let decoded = inputs.filter_map(|(_, input)| decode(input.leak()).ok());
    let name = |message: T| {
        let text = format!("{message:?}");
        text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    };
    decoded.map(name).collect()
}

#[test]
fn the_corpus_still_speaks_the_protocol() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let requests = [
        "Group",
        "Link",
        "List",
        "MakeFolder",
        "Open",
        "OpenEach",
        "Probe",
        "Remove",
        "Rename",
        "SetMode",
        "Signal",
        "Socket",
        "Start",
        "StartFrom",
        "Stop",
        "Watch",
    ];
    assert_eq!(kinds("init_request", Request::decode), names(&requests));
    let events = ["Exited", "Failed", "NotStarted", "OutOfMemory", "Ready", "Reply", "Started"];
    assert_eq!(kinds("init_event", Event::decode), names(&events));
    let requests = ["AddImage", "Create", "Destroy", "Groups"];
    assert_eq!(kinds("launcher_message", LauncherRequest::decode), names(&requests));
    let events = ["Destroyed", "NotCreated", "Unusable"];
    assert_eq!(kinds("launcher_message", LauncherEvent::decode), names(&events));
}
