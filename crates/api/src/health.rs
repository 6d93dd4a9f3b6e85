//! Whether the server is there, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok` or `ready`.
    #[schema(example = "ready")]
    pub status: String,
    /// What whoever looks after the server should know; left out where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What makes sandboxes here, of `/readyz`; left out where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<BackendState>,
}

/// One backend of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackendState {
    #[schema(example = "native")]
    pub name: String,
    /// `ready` or `unhealthy`; the server's log says why.
    #[schema(example = "ready")]
    pub state: String,
}
