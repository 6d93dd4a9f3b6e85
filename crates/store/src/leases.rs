//! Leases: for how long the owner of a running job is believed, who takes it over afterwards, and what becomes of a
//! job that nobody answers for. Times are the database's. Every change names the fence that it starts from, and gives
//! another one to whoever comes next: what the one before still tries to write is refused.

use crate::engine::Kind;
use crate::jobs::{COLUMN_COUNT, COLUMNS, JobRecord, record, tell, why};
use crate::{
    AuditEvent, Millis, OutputEvent, OutputKind, Result, Store, StoreError, audit, limit, output, texts,
};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

/// A worker that did not take a job may be offered it again a moment later, not at once.
const UNSTARTED_WAIT_MS: i64 = 200;

/// A running job whose owner has not renewed its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abandoned {
    pub job: JobRecord,
    /// How long the lease is over.
    pub over_ms: i64,
}

/// What becomes of a job whose run is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Lost,
    /// It waits for another attempt, for at least so long.
    Again {
        wait_ms: i64,
    },
    /// It waits, and the attempt does not count: nothing of it was started.
    Unstarted,
}

/// A run that is given up.
#[derive(Debug, Clone)]
pub struct GivenUp {
    pub id: String,
    pub tenant: String,
    pub fence: i64,
    /// The lease as the caller saw it, where the caller is not its owner: a renewal meanwhile counts more.
    pub seen_lease_ms: Option<Millis>,
    pub next: Next,
    pub reason: String,
    pub message: String,
    pub at_ms: Millis,
}

impl Store {
    /// Renews the leases of running jobs, each named with its fence, and returns those that are not the caller's any
    /// more.
    pub async fn renew(&self, jobs: Vec<(String, i64)>, lease_ms: i64) -> Result<Vec<String>> {
        texts::check(jobs.iter().map(|(id, _)| ("the job's id", id.as_str())))?;
        self.writer.write(Renew { jobs, lease_ms, kind: self.engine.kind() }).await
    }

    /// Running jobs whose lease is over, the longest over first.
    pub async fn abandoned(&self, limit: i64) -> Result<Vec<Abandoned>> {
        limit::check(limit)?;
        let query = sqlx::query(sqlx::AssertSqlSafe(abandoned(self.engine.kind()))).bind(limit);
        let rows = self.engine.fetch_all(query).await?;
        let read = |row| Ok(Abandoned { job: record(row)?, over_ms: row.try_get(COLUMN_COUNT)? });
        rows.iter().map(read).collect()
    }

    /// Ends the leases of all owners whose name begins so, but for one. For a process that knows that those before it
    /// are gone.
    pub async fn end_leases(&self, prefix: String, but: String) -> Result<()> {
        texts::check([("the owner", prefix.as_str()), ("the owner", &but)])?;
        self.writer.write(EndLeases { prefix, but }).await
    }

    /// Makes another process the owner of a running job whose lease is over. Returns the new fence.
    pub async fn adopt(&self, abandoned: &JobRecord, owner: String, lease_ms: i64) -> Result<i64> {
        texts::check([("the owner", owner.as_str())])?;
        let (id, fence) = (abandoned.id.clone(), abandoned.fence);
        let seen_ms = abandoned.lease_until_ms;
        self.writer.write(Adopt { id, fence, seen_ms, owner, lease_ms, kind: self.engine.kind() }).await
    }

    /// Gives a run up, with the last of its output.
    pub async fn give_up(&self, run: GivenUp, output: Vec<OutputEvent>, event: AuditEvent) -> Result<()> {
        let GivenUp { id, tenant, reason, message, .. } = &run;
        texts::check([
            ("the job's id", id.as_str()),
            ("the tenant", tenant),
            ("the reason", reason),
            ("the message", message),
        ])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(GiveUp { run, output, event, kind: self.engine.kind() }).await
    }

    /// Jobs of an owner that somebody wants ended, and who.
    pub async fn cancelled_of(&self, owner: &str) -> Result<Vec<(String, String)>> {
        let query = sqlx::query(CANCELLED).bind(owner);
        self.engine.fetch_all(query).await?.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Ends the jobs that have waited in the queue for longer than they may. Returns their ids.
    pub async fn expire_queued(&self, now: Millis) -> Result<Vec<String>> {
        // Nobody has to wait for a writer that has nothing to write.
        if self.engine.fetch_optional(sqlx::query(DUE).bind(now)).await?.is_none() {
            return Ok(Vec::new());
        }
        self.writer.write(Expire { now }).await
    }
}

pub(crate) fn abandoned(kind: Kind) -> String {
    let now = kind.now_ms();
    format!(
        "SELECT {COLUMNS}, {now} - lease_until_ms FROM jobs WHERE state = 'running' AND lease_until_ms < {now} \
         ORDER BY lease_until_ms LIMIT $1"
    )
}

/// The states twice: once as they are wanted, and once in the words of the index of unfinished jobs.
pub(crate) const CANCELLED: &str = "SELECT id, cancelled_by FROM jobs WHERE state = 'running' \
    AND state IN ('accepted', 'queued', 'running') AND owner = $1 AND cancelled_by IS NOT NULL";

pub(crate) const DUE: &str = "SELECT 1 FROM jobs WHERE state = 'queued' AND queue_deadline_ms <= $1 LIMIT 1";

struct Renew {
    jobs: Vec<(String, i64)>,
    lease_ms: i64,
    kind: Kind,
}

impl crate::writer::Act<Vec<String>> for Renew {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Vec<String>>
    where
        Self: 'c,
    {
        let text = format!(
            "UPDATE jobs SET lease_until_ms = {} + $1 WHERE id = $2 AND fence = $3 AND state = 'running'",
            self.kind.now_ms()
        );
        let mut refused = Vec::new();
        for (id, fence) in self.jobs {
            let done = sqlx::query(sqlx::AssertSqlSafe(text.clone()))
                .bind(self.lease_ms)
                .bind(id.as_str())
                .bind(fence)
                .execute(&mut *connection)
                .await?;
            if done.rows_affected() == 0 {
                refused.push(id);
            }
        }
        Ok(refused)
    }
}

struct EndLeases {
    prefix: String,
    but: String,
}

impl crate::writer::Act<()> for EndLeases {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        sqlx::query(
            "UPDATE jobs SET lease_until_ms = 0 WHERE state = 'running' AND SUBSTR(owner, 1, LENGTH($1)) = $1 \
             AND owner <> $2",
        )
        .bind(self.prefix)
        .bind(self.but)
        .execute(connection)
        .await?;
        Ok(())
    }
}

struct Adopt {
    id: String,
    fence: i64,
    seen_ms: Option<Millis>,
    owner: String,
    lease_ms: i64,
    kind: Kind,
}

impl crate::writer::Act<i64> for Adopt {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<i64>
    where
        Self: 'c,
    {
        let now = self.kind.now_ms();
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE jobs SET fence = fence + 1, owner = $1, lease_until_ms = {now} + $2 WHERE id = $3 AND fence = $4 \
             AND lease_until_ms = $5 AND lease_until_ms < {now} AND state = 'running' RETURNING fence"
        )))
        .bind(self.owner)
        .bind(self.lease_ms)
        .bind(self.id.as_str())
        .bind(self.fence)
        .bind(self.seen_ms)
        .fetch_optional(&mut *connection)
        .await?;
        match row {
            Some(row) => Ok(row.try_get(0)?),
            None => Err(not_ours(why(connection, &self.id, Some(self.fence), JobState::Running).await)),
        }
    }
}

/// A job that still runs under the same fence was renewed: it is its owner's.
fn not_ours(error: StoreError) -> StoreError {
    match error {
        StoreError::WrongState { state: JobState::Running, .. } => StoreError::Fenced,
        other => other,
    }
}

struct GiveUp {
    run: GivenUp,
    output: Vec<OutputEvent>,
    event: AuditEvent,
    kind: Kind,
}

impl crate::writer::Act<()> for GiveUp {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let GivenUp { id, tenant, fence, seen_lease_ms, next, reason, message, at_ms } = self.run;
        let (state, wait_ms, uncounted) = match next {
            Next::Lost => (JobState::Lost, None, 0),
            Next::Again { wait_ms } => (JobState::Queued, Some(wait_ms), 0),
            Next::Unstarted => (JobState::Queued, Some(UNSTARTED_WAIT_MS), 1),
        };
        let now = self.kind.now_ms();
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE jobs SET state = $1, reason = $2, message = $3, transition_at_ms = $4, lease_until_ms = NULL, \
             owner = NULL, not_before_ms = {now} + $5, starts = starts - $6 WHERE id = $7 AND fence = $8 \
             AND tenant_id = $9 AND state = 'running' AND ($10 < 0 OR lease_until_ms = $10) RETURNING starts, has_webhook"
        )))
        .bind(state.as_str())
        .bind(reason)
        .bind(message)
        .bind(at_ms)
        .bind(wait_ms)
        .bind(uncounted)
        .bind(id.as_str())
        .bind(fence)
        .bind(tenant.as_str())
        .bind(seen_lease_ms.unwrap_or(-1))
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Err(not_ours(why(connection, &id, Some(fence), state).await)) };
        let starts: i64 = row.try_get(0)?;
        // What is tried again has not ended, and whoever waits for the end is not told yet.
        if state.is_final() && row.try_get::<i64, _>(1)? != 0 {
            tell(connection, &id, "finished", starts, state, None, at_ms).await?;
        }
        output::append(connection, &id, self.output).await?;
        if matches!(next, Next::Again { .. }) {
            mark_attempt(connection, &id, starts + 1, at_ms).await?;
        }
        audit::append(connection, &tenant, &[self.event]).await
    }
}

/// Tells followers that what comes now is of another attempt.
async fn mark_attempt(connection: &mut AnyConnection, id: &str, attempt: i64, at_ms: Millis) -> Result<()> {
    let row = sqlx::query("SELECT COALESCE(MAX(seq), 0) FROM output WHERE job_id = $1")
        .bind(id)
        .fetch_one(&mut *connection)
        .await?;
    let seq = row.try_get::<i64, _>(0)? + 1;
    let mark = OutputEvent { seq, kind: OutputKind::Init, at_ms, bytes: attempt.to_string().into_bytes() };
    output::append(connection, id, vec![mark]).await
}

struct Expire {
    now: Millis,
}

impl crate::writer::Act<Vec<String>> for Expire {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Vec<String>>
    where
        Self: 'c,
    {
        let rows = sqlx::query(
            "UPDATE jobs SET state = 'expired', reason = 'expired', transition_at_ms = $1, \
             message = 'it waited in the queue for longer than queue_timeout_ms' \
             WHERE state = 'queued' AND queue_deadline_ms <= $1 RETURNING id, tenant_id, starts, has_webhook",
        )
        .bind(self.now)
        .fetch_all(&mut *connection)
        .await?;
        let mut expired = Vec::with_capacity(rows.len());
        for row in rows {
            let (id, tenant): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            if row.try_get::<i64, _>(3)? != 0 {
                tell(connection, &id, "finished", row.try_get(2)?, JobState::Expired, None, self.now).await?;
            }
            let event = AuditEvent {
                at_ms: self.now,
                kind: "job.finished",
                actor: "system".to_owned(),
                resource: id.clone(),
                details: serde_json::json!({"state": "expired"}),
            };
            audit::append(connection, &tenant, &[event]).await?;
            expired.push(id);
        }
        Ok(expired)
    }
}
