//! Workers in other processes: what they offer, when they were last heard of, and how much of each is taken.

use crate::jobs::{Claim, JobSize};
use crate::{Millis, Result, Store, StoreError, texts};
use sqlx::{AnyConnection, Row};

/// All that a worker has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerRoom {
    pub slots: i64,
    pub cpus_millis: i64,
    pub memory_bytes: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRecord {
    pub id: String,
    /// Where it is reached.
    pub url: String,
    /// A JSON object of texts.
    pub labels: String,
    /// Names, with a space between.
    pub backends: String,
    /// Digests of its images, with a space between; none where it does not say.
    pub images: Option<String>,
    pub room: WorkerRoom,
    pub is_draining: bool,
    /// Why it cannot make sandboxes; none where it can.
    pub problem: Option<String>,
    pub registered_at_ms: Millis,
    /// How long ago it was last heard of, by the database's clock.
    pub silent_ms: i64,
}

impl Store {
    /// Notes that a worker is there, and what it offers now. The times of the record are not looked at.
    pub async fn heartbeat(&self, worker: WorkerRecord) -> Result<()> {
        let WorkerRecord { id, url, labels, backends, images, problem, .. } = &worker;
        texts::check([("the worker's problem", problem.as_deref())])?;
        texts::check([("the worker's images", images.as_deref())])?;
        texts::check([
            ("the worker", id.as_str()),
            ("the worker's address", url),
            ("the worker's labels", labels),
            ("the worker's backends", backends),
        ])?;
        let now = self.engine.kind().now_ms();
        let text = format!(
            "INSERT INTO workers (id, url, labels, backends, slots, cpus_millis, memory_bytes, is_draining, \
             problem, images, registered_at_ms, heartbeat_at_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, {now}, {now}) \
             ON CONFLICT (id) DO UPDATE SET url = excluded.url, labels = excluded.labels, \
             backends = excluded.backends, slots = excluded.slots, cpus_millis = excluded.cpus_millis, \
             memory_bytes = excluded.memory_bytes, is_draining = excluded.is_draining, \
             problem = excluded.problem, images = excluded.images, \
             heartbeat_at_ms = excluded.heartbeat_at_ms"
        );
        self.writer.write(Heartbeat { worker, text }).await
    }

    /// Every worker that was heard of in the last `within_ms`, in the order of their ids.
    pub async fn workers(&self, within_ms: i64) -> Result<Vec<WorkerRecord>> {
        let now = self.engine.kind().now_ms();
        let text = format!(
            "SELECT id, url, labels, backends, slots, cpus_millis, memory_bytes, is_draining, registered_at_ms, \
             {now} - heartbeat_at_ms, problem, images FROM workers WHERE heartbeat_at_ms > {now} - $1 ORDER BY id"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(within_ms);
        self.engine.fetch_all(query).await?.iter().map(record).collect()
    }

    /// Removes workers that were not heard of for so long.
    pub async fn forget_workers(&self, silent_ms: i64) -> Result<()> {
        let now = self.engine.kind().now_ms();
        let text = format!("DELETE FROM workers WHERE heartbeat_at_ms < {now} - $1");
        self.writer.write(Forget { silent_ms, text }).await
    }
}

fn record(row: &sqlx::any::AnyRow) -> Result<WorkerRecord> {
    Ok(WorkerRecord {
        id: row.try_get(0)?,
        url: row.try_get(1)?,
        labels: row.try_get(2)?,
        backends: row.try_get(3)?,
        room: WorkerRoom {
            slots: row.try_get(4)?,
            cpus_millis: row.try_get(5)?,
            memory_bytes: row.try_get(6)?,
        },
        is_draining: row.try_get::<i64, _>(7)? != 0,
        registered_at_ms: row.try_get(8)?,
        silent_ms: row.try_get(9)?,
        problem: row.try_get(10)?,
        images: row.try_get(11)?,
    })
}

/// By jobs that run there, and by sessions.
pub(crate) fn taken() -> String {
    let sum = |what: &str| {
        let of = |table: &str, lives: &str| {
            format!("(SELECT CAST(COALESCE({what}, 0) AS BIGINT) FROM {table} WHERE {lives} AND worker = $1)")
        };
        format!(
            "{} + {}",
            of("jobs", "state = 'running'"),
            of("sessions", "state <> 'ended' AND COALESCE(pause_mode, '') <> 'archive'")
        )
    };
    format!("SELECT {}, {}, {}", sum("COUNT(*)"), sum("SUM(cpus_millis)"), sum("SUM(memory_bytes)"))
}

/// Whether what runs on a worker leaves room for a job. Writers wait for each other, so what is seen here is still
/// so when the claim is written.
pub(crate) async fn has_room(connection: &mut AnyConnection, claim: &Claim, size: JobSize) -> Result<bool> {
    let Some(room) = claim.room else { return Ok(true) };
    let row =
        sqlx::query(sqlx::AssertSqlSafe(taken())).bind(claim.worker.as_str()).fetch_one(connection).await?;
    let (jobs, cpus, memory): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    Ok(jobs < room.slots
        && cpus + size.cpus_millis <= room.cpus_millis
        && memory + size.memory_bytes <= room.memory_bytes)
}

/// Jobs that run, and sessions: each has a sandbox.
pub(crate) const RUNNING: &str = "SELECT (SELECT COUNT(*) FROM jobs WHERE state = 'running' \
    AND state IN ('accepted', 'queued', 'running') AND tenant_id || '' = $1) + \
    (SELECT COUNT(*) FROM sessions WHERE state <> 'ended' AND COALESCE(pause_mode, '') <> 'archive' \
    AND tenant_id = $1)";

/// Whether a tenant may have one more job that runs.
pub(crate) async fn may_run(connection: &mut AnyConnection, claim: &Claim, tenant: &str) -> Result<bool> {
    let Some(most) = claim.most_running else { return Ok(true) };
    let row = sqlx::query(RUNNING).bind(tenant).fetch_one(connection).await?;
    Ok(row.try_get::<i64, _>(0)? < most)
}

/// Whose a job is, and how large.
pub(crate) async fn size_of(connection: &mut AnyConnection, id: &str) -> Result<(String, JobSize)> {
    let row = sqlx::query("SELECT tenant_id, cpus_millis, memory_bytes FROM jobs WHERE id = $1")
        .bind(id)
        .fetch_optional(connection)
        .await?;
    let row = row.ok_or(StoreError::NotFound { what: "job" })?;
    let size = JobSize { cpus_millis: row.try_get(1)?, memory_bytes: row.try_get(2)? };
    Ok((row.try_get(0)?, size))
}

struct Heartbeat {
    worker: WorkerRecord,
    text: String,
}

impl crate::writer::Act<()> for Heartbeat {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let WorkerRecord { id, url, labels, backends, images, room, is_draining, problem, .. } = self.worker;
        // Whoever was at that address before has gone.
        sqlx::query("DELETE FROM workers WHERE url = $1 AND id <> $2")
            .bind(url.as_str())
            .bind(id.as_str())
            .execute(&mut *connection)
            .await?;
        sqlx::query(sqlx::AssertSqlSafe(self.text))
            .bind(id)
            .bind(url)
            .bind(labels)
            .bind(backends)
            .bind(room.slots)
            .bind(room.cpus_millis)
            .bind(room.memory_bytes)
            .bind(i64::from(is_draining))
            .bind(problem)
            .bind(images)
            .execute(connection)
            .await?;
        Ok(())
    }
}

struct Forget {
    silent_ms: i64,
    text: String,
}

impl crate::writer::Act<()> for Forget {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        sqlx::query(sqlx::AssertSqlSafe(self.text)).bind(self.silent_ms).execute(connection).await?;
        Ok(())
    }
}
