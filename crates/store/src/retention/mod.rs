//! What has been kept for long enough goes, a little at a time: each call is one small write, so that nobody who waits
//! for the writer notices. What is deleted, and from when on, the caller decides.

pub(crate) mod audit;
pub(crate) mod idempotency;
pub(crate) mod jobs;
pub(crate) mod output;
mod sessions;
mod space;

pub use audit::Checkpoint;
pub use space::Space;

use crate::{AuditEvent, Millis, Result, audit as chain};
use sqlx::AnyConnection;
use std::collections::BTreeMap;

/// Jobs in one write. Each is some ten entries in indexes.
pub(crate) const JOBS: i64 = 32;

/// Pieces of output in one write, of up to 64 KiB each.
pub(crate) const PIECES: i64 = 48;

/// Entries of a chain, or names of requests, in one write.
pub(crate) const ROWS: i64 = 128;

/// What one small write did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    pub count: u64,
    /// Whether there is more to do.
    pub is_more: bool,
}

/// Says in each tenant's chain how much of what is theirs went.
async fn note(
    connection: &mut AnyConnection,
    kind: &'static str,
    counts: BTreeMap<String, u64>,
    (now, before): (Millis, Millis),
) -> Result<()> {
    for (tenant, count) in counts {
        let event = AuditEvent {
            at_ms: now,
            kind,
            actor: "system".to_owned(),
            resource: tenant.clone(),
            details: serde_json::json!({"count": count, "ended_before_ms": before}),
        };
        chain::append(connection, &tenant, &[event]).await?;
    }
    Ok(())
}
