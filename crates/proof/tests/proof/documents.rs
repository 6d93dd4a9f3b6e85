//! Envelopes, heads and checkpoints that somebody was at.

use crate::made::{NOW, TENANT, key, listed, receipt, trusted};
use base64::Engine;
use cofferdam_proof::{
    ChainPoint, Checkpoint, Envelope, Head, KeyList, Proof, ProofError, Receipt, pre_authentication,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

fn head() -> Head {
    Head(ChainPoint::new(TENANT, 7, &"a".repeat(64), NOW))
}

fn open(value: &Value, keys: &KeyList) -> Result<(Head, Proof), ProofError> {
    Head::open(&Envelope::parse(value.to_string().as_bytes())?, Some(keys))
}

/// The example of the DSSE documents.
#[test]
fn what_is_signed_is_encoded_as_dsse_says() {
    let encoded = pre_authentication("http://example.com/HelloWorld", b"hello world");
    assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

#[test]
fn a_signed_head_comes_back() {
    let envelope = head().seal(&key(1));
    let again = Envelope::parse(envelope.to_json().as_bytes()).unwrap();
    let (opened, proof) = Head::open(&again, Some(&trusted(&[2, 1]))).unwrap();
    assert_eq!((opened, proof), (head(), Proof::Signed { keyid: key(1).id() }));
    assert_eq!(Head::open(&again, None).unwrap().1, Proof::Unchecked);
    assert_eq!(head().seal(&key(1)), envelope, "the same content has the same signature");
}

#[test]
fn a_document_of_one_kind_is_not_one_of_another() {
    let keys = trusted(&[1]);
    let (head, checkpoint) = (head().seal(&key(1)), Checkpoint(head().0).seal(&key(1)));
    let receipt = receipt().seal(&key(1));
    let wrong = |result: Result<(), ProofError>| matches!(result, Err(ProofError::WrongType { .. }));
    assert!(wrong(Checkpoint::open(&head, Some(&keys)).map(drop)));
    assert!(wrong(Head::open(&checkpoint, Some(&keys)).map(drop)));
    assert!(wrong(Head::open(&receipt, Some(&keys)).map(drop)));
    assert!(wrong(Receipt::open(&head, Some(&keys)).map(drop)));
    // Nor by writing another type on it: the type is signed, too.
    let mut relabelled = serde_json::to_value(&checkpoint).unwrap();
    relabelled["payloadType"] = json!(head.payload_type());
    assert_eq!(open(&relabelled, &keys), Err(ProofError::Forged { keyid: key(1).id() }));
}

#[test]
fn what_was_altered_or_signed_by_others_is_refused() {
    let keys = trusted(&[1, 2]);
    let sealed = serde_json::to_value(head().seal(&key(1))).unwrap();
    assert!(open(&sealed, &keys).is_ok());
    let other = serde_json::to_value(Head(ChainPoint { seq: 8, ..head().0 }).seal(&key(1))).unwrap();
    let mut payload = sealed.clone();
    payload["payload"] = other["payload"].clone();
    assert_eq!(open(&payload, &keys), Err(ProofError::Forged { keyid: key(1).id() }));
    let mut signature = sealed.clone();
    signature["signatures"][0]["sig"] = other["signatures"][0]["sig"].clone();
    assert_eq!(open(&signature, &keys), Err(ProofError::Forged { keyid: key(1).id() }));
    // A stranger's key is a stranger's, under its own name and under a trusted one.
    let mut stranger = serde_json::to_value(head().seal(&key(3))).unwrap();
    assert!(matches!(open(&stranger, &keys), Err(ProofError::UnknownKey { .. })));
    stranger["signatures"][0]["keyid"] = json!(key(1).id());
    assert_eq!(open(&stranger, &keys), Err(ProofError::Forged { keyid: key(1).id() }));
    // A trusted key does not sign under another trusted key's name either.
    let mut confused = sealed.clone();
    confused["signatures"][0]["keyid"] = json!(key(2).id());
    assert_eq!(open(&confused, &keys), Err(ProofError::Forged { keyid: key(2).id() }));
    // Somebody else's signature beside ours takes nothing from it.
    let mut both = sealed.clone();
    let theirs = serde_json::to_value(head().seal(&key(3))).unwrap()["signatures"][0].clone();
    both["signatures"].as_array_mut().unwrap().insert(0, theirs);
    assert!(open(&both, &keys).is_ok());
}

fn altered_without_signatures(sealed: &Value) -> String {
    let mut value = sealed.clone();
    value["signatures"] = json!([]);
    value.to_string()
}

#[test]
fn there_is_nothing_to_choose_in_an_envelope() {
    let keys = trusted(&[1]);
    let sealed = serde_json::to_value(head().seal(&key(1))).unwrap();
    let with = |change: fn(&mut Value)| {
        let mut value = sealed.clone();
        change(&mut value);
        open(&value, &keys)
    };
    let changes: [fn(&mut Value); 7] = [
        |value| value["alg"] = json!("none"),
        |value| value["signatures"][0]["alg"] = json!("HS256"),
        |value| value["signatures"][0]["jwk"] = json!({}),
        |value| value["signatures"] = json!([]),
        |value| value["signatures"][0]["sig"] = json!(""),
        |value| value["signatures"][0]["keyid"] = json!(""),
        |value| value["signatures"] = json!(vec![json!({"keyid": "x", "sig": "x"}); 17]),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        assert!(with(change).is_err(), "change {i}");
    }
    let unsigned = altered_without_signatures(&sealed);
    assert!(Envelope::parse(unsigned.as_bytes()).is_err(), "nobody's, and not even to be read");
    let twice = sealed.to_string().replacen('{', r#"{"payload":"e30=","#, 1);
    assert!(Envelope::parse(twice.as_bytes()).is_err(), "a field that is there twice");
}

#[test]
fn a_point_has_a_number_and_a_hash_that_fit() {
    let keys = trusted(&[1]);
    for (seq, hash, is_sound) in [
        (0, String::new(), true),
        (1, "a".repeat(64), true),
        (0, "a".repeat(64), false),
        (1, String::new(), false),
        (-1, "a".repeat(64), false),
        (1, "x".repeat(64), false),
    ] {
        let sealed = Head(ChainPoint::new(TENANT, seq, &hash, NOW)).seal(&key(1));
        assert_eq!(Head::open(&sealed, Some(&keys)).is_ok(), is_sound, "{seq} {hash}");
    }
    let timeless = Head(ChainPoint { at: "yesterday".to_owned(), ..head().0 }).seal(&key(1));
    assert!(Head::open(&timeless, Some(&keys)).is_err());
}

#[test]
fn a_retired_key_speaks_for_its_time_and_a_leaked_one_for_none() {
    let minutes = |minutes: i64| cofferdam_core::timestamp(NOW + minutes * 60_000);
    let retired =
        |at| KeyList::new(vec![cofferdam_proof::ListedKey { retired_at: Some(at), ..listed(1) }]).unwrap();
    let sealed = head().seal(&key(1));
    assert!(Head::open(&sealed, Some(&retired(minutes(5)))).is_ok());
    // A rotation takes a moment to be noticed.
    assert!(Head::open(&sealed, Some(&retired(minutes(-1)))).is_ok());
    assert!(matches!(Head::open(&sealed, Some(&retired(minutes(-2)))), Err(ProofError::Retired { .. })));
    let leaked = cofferdam_proof::ListedKey { leaked_at: Some(minutes(5)), ..listed(1) };
    let leaked = KeyList::new(vec![leaked]).unwrap();
    assert_eq!(Head::open(&sealed, Some(&leaked)), Err(ProofError::Leaked { keyid: key(1).id() }));
}

proptest! {
    /// No single byte of an envelope can be changed so that it still proves something else.
    #[test]
    fn no_changed_byte_is_believed(at in 0..1000_usize, byte in 0x20..0x7f_u8) {
        static SEALED: LazyLock<Vec<u8>> = LazyLock::new(|| head().seal(&key(1)).to_json().into_bytes());
        static KEYS: LazyLock<KeyList> = LazyLock::new(|| trusted(&[1]));
        let sealed = SEALED.clone();
        let mut changed = sealed.clone();
        let at = at % changed.len();
        changed[at] = byte;
        if let Ok((opened, _)) = Envelope::parse(&changed).and_then(|e| Head::open(&e, Some(&KEYS))) {
            prop_assert_eq!(opened, head());
            prop_assert_eq!(changed, sealed);
        }
    }

    #[test]
    fn nothing_that_is_read_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Envelope::parse(&bytes);
        let _ = KeyList::parse(&bytes);
        let payload = base64::engine::general_purpose::STANDARD.encode(&bytes);
        let signature = json!({"keyid": "x", "sig": "x"});
        let envelope = json!({"payloadType": "application/vnd.in-toto+json", "payload": payload, "signatures": [signature]});
        let _ = Receipt::open(&Envelope::parse(envelope.to_string().as_bytes()).unwrap(), None);
    }
}
