//! The keys of a service, current and retired, as they are published: what a check trusts.

use crate::key::{KeyId, PublicKey};
use crate::verdict::malformed;
use crate::{MAX_DOCUMENT_BYTES, ProofError};
use cofferdam_core::{parse_timestamp, timestamp};
use serde::{Deserialize, Serialize};

pub(crate) const ALGORITHM: &str = "ed25519";

/// More than a service that rotates every day needs in a lifetime.
const MAX_KEYS: usize = 10_000;

/// A key may be used a little longer than it says: clocks differ, and a rotation takes a moment to be noticed.
const SLACK_MS: i64 = 60_000;

/// A public key, and for which time it stands. Only [`KeyList`] reads them, and it checks each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedKey {
    pub keyid: KeyId,
    pub algorithm: String,
    pub public_key: String,
    pub created_at: String,
    /// From here on it signs nothing new; what it has signed stands.
    pub retired_at: Option<String>,
    /// Since it became known that others may have it, nothing that it has signed stands.
    pub leaked_at: Option<String>,
}

impl ListedKey {
    pub fn new(key: &PublicKey, created_at_ms: i64) -> Self {
        Self {
            keyid: key.id(),
            algorithm: ALGORITHM.to_owned(),
            public_key: key.to_base64(),
            created_at: timestamp(created_at_ms),
            retired_at: None,
            leaked_at: None,
        }
    }

    fn read(&self) -> Result<PublicKey, ProofError> {
        if self.algorithm != ALGORITHM {
            let text = format!("a key of the algorithm {:?}; only {ALGORITHM} is known", self.algorithm);
            return Err(malformed(text));
        }
        let key = PublicKey::parse(&self.public_key)?;
        if key.id() != self.keyid {
            return Err(malformed(format!("the key called {} is really {}", self.keyid, key.id())));
        }
        for time in
            [Some(&self.created_at), self.retired_at.as_ref(), self.leaked_at.as_ref()].into_iter().flatten()
        {
            parse_timestamp("a key's time", time).map_err(malformed)?;
        }
        Ok(key)
    }

    /// Whether it may have signed something about that time.
    fn stands(&self, at: Option<i64>) -> Result<(), ProofError> {
        let keyid = self.keyid.clone();
        if self.leaked_at.is_some() {
            return Err(ProofError::Leaked { keyid });
        }
        let (Some(retired_at), Some(at)) = (&self.retired_at, at) else { return Ok(()) };
        let retired_at_ms = parse_timestamp("retired_at", retired_at).map_err(malformed)?;
        if at > retired_at_ms.saturating_add(SLACK_MS) {
            return Err(ProofError::Retired { keyid, retired_at: retired_at.clone(), at: timestamp(at) });
        }
        Ok(())
    }
}

/// All keys of a service: what `GET /v1/signing-keys` answers, and what a check is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct KeyList {
    keys: Vec<ListedKey>,
    #[serde(skip)]
    public: Vec<PublicKey>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    keys: Vec<ListedKey>,
}

impl TryFrom<Raw> for KeyList {
    type Error = ProofError;

    fn try_from(raw: Raw) -> Result<Self, ProofError> {
        Self::new(raw.keys)
    }
}

impl KeyList {
    pub fn new(keys: Vec<ListedKey>) -> Result<Self, ProofError> {
        if keys.len() > MAX_KEYS {
            return Err(malformed(format!("{} keys; at most {MAX_KEYS} are read", keys.len())));
        }
        let public = keys.iter().map(ListedKey::read).collect::<Result<Vec<_>, _>>()?;
        let mut names: Vec<&KeyId> = keys.iter().map(|key| &key.keyid).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(malformed(format!("the key {} is listed twice", pair[0])));
        }
        Ok(Self { keys, public })
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ProofError> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(malformed(format!("{} bytes are too many", bytes.len())));
        }
        serde_json::from_slice(bytes).map_err(malformed)
    }

    pub fn keys(&self) -> &[ListedKey] {
        &self.keys
    }

    /// The key of that name, if it may have signed something about that time.
    pub(crate) fn find(&self, keyid: &KeyId) -> Option<(&ListedKey, &PublicKey)> {
        self.keys.iter().zip(&self.public).find(|(listed, _)| listed.keyid == *keyid)
    }

    /// Whether what a key of this list has signed about that time counts.
    pub(crate) fn accept(&self, keyid: &KeyId, at: Option<i64>) -> Result<(), ProofError> {
        match self.find(keyid) {
            Some((listed, _)) => listed.stands(at),
            None => Err(ProofError::UnknownKey { keyids: keyid.to_string() }),
        }
    }
}
