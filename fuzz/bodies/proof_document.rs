//! Signed documents: whatever is in the envelope, and whatever envelope it is in.

use cofferdam_proof::{Checkpoint, Envelope, Head, KeyList, ListedKey, Proof, Receipt, SigningKey};
use std::sync::LazyLock;

static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::from_seed(&[1; 32]));
static KEYS: LazyLock<KeyList> = LazyLock::new(|| {
    let other = SigningKey::from_seed(&[2; 32]).public();
    let listed = [&KEY.public(), &other].map(|key| ListedKey::new(key, 0));
    KeyList::new(listed.into()).expect("two keys")
});

/// The types that an envelope of ours may have.
const TYPES: [&str; 3] = [
    "application/vnd.in-toto+json",
    "application/vnd.cofferdam.audit-head+json",
    "application/vnd.cofferdam.audit-checkpoint+json",
];

pub(crate) fn run(data: &[u8]) {
    // As an envelope that somebody sends: nobody but the corpus has a signature of this key.
    if let Ok(envelope) = Envelope::parse(data) {
        assert_eq!(Envelope::parse(envelope.to_json().as_bytes()), Ok(envelope.clone()));
        kinds(&envelope, None);
        kinds(&envelope, Some(&KEYS));
    }
    // As content that is signed: what is inside may still be anything.
    for payload_type in TYPES {
        kinds(&Envelope::seal(&KEY, payload_type, data), Some(&KEYS));
    }
}

/// It is of one kind at most, and signed content is what was signed.
fn kinds(envelope: &Envelope, keys: Option<&KeyList>) {
    let receipt = Receipt::open(envelope, keys);
    let head = Head::open(envelope, keys);
    let checkpoint = Checkpoint::open(envelope, keys);
    let proofs = [
        receipt.as_ref().ok().map(|(_, proof)| proof),
        head.as_ref().ok().map(|(_, proof)| proof),
        checkpoint.as_ref().ok().map(|(_, proof)| proof),
    ];
    assert!(proofs.iter().flatten().count() <= 1);
    assert!(proofs.into_iter().flatten().all(|proof| proof.is_signed() == keys.is_some()));
    if let (Ok((receipt, Proof::Signed { .. })), Some(keys)) = (receipt, keys) {
        let again = receipt.clone().seal(&KEY);
        assert_eq!(Receipt::open(&again, Some(keys)).map(|(receipt, _)| receipt), Ok(receipt));
    }
}
