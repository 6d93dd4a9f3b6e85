//! Keys on the wire.

use serde::{Deserialize, Serialize};

/// `POST /v1/keys`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRequest {
    pub name: String,
    pub scopes: Vec<String>,
    #[serde(default)]
    pub agent: Option<String>,
    /// From now on; without it the key is good until it is taken back.
    #[serde(default)]
    pub ttl_seconds: Option<u64>,
    /// For another tenant than one's own; only an operator may.
    #[serde(default)]
    pub tenant: Option<String>,
}

/// A key that was just made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CreatedKey {
    pub id: String,
    pub tenant: String,
    pub name: String,
    pub scopes: Vec<String>,
    pub expires_at: Option<String>,
    /// Shown this once.
    pub secret: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Key {
    pub id: String,
    pub name: String,
    pub scopes: Vec<String>,
    pub agent: Option<String>,
    pub created_at: String,
    pub expires_at: Option<String>,
    pub revoked_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyList {
    pub keys: Vec<Key>,
}
