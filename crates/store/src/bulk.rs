//! A store as it would be after a long time, made in a short one: for those who measure. Its jobs have ended, and its
//! chain is as valid as any.

use crate::engine::{Engine, Kind};
use crate::{AuditEntry, Location, Millis, Patience, Result, Store, chain_hash, migrate};
use sqlx::{AnyConnection, Connection, Executor};
use std::fmt::Write;

/// How much there is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bulk {
    pub jobs: u64,
    pub events_for_each: u64,
    /// Of these the store has as many as this, whatever its size: jobs that were cancelled, with denials in their
    /// audit.
    pub rare_jobs: u64,
    /// When the last of them ended.
    pub until: Millis,
}

/// Between the beginnings of two jobs: a million in a month.
const STEP_MS: i64 = 2_500;

/// Jobs in one statement, and statements in one transaction.
const AT_ONCE: u64 = 100;
const STATEMENTS: u64 = 200;

/// Jobs that serve the same task.
pub const JOBS_OF_A_TASK: u64 = 20;

/// The id of a job, scattered over the index as ids are.
pub fn job_id(number: u64) -> String {
    // An odd multiplier is a permutation: no two numbers have the same id.
    let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("job-{scattered:016x}")
}

pub fn task_id(number: u64) -> String {
    format!("task-{}", number / JOBS_OF_A_TASK)
}

/// Whether a job is one of the few.
fn is_rare(bulk: Bulk, number: u64) -> bool {
    number.is_multiple_of((bulk.jobs / bulk.rare_jobs.max(1)).max(1))
}

/// When a job began.
pub fn begin_ms(bulk: Bulk, number: u64) -> Millis {
    bulk.until - (bulk.jobs - number) as i64 * STEP_MS
}

/// Fills an empty store of one tenant. `progress` hears how many jobs there are.
pub async fn fill(
    location: &Location,
    tenant: &str,
    bulk: Bulk,
    mut progress: impl FnMut(u64),
) -> Result<()> {
    let store = Store::open(location).await?;
    store.ensure_tenant(tenant.to_owned(), tenant.to_owned(), 1).await?;
    store.close().await;
    let engine = Engine::open(location, Patience::default()).await?;
    let mut connection = engine.connect().await?;
    connection.execute(hurry(engine.kind())).await?;
    let indexes = migrate::indexes();
    // All at once at the end is several times quicker than one by one.
    for (name, _) in &indexes {
        connection.execute(sqlx::AssertSqlSafe(format!("DROP INDEX {name}"))).await?;
    }
    let mut chain = Chain { tenant, seq: 0, hash: String::new() };
    let mut number = 0;
    while number < bulk.jobs {
        connection.execute(engine.kind().begin()).await?;
        for _ in 0..STATEMENTS {
            let end = bulk.jobs.min(number + AT_ONCE);
            if number == end {
                break;
            }
            write(&mut connection, &mut chain, bulk, engine.kind().bytes_type(), number..end).await?;
            number = end;
        }
        connection.execute("COMMIT").await?;
        progress(number);
    }
    sqlx::query("INSERT INTO audit_heads (tenant_id, seq, hash) VALUES ($1, $2, $3)")
        .bind(tenant)
        .bind(chain.seq)
        .bind(chain.hash)
        .execute(&mut connection)
        .await?;
    for (_, text) in &indexes {
        connection.execute(sqlx::AssertSqlSafe(text.clone())).await?;
    }
    connection.execute(settle(engine.kind())).await?;
    connection.close().await?;
    engine.close().await;
    Ok(())
}

/// Nobody relies on what is half made.
fn hurry(kind: Kind) -> &'static str {
    match kind {
        Kind::Sqlite => "PRAGMA synchronous = OFF; PRAGMA cache_size = -262144",
        Kind::Postgres => "SET synchronous_commit = off; SET maintenance_work_mem = '512MB'",
    }
}

/// As it would be after a while: on the disk, and known to the planner.
fn settle(kind: Kind) -> &'static str {
    match kind {
        Kind::Sqlite => "PRAGMA wal_checkpoint(TRUNCATE)",
        Kind::Postgres => "VACUUM ANALYZE",
    }
}

struct Chain<'t> {
    tenant: &'t str,
    seq: i64,
    hash: String,
}

async fn write(
    connection: &mut AnyConnection,
    chain: &mut Chain<'_>,
    bulk: Bulk,
    bytes: &str,
    numbers: std::ops::Range<u64>,
) -> Result<()> {
    let mut jobs =
        "INSERT INTO jobs (id, tenant_id, task_id, state, reason, created_at_ms, transition_at_ms, spec, \
                    result, fence, starts, worker) VALUES "
            .to_owned();
    let mut output = "INSERT INTO output (job_id, seq, kind, at_ms, bytes) VALUES ".to_owned();
    let mut audit =
        "INSERT INTO audit (tenant_id, seq, at_ms, kind, actor, resource, details, hash) VALUES ".to_owned();
    let first = numbers.start;
    for number in numbers {
        let comma = if number == first { "" } else { ", " };
        let (id, task, begin) = (job_id(number), task_id(number), begin_ms(bulk, number));
        let state = match number % 10 {
            _ if is_rare(bulk, number) => "cancelled",
            1 => "failed",
            _ => "succeeded",
        };
        // Nothing here has a quote in it, and all of it is ours.
        let _ = write!(
            jobs,
            "{comma}('{id}', '{}', '{task}', '{state}', 'exited', {begin}, {}, \
             '{{\"language\":\"python\",\"code\":\"print({number})\",\"metadata\":{{}}}}', \
             '{{\"exit_code\":0,\"outcome\":{{\"kind\":\"exited\",\"code\":0}}}}', 1, 1, 'wrk-bulk')",
            chain.tenant,
            begin + 40
        );
        let _ = write!(output, "{comma}('{id}', 1, 'stdout', {begin}, CAST('{number}' AS {bytes}))");
        for event in 0..bulk.events_for_each {
            let comma = if number == first && event == 0 { "" } else { ", " };
            let kind = match event {
                0 => "job.accepted",
                1 => "job.running",
                2 => "job.finished",
                _ if is_rare(bulk, number) => "denied",
                _ => "artifact.read",
            };
            let actor = if event == 2 { "system".to_owned() } else { format!("key-{}", number % 50) };
            let _ = write!(audit, "{comma}{}", chain.next(&id, kind, actor, begin + event as i64));
        }
    }
    for text in [jobs, output, audit] {
        connection.execute(sqlx::AssertSqlSafe(text)).await?;
    }
    Ok(())
}

impl Chain<'_> {
    fn next(&mut self, job: &str, kind: &str, actor: String, at_ms: Millis) -> String {
        self.seq += 1;
        let mut entry = AuditEntry {
            seq: self.seq,
            at_ms,
            kind: kind.to_owned(),
            actor,
            resource: job.to_owned(),
            details: "{}".to_owned(),
            hash: String::new(),
        };
        entry.hash = chain_hash(&self.hash, self.tenant, &entry);
        self.hash.clone_from(&entry.hash);
        format!(
            "('{}', {}, {}, '{}', '{}', '{}', '{}', '{}')",
            self.tenant,
            entry.seq,
            entry.at_ms,
            entry.kind,
            entry.actor,
            entry.resource,
            entry.details,
            entry.hash
        )
    }
}
