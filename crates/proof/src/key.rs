//! Keys, Ed25519 only. There is no choice of algorithm anywhere, so there is none to be talked into.

use crate::{Digest, ProofError, sha256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer, VerifyingKey};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a key: `sgn-` and the first half of its SHA-256. It follows from the key, so that no key can go by
/// another's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A name that was read may be anything; a real one has none of what is escaped.
        write!(f, "{}", self.0.escape_debug())
    }
}

/// The public half.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads one in base64. Keys under which anything can be made to look signed are refused.
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let wrong = |why: &str| ProofError::Malformed(format!("a public key {why}"));
        let bytes = STANDARD.decode(text).map_err(|_| wrong("must be base64"))?;
        let bytes = bytes.try_into().map_err(|_| wrong("must have 32 bytes"))?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| wrong("must be a point of Ed25519"))?;
        if key.is_weak() {
            return Err(wrong("must not be of small order"));
        }
        Ok(Self(key))
    }

    pub fn id(&self) -> KeyId {
        let digest: Digest = sha256(self.0.as_bytes());
        KeyId(format!("sgn-{}", &digest.as_str()[..32]))
    }

    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0.as_bytes())
    }

    /// Whether a signature in base64 is this key's over `message`. Strictly: one signature, one encoding.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &str) -> bool {
        let bytes = STANDARD.decode(signature).ok().and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
        let signature = bytes.map(|bytes| ed25519_dalek::Signature::from_bytes(&bytes));
        signature.is_some_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicKey").field(&self.to_base64()).finish()
    }
}

/// The secret half. It is wiped from memory when it is dropped, and never shown.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Makes the key of 32 bytes that the caller drew at random, or has kept.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub fn id(&self) -> KeyId {
        self.public().id()
    }

    /// A signature, in base64. The same message has the same one.
    pub(crate) fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.0.sign(message).to_bytes())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.id()).finish()
    }
}
