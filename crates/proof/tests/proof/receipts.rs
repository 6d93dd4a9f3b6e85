//! Receipts that somebody was at.

use crate::made::{key, receipt, trusted};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_proof::{Envelope, PREDICATE_TYPE, Proof, ProofError, Receipt, STATEMENT_TYPE};
use serde_json::{Value, json};

/// What a sealed receipt says.
fn statement(envelope: &Envelope) -> Value {
    let envelope = serde_json::to_value(envelope).unwrap();
    serde_json::from_slice(&STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap()).unwrap()
}

#[test]
fn a_receipt_is_a_statement_that_comes_back() {
    let sealed = receipt().seal(&key(1));
    let said = statement(&sealed);
    assert_eq!((&said["_type"], &said["predicateType"]), (&json!(STATEMENT_TYPE), &json!(PREDICATE_TYPE)));
    let names: Vec<_> = said["subject"].as_array().unwrap().iter().map(|subject| &subject["name"]).collect();
    assert_eq!(names, ["work", "stdout", "artifacts/r.json"]);
    let (opened, proof) = Receipt::open(&sealed, Some(&trusted(&[1]))).unwrap();
    assert_eq!((opened, proof), (receipt(), Proof::Signed { keyid: key(1).id() }));
    assert_eq!(receipt().seal(&key(1)).to_json(), sealed.to_json());
}

/// Each part of a receipt, changed under the signature that it had.
#[test]
fn no_part_of_a_receipt_can_be_changed() {
    let sealed = receipt().seal(&key(1));
    let said = statement(&sealed);
    let parts: Vec<String> = said["predicate"].as_object().unwrap().keys().cloned().collect();
    assert!(parts.len() > 20, "{parts:?}");
    for part in parts {
        let mut forged = said.clone();
        forged["predicate"][&part] = json!("forged");
        let mut envelope = serde_json::to_value(&sealed).unwrap();
        envelope["payload"] = json!(STANDARD.encode(forged.to_string()));
        let envelope = Envelope::parse(envelope.to_string().as_bytes()).unwrap();
        let refused = Receipt::open(&envelope, Some(&trusted(&[1])));
        assert_eq!(refused, Err(ProofError::Forged { keyid: key(1).id() }), "{part}");
    }
}

/// Signed by a trusted key, and still no receipt of ours.
#[test]
fn other_statements_are_no_receipts() {
    let said = statement(&receipt().seal(&key(1)));
    let with = |change: fn(&mut Value)| {
        let mut value = said.clone();
        change(&mut value);
        let sealed = Envelope::seal(&key(1), "application/vnd.in-toto+json", value.to_string().as_bytes());
        Receipt::open(&sealed, Some(&trusted(&[1])))
    };
    assert!(with(|_| {}).is_ok());
    let changes: [fn(&mut Value); 6] = [
        |value| value["predicateType"] = json!("https://slsa.dev/provenance/v1"),
        |value| value["_type"] = json!("https://in-toto.io/Statement/v0.1"),
        |value| value["subject"] = json!([]),
        |value| value["subject"][0]["digest"]["sha256"] = value["subject"][1]["digest"]["sha256"].clone(),
        |value| value["predicate"]["finished_at"] = json!("soon"),
        |value| value["predicate"]["more"] = json!(1),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        assert!(with(change).is_err(), "change {i}");
    }
}
