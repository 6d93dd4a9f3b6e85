//! A chain as a file: JSON lines, the first of which says whose it is and where it begins.

use crate::verdict::malformed;
use crate::{Envelope, ProofError};
use cofferdam_core::AuditEntry;
use serde::{Deserialize, Serialize};

/// The name of this form of a file.
pub const FORMAT: &str = "cofferdam-audit-1";

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    pub format: String,
    pub tenant: String,
    /// Where retention has removed what came before: a signed [`crate::Checkpoint`].
    pub checkpoint: Option<Envelope>,
}

impl ExportHeader {
    pub fn new(tenant: &str, checkpoint: Option<Envelope>) -> Self {
        Self { format: FORMAT.to_owned(), tenant: tenant.to_owned(), checkpoint }
    }

    pub fn read(line: &str) -> Result<Self, ProofError> {
        let header: Self = serde_json::from_str(line).map_err(malformed)?;
        match header.format == FORMAT {
            true => Ok(header),
            false => Err(malformed(format!("the format {:?}; only {FORMAT} is known", header.format))),
        }
    }
}

/// Every further line.
pub fn read_entry(line: &str) -> Result<AuditEntry, ProofError> {
    serde_json::from_str(line).map_err(malformed)
}

/// A line of the file, with its end.
pub fn write_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default() + "\n"
}
