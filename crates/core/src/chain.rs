//! An entry of a tenant's audit, and the hash that ties it to the one before.

use serde::{Deserialize, Serialize};

/// Something that was noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    /// 1, 2, … in each tenant's chain.
    pub seq: i64,
    pub at_ms: i64,
    pub kind: String,
    pub actor: String,
    pub resource: String,
    /// JSON, as the text that the hash is over.
    pub details: String,
    pub hash: String,
}

/// The hash of an entry after one with the hash `before`. Lengths go in with the parts, so that no two entries
/// look the same; the tenant does, so that no entry fits into another's chain.
pub fn chain_hash(before: &str, tenant: &str, entry: &AuditEntry) -> String {
    let mut hasher = blake3::Hasher::new();
    let AuditEntry { seq, at_ms, kind, actor, resource, details, hash: _ } = entry;
    for part in [before, tenant, &seq.to_string(), &at_ms.to_string(), kind, actor, resource, details] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
