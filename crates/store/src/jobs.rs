//! Jobs. Every change of state is guarded by the state and the fence that it starts from, so it is written once,
//! whoever else tries.

use crate::engine::Kind;
use crate::workers::{WorkerRoom, has_room};
use crate::{AuditEvent, Idempotency, Kept, Millis, OutputEvent, Result, Store, StoreError};
use crate::{audit, idempotency, output, texts, workers};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

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
}

/// What a job takes of a worker while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobSize {
    pub cpus_millis: i64,
    pub memory_bytes: i64,
}

/// Who runs a job, and for how long that is believed without another word.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The process that answers for the job: it renews the lease and writes the end.
    pub owner: String,
    /// Where it runs.
    pub worker: String,
    pub lease_ms: i64,
    /// What the worker has in all, where several processes give it work: then the store sees to it that they do not
    /// give it more.
    pub room: Option<WorkerRoom>,
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

/// How a claimed job ended.
#[derive(Debug, Clone)]
pub struct Finish {
    pub id: String,
    pub tenant: String,
    pub fence: i64,
    pub state: JobState,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub result: Option<String>,
    pub at_ms: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    pub id: String,
    pub tenant: String,
    pub agent: Option<String>,
    pub task_id: String,
    pub state: JobState,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub created_at_ms: Millis,
    pub transition_at_ms: Millis,
    pub spec: String,
    pub result: Option<String>,
    pub fence: i64,
    pub starts: i64,
    pub worker: Option<String>,
    pub cancelled_by: Option<String>,
    /// Of the last start; none if it never ran.
    pub started_at_ms: Option<Millis>,
    pub terms: Option<String>,
    pub owner: Option<String>,
    pub lease_until_ms: Option<Millis>,
}

pub(crate) const COLUMNS: &str = "id, tenant_id, agent, task_id, state, reason, message, created_at_ms, \
                       transition_at_ms, spec, result, fence, starts, worker, cancelled_by, started_at_ms, terms, \
                       owner, lease_until_ms";

pub(crate) fn record(row: &sqlx::any::AnyRow) -> Result<JobRecord> {
    Ok(JobRecord {
        id: row.try_get(0)?,
        tenant: row.try_get(1)?,
        agent: row.try_get(2)?,
        task_id: row.try_get(3)?,
        state: state(row.try_get(4)?)?,
        reason: row.try_get(5)?,
        message: row.try_get(6)?,
        created_at_ms: row.try_get(7)?,
        transition_at_ms: row.try_get(8)?,
        spec: row.try_get(9)?,
        result: row.try_get(10)?,
        fence: row.try_get(11)?,
        starts: row.try_get(12)?,
        worker: row.try_get(13)?,
        cancelled_by: row.try_get(14)?,
        started_at_ms: row.try_get(15)?,
        terms: row.try_get(16)?,
        owner: row.try_get(17)?,
        lease_until_ms: row.try_get(18)?,
    })
}

fn state(name: String) -> Result<JobState> {
    JobState::from_name(&name).ok_or_else(|| StoreError::Unreadable(format!("a job that is {name:?}")))
}

/// Which jobs of a tenant to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub state: Option<JobState>,
    pub task_id: Option<String>,
    pub limit: i64,
    /// Where the page before ended.
    pub before: Option<Page>,
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub created_at_ms: Millis,
    pub id: String,
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
        check_new(&job)?;
        texts::check([
            ("the owner", claim.as_ref().map(|claim| claim.owner.as_str())),
            ("the worker", claim.as_ref().map(|claim| claim.worker.as_str())),
            ("the idempotency key", idempotency.as_ref().map(|taken| taken.name.as_str())),
            ("the hash of the body", idempotency.as_ref().map(|taken| taken.body_hash.as_str())),
        ])?;
        texts::check_events(&events)?;
        self.writer.write(Accept { job, claim, idempotency, events, kind: self.engine.kind() }).await
    }

    /// Gives a queued job to a worker; the fence is what the worker will show for it.
    pub async fn claim(&self, id: String, claim: Claim, event: AuditEvent) -> Result<i64> {
        texts::check([
            ("the job's id", id.as_str()),
            ("the owner", &claim.owner),
            ("the worker", &claim.worker),
        ])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(ClaimQueued { id, claim, event, kind: self.engine.kind() }).await
    }

    /// Writes how a job ended, with the last of its output.
    pub async fn finish(&self, end: Finish, output: Vec<OutputEvent>, event: AuditEvent) -> Result<()> {
        check_finish(&end)?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(FinishClaimed { end, output, event }).await
    }

    /// Cancels a job that has not started; a running one is only marked. Returns the state that it is in now.
    pub async fn cancel(
        &self,
        tenant: String,
        id: String,
        by: String,
        event: AuditEvent,
    ) -> Result<JobState> {
        texts::check([("the tenant", tenant.as_str()), ("the job's id", &id), ("who cancels", &by)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Cancel { tenant, id, by, event }).await
    }

    /// Removes a finished job and its output.
    pub async fn delete_job(&self, tenant: String, id: String, event: AuditEvent) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the job's id", &id)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Delete { tenant, id, event }).await
    }

    pub async fn job(&self, tenant: &str, id: &str) -> Result<Option<JobRecord>> {
        let text = format!("SELECT {COLUMNS} FROM jobs WHERE id = $1 AND tenant_id = $2");
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(id).bind(tenant);
        query.fetch_optional(self.engine.readers()).await?.as_ref().map(record).transpose()
    }

    pub async fn jobs(&self, tenant: &str, filter: &JobFilter) -> Result<Vec<JobRecord>> {
        let page = filter.before.clone().unwrap_or(Page { created_at_ms: i64::MAX, id: String::new() });
        let text = format!(
            "SELECT {COLUMNS} FROM jobs WHERE tenant_id = $1 AND ($2 = '' OR state = $2) \
             AND ($3 = '' OR task_id = $3) AND (created_at_ms < $4 OR (created_at_ms = $4 AND id < $5)) \
             ORDER BY created_at_ms DESC, id DESC LIMIT $6"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(text))
            .bind(tenant)
            .bind(filter.state.map_or("", JobState::as_str))
            .bind(filter.task_id.as_deref().unwrap_or(""))
            .bind(page.created_at_ms)
            .bind(page.id)
            .bind(filter.limit)
            .fetch_all(self.engine.readers())
            .await?;
        rows.iter().map(record).collect()
    }

    /// Jobs that wait for a worker and for nothing else, oldest first.
    pub async fn queued(&self, limit: i64) -> Result<Vec<JobRecord>> {
        let now = self.engine.kind().now_ms();
        let text = format!(
            "SELECT {COLUMNS} FROM jobs WHERE state = 'queued' AND (not_before_ms IS NULL OR not_before_ms <= {now}) \
             ORDER BY created_at_ms, id LIMIT $1"
        );
        let rows =
            sqlx::query(sqlx::AssertSqlSafe(text)).bind(limit).fetch_all(self.engine.readers()).await?;
        rows.iter().map(record).collect()
    }
}

fn check_new(job: &NewJob) -> Result<()> {
    let NewJob { id, tenant, agent, task_id, spec, terms, created_at_ms: _, size: _, queue_deadline_ms: _ } =
        job;
    texts::check([("the agent", agent.as_deref()), ("the terms", terms.as_deref())])?;
    texts::check([
        ("the job's id", id.as_str()),
        ("the tenant", tenant),
        ("the task's id", task_id),
        ("the request", spec),
    ])
}

fn check_finish(end: &Finish) -> Result<()> {
    let Finish { id, tenant, fence: _, state: _, reason, message, result, at_ms: _ } = end;
    texts::check([("the job's id", id.as_str()), ("the tenant", tenant)])?;
    texts::check([
        ("the reason", reason.as_deref()),
        ("the message", message.as_deref()),
        ("the result", result.as_deref()),
    ])
}

struct Accept {
    job: NewJob,
    claim: Option<Claim>,
    idempotency: Option<Idempotency>,
    events: Vec<AuditEvent>,
    kind: Kind,
}

impl crate::writer::Act<Accepted> for Accept {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Accepted>
    where
        Self: 'c,
    {
        let Self { job, claim, idempotency, mut events, kind } = self;
        if let Some(name) = &idempotency {
            match idempotency::take(connection, &job.tenant, name, &job.id, job.created_at_ms).await? {
                Kept::New => {}
                Kept::Same { resource } => return Ok(Accepted::Before { id: resource }),
                Kept::Other => return Ok(Accepted::OtherBody),
            }
        }
        let claim = match claim {
            // Somebody else's job has the room: this one waits for the next.
            Some(claim) if !has_room(connection, &claim, job.size).await? => {
                events.retain(|event| event.kind != "job.running");
                None
            }
            claim => claim,
        };
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
             starts, owner, worker, lease_until_ms, cpus_millis, memory_bytes, queue_deadline_ms, started_at_ms, terms) \
             VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, $8, $9, $10, {now} + $11, $12, $13, $14, $15, $16)"
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
        .execute(&mut *connection)
        .await?;
        audit::append(connection, &job.tenant, &events).await?;
        Ok(Accepted::New { fence: (fence > 0).then_some(fence) })
    }
}

/// Why a guarded change changed nothing.
pub(crate) async fn why(
    connection: &mut AnyConnection,
    id: &str,
    fence: Option<i64>,
    wanted: JobState,
) -> StoreError {
    let row =
        sqlx::query("SELECT state, fence FROM jobs WHERE id = $1").bind(id).fetch_optional(connection).await;
    let read =
        |row: sqlx::any::AnyRow| Ok::<_, StoreError>((state(row.try_get(0)?)?, row.try_get::<i64, _>(1)?));
    match row.map(|row| row.map(read)) {
        Ok(None) => StoreError::NotFound { what: "job" },
        Ok(Some(Ok((_, last)))) if fence.is_some_and(|fence| fence != last) => StoreError::Fenced,
        Ok(Some(Ok((state, _)))) => StoreError::WrongState { state, wanted },
        Ok(Some(Err(error))) => error,
        Err(error) => error.into(),
    }
}

/// Whether a claim is the last one, and its job still runs.
pub(crate) async fn check_fence(connection: &mut AnyConnection, id: &str, fence: i64) -> Result<()> {
    let row = sqlx::query("SELECT 1 FROM jobs WHERE id = $1 AND fence = $2 AND state = 'running'")
        .bind(id)
        .bind(fence)
        .fetch_optional(&mut *connection)
        .await?;
    match row {
        Some(_) => Ok(()),
        None => Err(why(connection, id, Some(fence), JobState::Running).await),
    }
}

struct ClaimQueued {
    id: String,
    claim: Claim,
    event: AuditEvent,
    kind: Kind,
}

impl crate::writer::Act<i64> for ClaimQueued {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<i64>
    where
        Self: 'c,
    {
        if self.claim.room.is_some() {
            let size = workers::size_of(connection, &self.id).await?;
            if !has_room(connection, &self.claim, size).await? {
                return Err(StoreError::Full { worker: self.claim.worker });
            }
        }
        let now = self.kind.now_ms();
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE jobs SET state = 'running', fence = fence + 1, starts = starts + 1, owner = $1, worker = $2, \
             lease_until_ms = {now} + $3, transition_at_ms = $4, started_at_ms = $4, not_before_ms = NULL, reason = NULL, message = NULL \
             WHERE id = $5 AND state = 'queued' RETURNING fence, tenant_id"
        )))
        .bind(self.claim.owner)
        .bind(self.claim.worker)
        .bind(self.claim.lease_ms)
        .bind(self.event.at_ms)
        .bind(self.id.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Err(why(connection, &self.id, None, JobState::Running).await) };
        let (fence, tenant): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        audit::append(connection, &tenant, &[self.event]).await?;
        Ok(fence)
    }
}

struct FinishClaimed {
    end: Finish,
    output: Vec<OutputEvent>,
    event: AuditEvent,
}

impl crate::writer::Act<()> for FinishClaimed {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Finish { id, tenant, fence, state, reason, message, result, at_ms } = self.end;
        if !state.is_final() {
            return Err(why(connection, &id, Some(fence), state).await);
        }
        let done = sqlx::query(
            "UPDATE jobs SET state = $1, reason = $2, message = $3, result = $4, transition_at_ms = $5, \
             lease_until_ms = NULL WHERE id = $6 AND fence = $7 AND state = 'running' AND tenant_id = $8",
        )
        .bind(state.as_str())
        .bind(reason)
        .bind(message)
        .bind(result)
        .bind(at_ms)
        .bind(id.as_str())
        .bind(fence)
        .bind(tenant.as_str())
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            // Another tenant's is not found, whatever it is.
            current(connection, &tenant, &id).await?;
            return Err(why(connection, &id, Some(fence), state).await);
        }
        output::append(connection, &id, self.output).await?;
        audit::append(connection, &tenant, &[self.event]).await
    }
}

struct Cancel {
    tenant: String,
    id: String,
    by: String,
    event: AuditEvent,
}

impl crate::writer::Act<JobState> for Cancel {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<JobState>
    where
        Self: 'c,
    {
        let Self { tenant, id, by, event } = self;
        let row = sqlx::query(
            "UPDATE jobs SET cancelled_by = $1, transition_at_ms = CASE WHEN state = 'running' THEN \
             transition_at_ms ELSE $2 END, state = CASE WHEN state = 'running' THEN 'running' ELSE 'cancelled' END, \
             reason = CASE WHEN state = 'running' THEN reason ELSE 'cancelled' END \
             WHERE id = $3 AND tenant_id = $4 AND state IN ('accepted', 'queued', 'running') RETURNING state",
        )
        .bind(by)
        .bind(event.at_ms)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return current(connection, &tenant, &id).await };
        audit::append(connection, &tenant, &[event]).await?;
        state(row.try_get(0)?)
    }
}

async fn current(connection: &mut AnyConnection, tenant: &str, id: &str) -> Result<JobState> {
    let row = sqlx::query("SELECT state FROM jobs WHERE id = $1 AND tenant_id = $2")
        .bind(id)
        .bind(tenant)
        .fetch_optional(connection)
        .await?;
    state(row.ok_or(StoreError::NotFound { what: "job" })?.try_get(0)?)
}

struct Delete {
    tenant: String,
    id: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Delete {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Self { tenant, id, event } = self;
        let state = current(connection, &tenant, &id).await?;
        if !state.is_final() {
            return Err(StoreError::WrongState { state, wanted: state });
        }
        for text in ["DELETE FROM output WHERE job_id = $1", "DELETE FROM jobs WHERE id = $1"] {
            sqlx::query(text).bind(id.as_str()).execute(&mut *connection).await?;
        }
        audit::append(connection, &tenant, &[event]).await
    }
}
