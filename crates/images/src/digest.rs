//! SHA-256 digests, and readers that compute one while bytes pass.

use cofferdam_core::InvalidValue;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, Read};

/// What bytes are named by: `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        let wrong = || {
            let fix = "write a digest as sha256: and 64 digits of 0-9 and a-f";
            InvalidValue::new(field, text, fix)
        };
        let hex = text.strip_prefix("sha256:").ok_or_else(wrong)?.as_bytes();
        let mut bytes = [0; 32];
        if hex.len() != 64 {
            return Err(wrong());
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks(2)) {
            let digit = |c: u8| match c {
                b'0'..=b'9' => Some(c - b'0'),
                b'a'..=b'f' => Some(c - b'a' + 10),
                _ => None,
            };
            *byte =
                digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| high << 4 | low).ok_or_else(wrong)?;
        }
        Ok(Self(bytes))
    }

    /// The digits alone, fit for a file's name.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Digest {
    type Error = InvalidValue;

    fn try_from(text: String) -> Result<Self, InvalidValue> {
        Self::parse("digest", &text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Hashes and counts what is read through it.
pub(crate) struct Hashing<R> {
    inner: R,
    hasher: Sha256,
    bytes: u64,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    /// Reads to the end, so that the digest is of everything.
    pub(crate) fn finish(mut self) -> io::Result<(Digest, u64, R)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((Digest(self.hasher.finalize().into()), self.bytes, self.inner))
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        self.bytes += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let empty = Digest::of(b"");
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!((empty.to_string().as_str(), Digest::parse("d", text)), (text, Ok(empty)));
        let upper = text.to_uppercase();
        for wrong in [&text[7..], &text[..70], &upper, "sha512:00", "", "sha256:../../../../etc/passwd"] {
            assert!(Digest::parse("d", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_not_asked_for_is_hashed_as_well() {
        let mut reader = Hashing::new(&b"abcdef"[..]);
        reader.read_exact(&mut [0; 2]).unwrap();
        let (digest, bytes, _) = reader.finish().unwrap();
        assert_eq!((digest, bytes), (Digest::of(b"abcdef"), 6));
    }
}
