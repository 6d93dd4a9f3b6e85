//! One chunk: XChaCha20-Poly1305 under the artifact's own key. Its number and whether it is the last are part of the
//! nonce, so a chunk that was moved, repeated or cut off behind does not open. Which artifact it belongs to goes in
//! as associated data; each has its own key besides.
//!
//! A key is used for one writing of one artifact, so no two chunks ever share key and nonce.

use crate::keys::ObjectKey;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};
use thiserror::Error;

/// It was changed, or is another one's, or not the one that it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the chunk does not open")]
pub struct SealError;

const TAG: usize = crate::layout::TAG_BYTES as usize;

fn nonce(number: u64, is_last: bool) -> XNonce {
    let mut nonce = [0; 24];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce[8] = is_last.into();
    nonce.into()
}

fn cipher(key: &ObjectKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&Key::from(*key.bytes()))
}

/// Seals a chunk onto the end of `out`.
pub fn seal_chunk(
    key: &ObjectKey,
    about: &[u8],
    number: u64,
    is_last: bool,
    plain: &[u8],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(plain);
    let tag =
        cipher(key).encrypt_inout_detached(&nonce(number, is_last), about, out[start..].as_mut().into());
    // It fails for more than 256 GiB at once only.
    let tag = tag.expect("a chunk is small");
    out.extend_from_slice(&tag);
}

/// Opens a chunk in its place and returns the plain bytes.
pub fn open_chunk<'b>(
    key: &ObjectKey,
    about: &[u8],
    number: u64,
    is_last: bool,
    sealed: &'b mut [u8],
) -> Result<&'b [u8], SealError> {
    let (text, tag) = sealed.split_last_chunk_mut::<TAG>().ok_or(SealError)?;
    let tag = Tag::from(*tag);
    let opened = cipher(key).decrypt_inout_detached(&nonce(number, is_last), about, text.into(), &tag);
    opened.map_err(|_| SealError)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(byte: u8) -> ObjectKey {
        ObjectKey::from_bytes([byte; 32])
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_and_only_as_it_was(
            plain in proptest::collection::vec(any::<u8>(), 0..600), number: u64, is_last: bool,
            at: prop::sample::Index, bit in 0..8u8, other: u64,
        ) {
            let mut sealed = Vec::new();
            seal_chunk(&key(1), b"art-a", number, is_last, &plain, &mut sealed);
            let open = |key: &ObjectKey, about: &[u8], number, is_last, bytes: &[u8]| {
                let mut bytes = bytes.to_vec();
                open_chunk(key, about, number, is_last, &mut bytes).map(<[u8]>::to_vec)
            };
            prop_assert_eq!(open(&key(1), b"art-a", number, is_last, &sealed), Ok(plain.clone()));
            prop_assert!(open(&key(2), b"art-a", number, is_last, &sealed).is_err());
            prop_assert!(open(&key(1), b"art-b", number, is_last, &sealed).is_err());
            prop_assert!(open(&key(1), b"art-a", number, !is_last, &sealed).is_err());
            prop_assert_eq!(open(&key(1), b"art-a", other, is_last, &sealed).is_ok(), other == number);
            prop_assert!(open(&key(1), b"art-a", number, is_last, &sealed[..sealed.len() - 1]).is_err());
            let mut changed = sealed.clone();
            changed[at.index(sealed.len())] ^= 1 << bit;
            prop_assert!(open(&key(1), b"art-a", number, is_last, &changed).is_err());
            // The bytes themselves are not to be seen, unless there are too few to tell.
            prop_assert!(plain.len() < 8 || !sealed.windows(plain.len()).any(|part| part == plain));
        }
    }
}
