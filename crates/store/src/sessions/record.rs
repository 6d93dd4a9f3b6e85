//! A session as it is kept.

use crate::{Millis, Result, StoreError};
use cofferdam_core::{EndCause, SessionState};
use sqlx::Row;

/// How a session is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Its sandbox is there, and nothing in it runs.
    Freeze,
    /// Its files are being written away. Until they are, it has a sandbox.
    Archiving,
    /// Its files are kept, and there is no sandbox.
    Archive,
    /// A sandbox is being made for its files, which are still kept.
    Resuming,
}

impl Pause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Freeze => "freeze",
            Self::Archiving => "archiving",
            Self::Archive => "archive",
            Self::Resuming => "resuming",
        }
    }

    fn from_name(name: String) -> Result<Self> {
        let all = [Self::Freeze, Self::Archiving, Self::Archive, Self::Resuming];
        let found = all.into_iter().find(|pause| pause.as_str() == name);
        found.ok_or_else(|| StoreError::Unreadable(format!("a session that is paused by {name:?}")))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    pub id: String,
    pub tenant: String,
    pub agent: Option<String>,
    pub task_id: String,
    pub state: SessionState,
    /// Why it ended.
    pub cause: Option<EndCause>,
    pub message: Option<String>,
    pub created_at_ms: Millis,
    pub transition_at_ms: Millis,
    /// The request, as it was accepted.
    pub spec: String,
    pub terms: Option<String>,
    pub expires_at_ms: Millis,
    pub idle_ms: Option<i64>,
    /// When it was last used.
    pub used_at_ms: Millis,
    /// Who has its sandbox.
    pub worker: String,
    /// What the worker calls that.
    pub runtime: Option<String>,
    /// Of the placement on that worker. Whoever shows another one is stale.
    pub generation: i64,
    /// The number of its last step, 0 before the first.
    pub last_step: i64,
    /// How it is paused, while it is.
    pub pause: Option<Pause>,
    /// Who made it, as it was noted.
    pub created_by: Option<String>,
}

pub(crate) const COLUMNS: &str = "id, tenant_id, agent, task_id, state, cause, message, created_at_ms, \
    transition_at_ms, spec, terms, expires_at_ms, idle_ms, used_at_ms, worker, runtime, generation, last_step, pause_mode, created_by";

pub(crate) fn record(row: &sqlx::any::AnyRow) -> Result<SessionRecord> {
    let cause: Option<String> = row.try_get(5)?;
    Ok(SessionRecord {
        id: row.try_get(0)?,
        tenant: row.try_get(1)?,
        agent: row.try_get(2)?,
        task_id: row.try_get(3)?,
        state: state(row.try_get(4)?)?,
        cause: cause.map(self::cause).transpose()?,
        message: row.try_get(6)?,
        created_at_ms: row.try_get(7)?,
        transition_at_ms: row.try_get(8)?,
        spec: row.try_get(9)?,
        terms: row.try_get(10)?,
        expires_at_ms: row.try_get(11)?,
        idle_ms: row.try_get(12)?,
        used_at_ms: row.try_get(13)?,
        worker: row.try_get(14)?,
        runtime: row.try_get(15)?,
        generation: row.try_get(16)?,
        last_step: row.try_get(17)?,
        pause: row.try_get::<Option<String>, _>(18)?.map(Pause::from_name).transpose()?,
        created_by: row.try_get(19)?,
    })
}

pub(super) fn state(name: String) -> Result<SessionState> {
    SessionState::from_name(&name)
        .ok_or_else(|| StoreError::Unreadable(format!("a session that is {name:?}")))
}

pub(super) fn cause(name: String) -> Result<EndCause> {
    EndCause::from_name(&name)
        .ok_or_else(|| StoreError::Unreadable(format!("a session that ended by {name:?}")))
}
