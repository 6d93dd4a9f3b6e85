//! Where sessions are: for whoever asks a worker, and for a worker that asks what is its own.

use crate::{Result, Store};
use sqlx::Row;

/// Where a session is, or was last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlace {
    pub tenant: String,
    pub worker: String,
    pub generation: i64,
    /// It has not ended, and is not kept without a sandbox.
    pub has_sandbox: bool,
}

/// A session that has a sandbox, or is about to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    pub id: String,
    pub worker: String,
    pub cpus_millis: i64,
    pub memory_bytes: i64,
}

pub(crate) const OF_WORKER: &str = "SELECT id, generation FROM sessions WHERE state <> 'ended' \
    AND COALESCE(pause_mode, '') <> 'archive' AND worker = $1";

impl Store {
    /// Where a session is, whosever it is; none where there is no such session.
    pub async fn session_place(&self, id: &str) -> Result<Option<SessionPlace>> {
        let text = "SELECT worker, generation, CAST(CASE WHEN state <> 'ended' \
                    AND COALESCE(pause_mode, '') <> 'archive' THEN 1 ELSE 0 END AS BIGINT), tenant_id \
                    FROM sessions WHERE id = $1";
        let row = self.engine.fetch_optional(sqlx::query(text).bind(id)).await?;
        let read = |row: sqlx::any::AnyRow| {
            let (worker, generation) = (row.try_get(0)?, row.try_get(1)?);
            let (has_sandbox, tenant) = (row.try_get::<i64, _>(2)? != 0, row.try_get(3)?);
            Ok(SessionPlace { tenant, worker, generation, has_sandbox })
        };
        row.map(read).transpose()
    }

    /// The sessions that a worker has, or is about to: each with its generation.
    pub async fn sessions_of(&self, worker: &str) -> Result<Vec<(String, i64)>> {
        let rows = self.engine.fetch_all(sqlx::query(OF_WORKER).bind(worker)).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Every session that has a sandbox, or is about to.
    pub async fn live_sessions(&self) -> Result<Vec<LiveSession>> {
        let text = "SELECT id, worker, cpus_millis, memory_bytes FROM sessions WHERE state <> 'ended' \
                    AND COALESCE(pause_mode, '') <> 'archive'";
        let rows = self.engine.fetch_all(sqlx::query(text)).await?;
        let read = |row: &sqlx::any::AnyRow| {
            Ok(LiveSession {
                id: row.try_get(0)?,
                worker: row.try_get(1)?,
                cpus_millis: row.try_get(2)?,
                memory_bytes: row.try_get(3)?,
            })
        };
        rows.iter().map(read).collect()
    }
}
