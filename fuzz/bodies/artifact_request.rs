//! What a client may write into the request for an artifact: a `Range`, and a signed link's query.

use cofferdam_artifacts::{LinkSigner, MasterKey, Wanted, part_of};

pub(crate) fn run(data: &[u8]) {
    let (size, rest) = data.split_at(data.len().min(8));
    let size = size.iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
    let text = String::from_utf8_lossy(rest);
    if let Wanted::Part(part) = part_of(Some(&text), size) {
        assert!(part.first <= part.last && part.last < size, "{part:?} of {size}");
    }
    let signer = LinkSigner::new(&MasterKey::from_bytes(&[9; 32]));
    // Nobody can write a link who cannot sign one.
    for method in ["GET", "HEAD", "PUT"] {
        assert!(signer.verify(method, "art-aaaaaaaaaaaaaaaa", &text, 0).is_err(), "{text}");
    }
}
