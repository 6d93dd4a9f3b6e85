//! A session comes in.

use super::step_keys;
use crate::jobs::{Claim, JobSize};
use crate::workers::{has_room, may_run};
use crate::{AuditEvent, Idempotency, Kept, Millis, Result, Store, StoreError, audit, idempotency, texts};
use cofferdam_core::SessionState;
use sqlx::AnyConnection;

/// What is to become of a session when it could be ended, and whose it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keeping {
    /// At its deadline its files are kept, and it can be resumed.
    pub pauses_on_expiry: bool,
    /// The same when its worker is told to stop.
    pub archives_on_drain: bool,
    pub created_by: Option<String>,
}

/// A session as it is taken in.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: String,
    pub tenant: String,
    pub agent: Option<String>,
    pub task_id: String,
    /// The request, as it was accepted.
    pub spec: String,
    pub terms: Option<String>,
    pub created_at_ms: Millis,
    pub expires_at_ms: Millis,
    pub idle_ms: Option<i64>,
    pub size: JobSize,
    pub keeping: Keeping,
    /// What the worker calls its sandbox, where that is made already. Then the session is ready.
    pub runtime: Option<String>,
    /// The key of what its steps are and write; none where that is kept as it is.
    pub wrapped_key: Option<String>,
}

/// What became of a request for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionAccepted {
    New,
    /// The same request has made this session before.
    Before {
        id: String,
    },
    /// Another request has that idempotency key.
    OtherBody,
}

/// Of a session's first placement.
pub(crate) const FIRST: i64 = 1;

impl Store {
    /// Keeps a session on the worker of the claim, if its idempotency key and what others have taken allow.
    pub async fn create_session(
        &self,
        session: NewSession,
        claim: Claim,
        idempotency: Option<Idempotency>,
        event: AuditEvent,
    ) -> Result<SessionAccepted> {
        let NewSession { id, tenant, agent, task_id, spec, terms, runtime, .. } = &session;
        texts::check([
            ("the agent", agent.as_deref()),
            ("the terms", terms.as_deref()),
            ("the sandbox", runtime.as_deref()),
            ("the idempotency key", idempotency.as_ref().map(|taken| taken.name.as_str())),
        ])?;
        texts::check([
            ("the session's id", id.as_str()),
            ("the tenant", tenant),
            ("the task's id", task_id),
            ("the request", spec),
            ("the worker", &claim.worker),
        ])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Create { session, claim, idempotency, event }).await
    }
}

struct Create {
    session: NewSession,
    claim: Claim,
    idempotency: Option<Idempotency>,
    event: AuditEvent,
}

impl crate::writer::Act<SessionAccepted> for Create {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<SessionAccepted>
    where
        Self: 'c,
    {
        let Self { session, claim, idempotency, event } = self;
        if let Some(name) = &idempotency {
            let now = session.created_at_ms;
            match idempotency::take(connection, &session.tenant, name, &session.id, now).await? {
                Kept::New => {}
                Kept::Same { resource } => return Ok(SessionAccepted::Before { id: resource }),
                Kept::Other => return Ok(SessionAccepted::OtherBody),
            }
        }
        if !may_run(connection, &claim, &session.tenant).await? {
            return Err(StoreError::AtQuota { tenant: session.tenant });
        }
        if !has_room(connection, &claim, session.size).await? {
            return Err(StoreError::Full { worker: claim.worker });
        }
        let state = if session.runtime.is_some() { SessionState::Ready } else { SessionState::Creating };
        sqlx::query(
            "INSERT INTO sessions (id, tenant_id, agent, task_id, state, created_at_ms, transition_at_ms, spec, terms, \
             expires_at_ms, idle_ms, used_at_ms, worker, runtime, generation, last_step, cpus_millis, memory_bytes, \
             on_expiry, on_drain, created_by, owner) \
             VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, $9, $10, $6, $11, $12, $13, 0, $14, $15, $16, $17, $18, $19)",
        )
        .bind(session.id.as_str())
        .bind(session.tenant.as_str())
        .bind(session.agent)
        .bind(session.task_id)
        .bind(state.as_str())
        .bind(session.created_at_ms)
        .bind(session.spec)
        .bind(session.terms)
        .bind(session.expires_at_ms)
        .bind(session.idle_ms)
        .bind(claim.worker)
        .bind(session.runtime)
        .bind(FIRST)
        .bind(session.size.cpus_millis)
        .bind(session.size.memory_bytes)
        .bind(if session.keeping.pauses_on_expiry { "pause" } else { "delete" })
        .bind(if session.keeping.archives_on_drain { "archive" } else { "end" })
        .bind(session.keeping.created_by)
        .bind(claim.owner)
        .execute(&mut *connection)
        .await?;
        if let Some(wrapped_key) = session.wrapped_key {
            step_keys::put(connection, &session.id, &wrapped_key).await?;
        }
        audit::append(connection, &session.tenant, &[event]).await?;
        Ok(SessionAccepted::New)
    }
}
