//! Secrets on the wire. Values come in, and none goes out.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// `PUT /v1/secrets/{name}`.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"value": "not a real secret"}))]
pub struct SecretPut {
    #[schema(min_length = 1, max_length = 65536)]
    pub value: String,
}

impl fmt::Debug for SecretPut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretPut")
    }
}

/// A secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Secret {
    pub name: String,
    /// Who gave it its value.
    pub changed_by: String,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub changed_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretList {
    pub secrets: Vec<Secret>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// A secret that a job or a session is given as a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "registry-token"}))]
pub struct SecretUse {
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    pub name: String,
    /// In `/run/secrets`; the name, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}
