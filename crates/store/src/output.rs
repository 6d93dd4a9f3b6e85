//! What a job wrote, as events with numbers, so that whoever follows can go on where they were.

use crate::{Millis, Result, Store, StoreError, limit, texts};
use sqlx::{AnyConnection, Row};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// Another attempt begins; its number.
    Init,
    Stdout,
    Stderr,
    /// From here on bytes were dropped.
    Truncated,
    /// Something that code shows, as JSON.
    Display,
}

impl OutputKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Truncated => "truncated",
            Self::Display => "display",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Init, Self::Stdout, Self::Stderr, Self::Truncated, Self::Display]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputEvent {
    pub seq: i64,
    pub kind: OutputKind,
    pub at_ms: Millis,
    pub bytes: Vec<u8>,
}

/// How far the output of a job's last attempt has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputTail {
    pub last_seq: i64,
    pub stdout_bytes: i64,
    pub stderr_bytes: i64,
}

pub(crate) async fn append(
    connection: &mut AnyConnection,
    job: &str,
    events: Vec<OutputEvent>,
) -> Result<()> {
    for event in events {
        sqlx::query(
            "INSERT INTO output (job_id, seq, kind, at_ms, bytes) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (job_id, seq) DO NOTHING",
        )
        .bind(job)
        .bind(event.seq)
        .bind(event.kind.as_str())
        .bind(event.at_ms)
        .bind(event.bytes)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

pub(crate) const READ: &str =
    "SELECT seq, kind, at_ms, bytes FROM output WHERE job_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";

impl Store {
    /// Keeps some of a running job's output.
    pub async fn append_output(&self, job: String, fence: i64, events: Vec<OutputEvent>) -> Result<()> {
        texts::check([("the job's id", job.as_str())])?;
        self.writer.write(Append { job, fence, events }).await
    }

    /// A job's output after a number, in order.
    pub async fn output(&self, job: &str, after_seq: i64, limit: i64) -> Result<Vec<OutputEvent>> {
        limit::check(limit)?;
        let query = sqlx::query(READ).bind(job).bind(after_seq).bind(limit);
        self.engine.fetch_all(query).await?.iter().map(event).collect()
    }

    /// Where another attempt, or another owner of the same one, goes on.
    pub async fn output_tail(&self, job: &str) -> Result<OutputTail> {
        let query = sqlx::query(
            "SELECT COALESCE(MAX(seq), 0), \
             CAST(COALESCE(SUM(CASE WHEN kind = 'stdout' AND seq > began THEN LENGTH(bytes) ELSE 0 END), 0) AS BIGINT), \
             CAST(COALESCE(SUM(CASE WHEN kind = 'stderr' AND seq > began THEN LENGTH(bytes) ELSE 0 END), 0) AS BIGINT) \
             FROM output, (SELECT COALESCE(MAX(seq), 0) AS began FROM output WHERE job_id = $1 AND kind = 'init') AS last \
             WHERE job_id = $1",
        )
        .bind(job);
        let Some(row) = self.engine.fetch_optional(query).await? else { return Ok(OutputTail::default()) };
        Ok(OutputTail {
            last_seq: row.try_get(0)?,
            stdout_bytes: row.try_get(1)?,
            stderr_bytes: row.try_get(2)?,
        })
    }
}

fn event(row: &sqlx::any::AnyRow) -> Result<OutputEvent> {
    let name: String = row.try_get(1)?;
    let kind = OutputKind::from_name(&name);
    Ok(OutputEvent {
        seq: row.try_get(0)?,
        kind: kind.ok_or_else(|| StoreError::Unreadable(format!("output of kind {name:?}")))?,
        at_ms: row.try_get(2)?,
        bytes: row.try_get(3)?,
    })
}

struct Append {
    job: String,
    fence: i64,
    events: Vec<OutputEvent>,
}

impl crate::writer::Act<()> for Append {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        crate::jobs::check_fence(connection, &self.job, self.fence).await?;
        append(connection, &self.job, self.events).await
    }
}
