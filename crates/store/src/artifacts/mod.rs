//! Artifacts: whose they are, how large, and the wrapped key without which their bytes say nothing. The bytes
//! themselves are elsewhere.
//!
//! A record is there before the first byte and until after the last one is gone, so whatever a death leaves behind
//! has a record that says what to do about it. What a tenant's artifacts take together is counted in the same
//! transactions, and a record that would pass the quota is not written.

mod read;
mod sweep;
mod write;

use crate::{Millis, Result, StoreError};
use sqlx::{AnyConnection, Row};

pub use read::ArtifactFilter;
pub(crate) use write::delete_of_job;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactState {
    /// Its bytes are not all there, or nobody has said that they are the right ones.
    Uploading,
    Ready,
    /// Nobody can read it any more; its bytes are about to go.
    Deleting,
}

impl ArtifactState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Uploading => "uploading",
            Self::Ready => "ready",
            Self::Deleting => "deleting",
        }
    }

    fn from_name(name: &str) -> Result<Self> {
        let all = [Self::Uploading, Self::Ready, Self::Deleting];
        let found = all.into_iter().find(|state| state.as_str() == name);
        found.ok_or_else(|| StoreError::Unreadable(format!("an artifact that is {name:?}")))
    }
}

/// An artifact as it is begun.
#[derive(Debug, Clone)]
pub struct NewArtifact {
    pub id: String,
    pub tenant: String,
    pub job: Option<String>,
    /// The session that it is of, and the step, where one made it.
    pub session: Option<String>,
    pub step: Option<String>,
    pub name: String,
    pub content_type: String,
    /// As many bytes as it may have; they count from now on.
    pub size_bytes: i64,
    /// Of the bytes that are to come, where it is known.
    pub sha256: Option<String>,
    pub attempt: Option<Attempt>,
    pub created_at_ms: Millis,
    /// By then it has to be ready.
    pub expires_at_ms: Millis,
}

/// A writing of the bytes: where they go, and the key that they will need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub name: String,
    pub wrapped_key: String,
}

/// What a job's artifact turned out to be.
#[derive(Debug, Clone)]
pub struct DoneArtifact {
    pub id: String,
    pub size_bytes: i64,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRecord {
    pub id: String,
    pub tenant: String,
    pub job: Option<String>,
    pub session: Option<String>,
    pub step: Option<String>,
    pub name: String,
    pub content_type: String,
    pub size_bytes: i64,
    pub sha256: Option<String>,
    pub state: ArtifactState,
    pub attempt: Option<Attempt>,
    /// Of the bytes that came, once all have come.
    pub stored_sha256: Option<String>,
    pub created_at_ms: Millis,
    pub expires_at_ms: Millis,
}

const COLUMNS: &str = "id, tenant_id, job_id, name, content_type, size_bytes, sha256, state, attempt, wrapped_key, \
                       stored_sha256, created_at_ms, expires_at_ms, session_id, step_id";

fn record(row: &sqlx::any::AnyRow) -> Result<ArtifactRecord> {
    let (attempt, wrapped_key): (Option<String>, Option<String>) = (row.try_get(8)?, row.try_get(9)?);
    let state: String = row.try_get(7)?;
    Ok(ArtifactRecord {
        id: row.try_get(0)?,
        tenant: row.try_get(1)?,
        job: row.try_get(2)?,
        name: row.try_get(3)?,
        content_type: row.try_get(4)?,
        size_bytes: row.try_get(5)?,
        sha256: row.try_get(6)?,
        state: ArtifactState::from_name(&state)?,
        attempt: attempt.zip(wrapped_key).map(|(name, wrapped_key)| Attempt { name, wrapped_key }),
        stored_sha256: row.try_get(10)?,
        created_at_ms: row.try_get(11)?,
        expires_at_ms: row.try_get(12)?,
        session: row.try_get(13)?,
        step: row.try_get(14)?,
    })
}

/// Counts bytes for or against a tenant. Past the quota nothing is counted, and the caller's write is undone.
pub(crate) async fn count(
    connection: &mut AnyConnection,
    tenant: &str,
    bytes: i64,
    quota_bytes: Option<i64>,
) -> Result<()> {
    let row = sqlx::query(
        "INSERT INTO artifact_usage (tenant_id, bytes) VALUES ($1, $2) \
         ON CONFLICT (tenant_id) DO UPDATE SET bytes = artifact_usage.bytes + excluded.bytes RETURNING bytes",
    )
    .bind(tenant)
    .bind(bytes)
    .fetch_one(connection)
    .await?;
    let after: i64 = row.try_get(0)?;
    match quota_bytes {
        Some(limit) if after > limit => {
            Err(StoreError::OverQuota { used: after - bytes, asked: bytes, limit })
        }
        _ => Ok(()),
    }
}
