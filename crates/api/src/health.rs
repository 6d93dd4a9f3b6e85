//! Whether the server is there, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok` or `ready`.
    #[schema(example = "ready")]
    pub status: String,
}
