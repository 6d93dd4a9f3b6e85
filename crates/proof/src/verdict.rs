//! What a check came to.

use crate::key::KeyId;
use serde::Serialize;
use thiserror::Error;

/// How far a document is proven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "signature", rename_all = "snake_case")]
pub enum Proof {
    /// Signed by this key, which was trusted for it.
    Signed { keyid: KeyId },
    /// There were no keys to check it with: it reads well, and may be anybody's.
    Unchecked,
}

impl Proof {
    pub fn is_signed(&self) -> bool {
        matches!(self, Self::Signed { .. })
    }
}

/// Why a document proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProofError {
    #[error("it cannot be read: {0}")]
    Malformed(String),

    #[error("it is a document of another kind: {found:?}, not {expected:?}")]
    WrongType { found: String, expected: &'static str },

    #[error("it is signed by {keyids}, which is not among the keys that were given")]
    UnknownKey { keyids: String },

    #[error("the signature is not that of the key {keyid} over this content: it was altered or forged")]
    Forged { keyid: KeyId },

    #[error("the key {keyid} was given up as leaked; ask the service for a new document")]
    Leaked { keyid: KeyId },

    #[error("the key {keyid} was retired at {retired_at}, and this is about {at}")]
    Retired { keyid: KeyId, retired_at: String, at: String },
}

/// A parser's words, kept to one line and to a length: they may quote what was read.
pub(crate) fn malformed(error: impl std::fmt::Display) -> ProofError {
    let text = error.to_string();
    ProofError::Malformed(text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect())
}
