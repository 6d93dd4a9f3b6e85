//! Lists of keys that somebody was at.

use crate::made::{key, listed, trusted};
use cofferdam_proof::{KeyList, ListedKey, PublicKey};
use serde_json::json;

fn parse(keys: &[ListedKey]) -> bool {
    KeyList::parse(json!({"keys": keys}).to_string().as_bytes()).is_ok()
}

#[test]
fn a_list_comes_back() {
    let list = trusted(&[1, 2]);
    assert_eq!(KeyList::parse(&serde_json::to_vec(&list).unwrap()), Ok(list));
    assert!(parse(&[]));
}

#[test]
fn a_key_cannot_go_by_another_name_or_algorithm() {
    assert!(!parse(&[ListedKey { keyid: key(2).id(), ..listed(1) }]));
    assert!(!parse(&[ListedKey { algorithm: "none".to_owned(), ..listed(1) }]));
    assert!(!parse(&[ListedKey { algorithm: "ED25519".to_owned(), ..listed(1) }]));
    assert!(!parse(&[listed(1), listed(1)]), "twice");
    assert!(!parse(&[ListedKey { retired_at: Some("never".to_owned()), ..listed(1) }]));
    let more = json!({"keys": [listed(1)], "default": "trusted"});
    assert!(KeyList::parse(more.to_string().as_bytes()).is_err());
}

/// Under a key of small order a signature can be made without any secret.
#[test]
fn weak_keys_are_refused() {
    use base64::Engine;
    let text = |bytes: [u8; 32]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let mut identity = [0; 32];
    identity[0] = 1;
    assert!(PublicKey::parse(&text(identity)).is_err());
    assert!(PublicKey::parse(&text([0; 32])).is_err());
    assert!(PublicKey::parse(&key(1).public().to_base64()).is_ok());
    assert!(PublicKey::parse("AAAA").is_err());
}

#[test]
fn a_secret_is_not_shown() {
    let key = key(0x42);
    let shown = format!("{key:?}");
    assert!(shown.contains(key.id().as_str()), "{shown}");
    for form in ["4242", "66, 66", "QkJC"] {
        assert!(!shown.contains(form), "{shown}");
    }
}
