//! A step comes in. It is kept before it is run, so that whatever happens it is not run twice.

use super::guard::why;
use super::step_record::StepRecord;
use crate::{AuditEvent, Idempotency, Kept, Millis, Result, Store, StoreError, audit, idempotency, texts};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

/// A step as it is taken in.
#[derive(Debug, Clone)]
pub struct NewStep {
    pub id: String,
    pub session: String,
    pub tenant: String,
    /// Steps of one context run one after the other.
    pub context: String,
    pub spec: String,
    pub created_at_ms: Millis,
    /// More than so many of a session's steps do not wait.
    pub most_waiting: i64,
    /// Who sees to it: should they go away, nobody knows how far it came.
    pub owner: String,
}

/// What became of a request for a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepAccepted {
    /// It is kept, and the worker is to be given it. Where another step of its context has not ended, it is queued.
    New { step: Box<StepRecord>, worker: String },
    /// The same request has made this step before.
    Before { id: String },
    /// Another request has that idempotency key.
    OtherBody,
}

impl Store {
    /// Keeps a step of a session that is ready, and gives it its number.
    pub async fn start_step(
        &self,
        step: NewStep,
        idempotency: Option<Idempotency>,
        event: AuditEvent,
    ) -> Result<StepAccepted> {
        let NewStep { id, session, tenant, context, spec, .. } = &step;
        texts::check([
            ("the step's id", id.as_str()),
            ("the session's id", session),
            ("the tenant", tenant),
            ("the context", context),
            ("the request", spec),
            ("the owner", &step.owner),
        ])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Start { step, idempotency, event }).await
    }
}

struct Start {
    step: NewStep,
    idempotency: Option<Idempotency>,
    event: AuditEvent,
}

impl crate::writer::Act<StepAccepted> for Start {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<StepAccepted>
    where
        Self: 'c,
    {
        let Self { step, idempotency, mut event } = self;
        let now = step.created_at_ms;
        if let Some(name) = &idempotency {
            match idempotency::take(connection, &step.tenant, name, &step.id, now).await? {
                Kept::New => {}
                Kept::Same { resource } => return Ok(StepAccepted::Before { id: resource }),
                Kept::Other => return Ok(StepAccepted::OtherBody),
            }
        }
        let row = sqlx::query(
            "UPDATE sessions SET last_step = last_step + 1, used_at_ms = $1 WHERE id = $2 AND tenant_id = $3 \
             AND state = 'ready' AND expires_at_ms > $1 RETURNING last_step, worker, generation",
        )
        .bind(now)
        .bind(step.session.as_str())
        .bind(step.tenant.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Err(why(connection, &step.tenant, &step.session, now).await) };
        let (number, worker, generation): (i64, String, i64) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let state = place(connection, &step).await?;
        let started_at_ms = (state == JobState::Running).then_some(now);
        sqlx::query(
            "INSERT INTO steps (id, session_id, number, context, state, created_at_ms, started_at_ms, \
             transition_at_ms, spec, generation, owner) VALUES ($1, $2, $3, $4, $5, $6, $7, $6, $8, $9, $10)",
        )
        .bind(step.id.as_str())
        .bind(step.session.as_str())
        .bind(number)
        .bind(step.context.as_str())
        .bind(state.as_str())
        .bind(now)
        .bind(started_at_ms)
        .bind(step.spec.as_str())
        .bind(generation)
        .bind(step.owner.as_str())
        .execute(&mut *connection)
        .await?;
        event.details["number"] = number.into();
        audit::append(connection, &step.tenant, &[event]).await?;
        let step = StepRecord {
            id: step.id,
            session: step.session,
            number,
            context: step.context,
            state,
            reason: None,
            message: None,
            created_at_ms: now,
            started_at_ms,
            transition_at_ms: now,
            spec: step.spec,
            result: None,
            generation,
            cancelled_by: None,
        };
        Ok(StepAccepted::New { step: Box::new(step), worker })
    }
}

/// Whether a step can run at once, or waits for others of its context.
async fn place(connection: &mut AnyConnection, step: &NewStep) -> Result<JobState> {
    let waiting = sqlx::query(
        "SELECT COUNT(*), CAST(COALESCE(SUM(CASE WHEN context = $2 THEN 1 ELSE 0 END), 0) AS BIGINT) FROM steps \
         WHERE session_id = $1 AND state IN ('queued', 'running')",
    )
    .bind(step.session.as_str())
    .bind(step.context.as_str())
    .fetch_one(connection)
    .await?;
    let (all, same): (i64, i64) = (waiting.try_get(0)?, waiting.try_get(1)?);
    if all >= step.most_waiting {
        return Err(StoreError::QueueFull { queued: all, most: step.most_waiting });
    }
    Ok(if same == 0 { JobState::Running } else { JobState::Queued })
}
