//! What happened, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number in the tenant's chain, from 1 and without a gap.
    pub seq: i64,
    #[schema(format = DateTime)]
    pub at: String,
    #[schema(example = "job.accepted")]
    pub kind: String,
    /// The key that did it, or `system`.
    #[schema(example = "key-aaaaaaaaaaaaaaaa")]
    pub actor: String,
    /// The id of what it is about.
    #[schema(example = "job-aaaaaaaaaaaaaaaa")]
    pub resource: String,
    /// What else there is to know; its fields depend on the kind.
    #[schema(value_type = Object)]
    pub details: serde_json::Value,
    /// The hash over this entry and the one before.
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    pub entries: Vec<AuditEntry>,
}
