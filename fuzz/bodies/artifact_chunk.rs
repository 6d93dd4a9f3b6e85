//! Chunks of artifacts, as they come back from a place that others may write to. Nothing opens that was not sealed
//! so; and what was sealed opens once, whatever is changed about it afterwards.

use cofferdam_artifacts::{ObjectKey, open_chunk, seal_chunk};

pub(crate) fn run(data: &[u8]) {
    let key = ObjectKey::from_bytes([9; 32]);
    let (head, rest) = data.split_at(data.len().min(9));
    let number = head.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    let is_last = head.get(8).is_some_and(|byte| byte & 1 == 1);
    // Found there: whoever made this did not have the key.
    assert!(open_chunk(&key, b"art-a", number, is_last, &mut rest.to_vec()).is_err());
    let mut sealed = Vec::new();
    seal_chunk(&key, b"art-a", number, is_last, rest, &mut sealed);
    let opened = open_chunk(&key, b"art-a", number, is_last, &mut sealed.clone()).map(<[u8]>::to_vec);
    assert_eq!(opened.as_deref(), Ok(rest));
    let at = number as usize % sealed.len();
    let mut changed = sealed.clone();
    changed[at] ^= 1;
    assert!(open_chunk(&key, b"art-a", number, is_last, &mut changed).is_err());
    assert!(open_chunk(&key, b"art-a", number, is_last, &mut sealed[..at].to_vec()).is_err());
    assert!(open_chunk(&key, b"art-a", number ^ 1, is_last, &mut sealed.clone()).is_err());
    assert!(open_chunk(&key, b"art-a", number, !is_last, &mut sealed).is_err());
}
