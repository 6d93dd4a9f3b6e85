//! SHA-256, because everybody's tools have it: what a receipt says can be compared with `sha256sum`.

use crate::ProofError;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use std::fmt;

/// A SHA-256, as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

impl Digest {
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let is_hex =
            text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match is_hex {
            true => Ok(Self(text.to_owned())),
            false => Err(ProofError::Malformed("a SHA-256 has 64 digits from 0-9 and a-f".to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Digest {
    type Error = ProofError;

    fn try_from(text: String) -> Result<Self, ProofError> {
        Self::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

pub fn sha256(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    hasher.finish()
}

/// A digest of bytes that come in pieces.
#[derive(Debug, Clone, Default)]
pub struct Hasher(sha2::Sha256);

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_text_has_its_known_digest() {
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc").as_str(), known);
        assert_eq!(Digest::parse(known), Ok(sha256(b"abc")));
        for text in ["", &known[1..], &known.to_uppercase(), &format!("{known}0")] {
            assert!(Digest::parse(text).is_err(), "{text}");
        }
    }
}
