//! Archives: files of a session or a snapshot; and the keys of steps. Their keys are wrapped for the owner alone, whichever writing it was, so
//! that a copy of one can be told from noise by whoever has the master key, without a record of it.

use crate::keys::MasterKey;

/// What the key of an archive is wrapped for.
pub fn archive_about(owner: &str) -> Vec<u8> {
    format!("cofferdam archive 1\0{owner}").into_bytes()
}

/// What the key of a session's steps is wrapped for.
pub fn steps_about(session: &str) -> Vec<u8> {
    format!("cofferdam steps 1\0{session}").into_bytes()
}

/// The length of a wrapped key: nonce, key and tag, in hexadecimal.
const WRAPPED: usize = 2 * (24 + 32 + 16);

/// Looks for a key that was wrapped for something among any bytes, and says where the first one is.
pub fn find_wrapped_key(master: &MasterKey, about: &[u8], bytes: &[u8]) -> Option<usize> {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|byte| is_hex(byte)).count();
        // What lies beside it in a row may look as if it belonged to it.
        for start in at..(at + run + 1).saturating_sub(WRAPPED).max(at) {
            let text = std::str::from_utf8(&bytes[start..start + WRAPPED]).unwrap_or_default();
            if master.unwrap(text, about).is_ok() {
                return Some(start);
            }
        }
        at += run + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectKey;

    #[test]
    fn a_key_is_found_wherever_it_lies_and_no_other() {
        let (master, other) = (MasterKey::from_bytes(&[1; 32]), MasterKey::from_bytes(&[2; 32]));
        let wrapped = master.wrap(&ObjectKey::draw().unwrap(), &archive_about("ses-a")).unwrap();
        assert_eq!(wrapped.len(), WRAPPED);
        for (before, after) in [("", ""), ("\0\x01", "\0"), ("0123abcd", "ffff"), ("text ", " and more")] {
            let bytes = format!("{before}{wrapped}{after}").into_bytes();
            assert_eq!(
                find_wrapped_key(&master, &archive_about("ses-a"), &bytes),
                Some(before.len()),
                "{before:?}"
            );
            assert_eq!(find_wrapped_key(&master, &archive_about("ses-b"), &bytes), None);
            assert_eq!(find_wrapped_key(&other, &archive_about("ses-a"), &bytes), None);
            assert_eq!(
                find_wrapped_key(&master, &archive_about("ses-a"), &bytes[..bytes.len() - after.len() - 1]),
                None
            );
        }
        // One of files is none of steps.
        assert_eq!(find_wrapped_key(&master, &steps_about("ses-a"), wrapped.as_bytes()), None);
        let steps = master.wrap(&ObjectKey::draw().unwrap(), &steps_about("ses-a")).unwrap();
        assert_eq!(find_wrapped_key(&master, &steps_about("ses-a"), steps.as_bytes()), Some(0));
        assert_eq!(find_wrapped_key(&master, &steps_about("ses-b"), steps.as_bytes()), None);
        assert_eq!(find_wrapped_key(&master, &archive_about("ses-a"), b""), None);
        assert_eq!(find_wrapped_key(&master, &archive_about("ses-a"), "a".repeat(4096).as_bytes()), None);
    }
}
