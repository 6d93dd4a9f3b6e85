//! The fuzzers' committed corpus of documents, keys and chains, replayed on stable; see fuzz/README.md.

// A case has nothing better to do with an error than to fail.
#![allow(clippy::unwrap_used)]

use cofferdam_proof::{
    ChainCheck, Checkpoint, Envelope, ExportHeader, Head, KeyList, ListedKey, Receipt, SigningKey, read_entry,
};

#[path = "../../../fuzz/bodies/proof_chain.rs"]
mod proof_chain;
#[path = "../../../fuzz/bodies/proof_document.rs"]
mod proof_document;
#[path = "../../../fuzz/bodies/proof_keys.rs"]
mod proof_keys;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn documents() {
    replay::replay("proof_document", proof_document::run);
}

#[test]
fn keys() {
    replay::replay("proof_keys", proof_keys::run);
}

#[test]
fn chains() {
    replay::replay("proof_chain", proof_chain::run);
}

/// How many inputs of a target are what they should be.
fn sound(target: &str, is_sound: impl Fn(&[u8]) -> bool) -> usize {
    replay::corpus(target).iter().filter(|(_, input)| is_sound(input)).count()
}

#[test]
fn the_corpus_still_has_one_of_each() {
    let key = ListedKey::new(&SigningKey::from_seed(&[1; 32]).public(), 0);
    let keys = KeyList::new(vec![key]).unwrap();
    let opened = |open: fn(&Envelope, &KeyList) -> bool| {
        sound("proof_document", |input| Envelope::parse(input).is_ok_and(|envelope| open(&envelope, &keys)))
    };
    assert_eq!(opened(|envelope, keys| Receipt::open(envelope, Some(keys)).is_ok()), 1);
    assert_eq!(opened(|envelope, keys| Head::open(envelope, Some(keys)).is_ok()), 1);
    assert_eq!(opened(|envelope, keys| Checkpoint::open(envelope, Some(keys)).is_ok()), 1);
    assert!(sound("proof_keys", |input| KeyList::parse(input).is_ok_and(|list| list.keys().len() == 2)) > 0);
    let whole = |input: &[u8]| {
        let mut lines = std::str::from_utf8(input).unwrap_or_default().lines();
        let Some(Ok(header)) = lines.next().map(ExportHeader::read) else { return false };
        let start =
            header.checkpoint.as_ref().and_then(|envelope| Checkpoint::open(envelope, Some(&keys)).ok());
        let mut check = ChainCheck::new(&header.tenant, start.as_ref().map(|(point, _)| point), None);
        lines.flat_map(read_entry).for_each(|entry| check.push(&entry));
        let report = check.finish();
        report.is_whole() && report.entries > 1
    };
    assert_eq!(sound("proof_chain", whole), 2, "from the beginning, and from a checkpoint");
}
