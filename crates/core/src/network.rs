//! How much of a network a sandbox sees.

use crate::InvalidValue;
use serde::{Deserialize, Serialize};

/// The network policy of a sandbox. Both present ones leave it with its own loopback only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    None,
    Restricted,
}

impl NetworkPolicy {
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        match text {
            "none" => Ok(Self::None),
            "restricted" => Ok(Self::Restricted),
            _ => Err(InvalidValue::new(field, text, "it must be none or restricted")),
        }
    }
}
