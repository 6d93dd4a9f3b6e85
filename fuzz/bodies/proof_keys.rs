//! Lists of keys to trust.

use cofferdam_proof::{KeyList, PublicKey};

pub(crate) fn run(data: &[u8]) {
    let Ok(list) = KeyList::parse(data) else { return };
    for key in list.keys() {
        let public = PublicKey::parse(&key.public_key).expect("it was read before");
        // No key goes by another's name.
        assert_eq!(public.id(), key.keyid);
        assert_eq!(public.to_base64(), key.public_key);
    }
    let text = serde_json::to_vec(&list).expect("JSON");
    assert_eq!(KeyList::parse(&text), Ok(list));
}
