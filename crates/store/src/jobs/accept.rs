//! A job comes in.

use super::Claim;
use super::tell::tell;
use crate::engine::Kind;
use crate::workers::{has_room, may_run};
use crate::{
    AuditEvent, Idempotency, Kept, Millis, NewWebhook, Result, Store, StoreError, audit, idempotency,
    tenants, texts, webhooks,
};
use cofferdam_core::JobState;
use sqlx::AnyConnection;

/// A job as it is taken in.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub id: String,
    pub tenant: String,
    pub agent: Option<String>,
    pub task_id: String,
    /// The request, as it will be run.
    pub spec: String,
    /// Under which it was let in: what its receipt says and the request does not.
    pub terms: Option<String>,
    pub created_at_ms: Millis,
    pub size: JobSize,
    /// It does not wait in the queue for longer.
    pub queue_deadline_ms: Option<Millis>,
    /// The trace that it is a part of, for whoever runs it later.
    pub traceparent: Option<String>,
    pub webhook: Option<NewWebhook>,
}

/// What a job takes of a worker while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobSize {
    pub cpus_millis: i64,
    pub memory_bytes: i64,
}

/// What became of a request for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It is kept; the fence is that of its claim, if it was claimed at once.
    New { fence: Option<i64> },
    /// The same request has made this job before.
    Before { id: String },
    /// Another request has that idempotency key.
    OtherBody,
}

impl Store {
    /// Keeps a job, if its idempotency key allows, and claims it at once if there is room for it.
    pub async fn accept(
        &self,
        job: NewJob,
        claim: Option<Claim>,
        idempotency: Option<Idempotency>,
        events: Vec<AuditEvent>,
    ) -> Result<Accepted> {
        check_accept(&job, claim.as_ref(), idempotency.as_ref(), &events)?;
        let kind = self.engine.kind();
        self.writer.write(Accept { job, claim, idempotency, events, most_queued: None, kind }).await
    }

    /// The same, but a job that would have to wait is refused where `most_queued` of its tenant's wait already.
    pub async fn accept_within(
        &self,
        job: NewJob,
        claim: Option<Claim>,
        idempotency: Option<Idempotency>,
        events: Vec<AuditEvent>,
        most_queued: i64,
    ) -> Result<Accepted> {
        check_accept(&job, claim.as_ref(), idempotency.as_ref(), &events)?;
        let (kind, most_queued) = (self.engine.kind(), Some(most_queued));
        self.writer.write(Accept { job, claim, idempotency, events, most_queued, kind }).await
    }
}

fn check_accept(
    job: &NewJob,
    claim: Option<&Claim>,
    idempotency: Option<&Idempotency>,
    events: &[AuditEvent],
) -> Result<()> {
    check_new(job)?;
    texts::check([
        ("the owner", claim.map(|claim| claim.owner.as_str())),
        ("the worker", claim.map(|claim| claim.worker.as_str())),
        ("the idempotency key", idempotency.map(|taken| taken.name.as_str())),
        ("the hash of the body", idempotency.map(|taken| taken.body_hash.as_str())),
    ])?;
    texts::check_events(events)
}

fn check_new(job: &NewJob) -> Result<()> {
    let NewJob {
        id,
        tenant,
        agent,
        task_id,
        spec,
        terms,
        created_at_ms: _,
        size: _,
        queue_deadline_ms: _,
        traceparent,
        webhook,
    } = job;
    texts::check([("the agent", agent.as_deref()), ("the terms", terms.as_deref())])?;
    texts::check([("the trace", traceparent.as_deref())])?;
    webhook.as_ref().map_or(Ok(()), webhooks::check)?;
    texts::check([
        ("the job's id", id.as_str()),
        ("the tenant", tenant),
        ("the task's id", task_id),
        ("the request", spec),
    ])
}

struct Accept {
    job: NewJob,
    claim: Option<Claim>,
    idempotency: Option<Idempotency>,
    events: Vec<AuditEvent>,
    most_queued: Option<i64>,
    kind: Kind,
}

impl crate::writer::Act<Accepted> for Accept {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Accepted>
    where
        Self: 'c,
    {
        let Self { job, claim, idempotency, mut events, most_queued, kind } = self;
        if let Some(name) = &idempotency {
            match idempotency::take(connection, &job.tenant, name, &job.id, job.created_at_ms).await? {
                Kept::New => {}
                Kept::Same { resource } => return Ok(Accepted::Before { id: resource }),
                Kept::Other => return Ok(Accepted::OtherBody),
            }
        }
        let claim = match claim {
            Some(claim)
                if may_run(connection, &claim, &job.tenant).await?
                    && has_room(connection, &claim, job.size).await? =>
            {
                Some(claim)
            }
            // Somebody else's job has the room: this one waits for the next.
            Some(_) => {
                events.retain(|event| event.kind != "job.running");
                None
            }
            None => None,
        };
        // Counted only for what waits: a job that starts at once costs nothing here.
        if let (None, Some(most)) = (&claim, most_queued) {
            let queued = tenants::count_queued(connection, &job.tenant).await?;
            if queued >= most {
                return Err(StoreError::QueueFull { queued, most });
            }
        }
        let (state, fence) = match claim {
            Some(_) => (JobState::Running, 1),
            None => (JobState::Queued, 0),
        };
        let started_at = claim.as_ref().map(|_| job.created_at_ms);
        let lease = claim.as_ref().map(|claim| claim.lease_ms);
        let (owner, worker) = claim.map(|claim| (claim.owner, claim.worker)).unzip();
        let now = kind.now_ms();
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "INSERT INTO jobs (id, tenant_id, agent, task_id, state, created_at_ms, transition_at_ms, spec, fence, \
             starts, owner, worker, lease_until_ms, cpus_millis, memory_bytes, queue_deadline_ms, started_at_ms, terms, \
             traceparent, has_webhook) \
             VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, $8, $9, $10, {now} + $11, $12, $13, $14, $15, $16, $17, $18)"
        )))
        .bind(job.id.as_str())
        .bind(job.tenant.as_str())
        .bind(job.agent)
        .bind(job.task_id)
        .bind(state.as_str())
        .bind(job.created_at_ms)
        .bind(job.spec)
        .bind(fence)
        .bind(owner)
        .bind(worker)
        .bind(lease)
        .bind(job.size.cpus_millis)
        .bind(job.size.memory_bytes)
        .bind(job.queue_deadline_ms)
        .bind(started_at)
        .bind(job.terms)
        .bind(job.traceparent)
        .bind(i64::from(job.webhook.is_some()))
        .execute(&mut *connection)
        .await?;
        if let Some(hook) = &job.webhook {
            webhooks::insert(connection, &job.tenant, &job.id, hook).await?;
            let now = job.created_at_ms;
            tell(connection, &job.id, "accepted", 0, JobState::Accepted, None, now).await?;
            if state == JobState::Running {
                tell(connection, &job.id, "running", fence, state, None, now).await?;
            }
        }
        audit::append(connection, &job.tenant, &events).await?;
        Ok(Accepted::New { fence: (fence > 0).then_some(fence) })
    }
}
