//! A place in a tenant's chain, signed: its head at some time, or where a chain was cut by retention.

use crate::verdict::malformed;
use crate::{Envelope, KeyList, Proof, ProofError, SigningKey};
use cofferdam_core::{parse_timestamp, timestamp};
use serde::{Deserialize, Serialize};

const HEAD: &str = "application/vnd.cofferdam.audit-head+json";
const CHECKPOINT: &str = "application/vnd.cofferdam.audit-checkpoint+json";

/// An entry of a chain, by its number and its hash; 0 and no hash before the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainPoint {
    pub tenant: String,
    pub seq: i64,
    pub hash: String,
    /// When this was signed.
    pub at: String,
}

impl ChainPoint {
    pub fn new(tenant: &str, seq: i64, hash: &str, at_ms: i64) -> Self {
        Self { tenant: tenant.to_owned(), seq, hash: hash.to_owned(), at: timestamp(at_ms) }
    }

    fn seal(&self, key: &SigningKey, payload_type: &str) -> Envelope {
        let payload = serde_json::to_vec(self).unwrap_or_default();
        Envelope::seal(key, payload_type, &payload)
    }

    fn open(
        envelope: &Envelope,
        payload_type: &'static str,
        keys: Option<&KeyList>,
    ) -> Result<(Self, Proof), ProofError> {
        let (payload, proof) = envelope.open(payload_type, keys)?;
        let point: Self = serde_json::from_slice(&payload).map_err(malformed)?;
        let at = parse_timestamp("at", &point.at).map_err(malformed)?;
        if let (Some(keys), Proof::Signed { keyid }) = (keys, &proof) {
            keys.accept(keyid, Some(at))?;
        }
        // A hash is 64 digits; the place before the first entry has none.
        let is_hash = point.hash.len() == 64 && point.hash.bytes().all(|b| b.is_ascii_hexdigit());
        match (point.seq, is_hash || point.hash.is_empty()) {
            (0, true) if point.hash.is_empty() => Ok((point, proof)),
            (1.., true) if is_hash => Ok((point, proof)),
            _ => Err(malformed("its number and its hash do not fit together")),
        }
    }
}

/// The last entry of a chain at some time. It proves that nothing up to there was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head(pub ChainPoint);

impl Head {
    pub fn seal(&self, key: &SigningKey) -> Envelope {
        self.0.seal(key, HEAD)
    }

    pub fn open(envelope: &Envelope, keys: Option<&KeyList>) -> Result<(Self, Proof), ProofError> {
        ChainPoint::open(envelope, HEAD, keys).map(|(point, proof)| (Self(point), proof))
    }
}

/// The last entry that retention has removed. A chain may begin right after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint(pub ChainPoint);

impl Checkpoint {
    pub fn seal(&self, key: &SigningKey) -> Envelope {
        self.0.seal(key, CHECKPOINT)
    }

    pub fn open(envelope: &Envelope, keys: Option<&KeyList>) -> Result<(Self, Proof), ProofError> {
        ChainPoint::open(envelope, CHECKPOINT, keys).map(|(point, proof)| (Self(point), proof))
    }
}
