//! Who wants to hear of a job, and what is still to be told. A delivery is written together with what it tells of,
//! so that none is forgotten, and has the time of its next attempt in it, so that a restart changes nothing.

use crate::{AuditEvent, Millis, Result, Store, audit, texts};
use cofferdam_core::encode_id;
use sqlx::{AnyConnection, Row};

/// Where to tell of a job, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhook {
    pub url: String,
    /// What its messages are signed with. It is never shown again.
    pub secret: String,
    /// Among `accepted`, `running` and `finished`, with spaces between.
    pub events: String,
}

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub event_id: String,
    pub tenant: String,
    pub job: String,
    pub url: String,
    pub secret: String,
    /// What happened, as JSON.
    pub facts: String,
    /// How often it was tried.
    pub attempts: i64,
    pub created_at_ms: Millis,
    /// `waiting`, `delivered` or `given_up`.
    pub state: String,
    pub next_at_ms: Millis,
    pub last_error: Option<String>,
}

const COLUMNS: &str = "event_id, tenant_id, job_id, url, secret, body, attempts, created_at_ms, state, next_at_ms, \
                       last_error";

fn delivery(row: &sqlx::any::AnyRow) -> sqlx::Result<Delivery> {
    Ok(Delivery {
        event_id: row.try_get(0)?,
        tenant: row.try_get(1)?,
        job: row.try_get(2)?,
        url: row.try_get(3)?,
        secret: row.try_get(4)?,
        facts: row.try_get(5)?,
        attempts: row.try_get(6)?,
        created_at_ms: row.try_get(7)?,
        state: row.try_get(8)?,
        next_at_ms: row.try_get(9)?,
        last_error: row.try_get(10)?,
    })
}

pub(crate) fn check(hook: &NewWebhook) -> Result<()> {
    let NewWebhook { url, secret, events } = hook;
    texts::check([
        ("the webhook's url", url.as_str()),
        ("the webhook's secret", secret),
        ("its events", events),
    ])
}

/// Keeps a job's webhook, inside the transaction that keeps the job.
pub(crate) async fn insert(
    connection: &mut AnyConnection,
    tenant: &str,
    job: &str,
    hook: &NewWebhook,
) -> Result<()> {
    sqlx::query("INSERT INTO webhooks (job_id, tenant_id, url, secret, events) VALUES ($1, $2, $3, $4, $5)")
        .bind(job)
        .bind(tenant)
        .bind(hook.url.as_str())
        .bind(hook.secret.as_str())
        .bind(hook.events.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

/// Notes that a job's webhook is to hear of something, if it wants to, inside the transaction in which that happens.
/// The same event of the same attempt has the same id, however often it is noted.
pub(crate) async fn note(
    connection: &mut AnyConnection,
    job: &str,
    event: &'static str,
    attempt: i64,
    facts: &serde_json::Value,
    now: Millis,
) -> Result<()> {
    let hash = blake3::hash(format!("{job} {attempt} {event}").as_bytes());
    let mut bytes = [0; 10];
    bytes.copy_from_slice(&hash.as_bytes()[..10]);
    sqlx::query(
        "INSERT INTO webhook_deliveries (event_id, tenant_id, job_id, url, secret, body, state, attempts, \
         next_at_ms, created_at_ms) SELECT $1, tenant_id, job_id, url, secret, $2, 'waiting', 0, $3, $3 \
         FROM webhooks WHERE job_id = $4 AND ' ' || events || ' ' LIKE $5 ON CONFLICT (event_id) DO NOTHING",
    )
    .bind(encode_id("evt", bytes))
    .bind(facts.to_string())
    .bind(now)
    .bind(job)
    .bind(format!("% {event} %"))
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) fn due() -> String {
    format!(
        "SELECT {COLUMNS} FROM webhook_deliveries WHERE state = 'waiting' AND next_at_ms <= $1 \
         ORDER BY next_at_ms LIMIT $2"
    )
}

pub(crate) fn of_job() -> String {
    format!(
        "SELECT {COLUMNS} FROM webhook_deliveries WHERE tenant_id = $1 AND job_id = $2 \
         ORDER BY created_at_ms, event_id"
    )
}

pub(crate) const FORGET: &str =
    "DELETE FROM webhook_deliveries WHERE state <> 'waiting' AND ended_at_ms < $1";

impl Store {
    /// What is to be told by now, the oldest first.
    pub async fn deliveries_due(&self, now: Millis, limit: i64) -> Result<Vec<Delivery>> {
        let query = sqlx::query(sqlx::AssertSqlSafe(due())).bind(now).bind(limit);
        let rows = self.engine.fetch_all(query).await?;
        rows.iter().map(|row| Ok(delivery(row)?)).collect()
    }

    /// What was told of a job, or is to be.
    pub async fn deliveries_of(&self, tenant: &str, job: &str) -> Result<Vec<Delivery>> {
        let query = sqlx::query(sqlx::AssertSqlSafe(of_job())).bind(tenant).bind(job);
        let rows = self.engine.fetch_all(query).await?;
        rows.iter().map(|row| Ok(delivery(row)?)).collect()
    }

    /// Takes a delivery for one attempt. False where another process was quicker. One that is not heard of again
    /// is due at `again_at_ms`.
    pub async fn delivery_take(&self, event_id: String, attempts: i64, again_at_ms: Millis) -> Result<bool> {
        self.writer.write(Take { event_id, attempts, again_at_ms }).await
    }

    /// Puts the next attempt off.
    pub async fn delivery_postpone(&self, event_id: String, next_at_ms: Millis, error: String) -> Result<()> {
        self.writer.write(Postpone { event_id, next_at_ms, error: error.replace('\0', " ") }).await
    }

    /// Ends a delivery: told, or given up with an entry in the audit. Its secret goes.
    pub async fn delivery_end(
        &self,
        delivery: &Delivery,
        at_ms: Millis,
        given_up: Option<(String, AuditEvent)>,
    ) -> Result<()> {
        let (error, event) = given_up.unzip();
        let error = error.map(|error| error.replace('\0', " "));
        let (event_id, tenant) = (delivery.event_id.clone(), delivery.tenant.clone());
        self.writer.write(End { event_id, tenant, at_ms, error, event }).await
    }

    /// Removes deliveries that ended before a time. A webhook itself goes with its job. Returns how many.
    pub async fn deliveries_forget(&self, before: Millis) -> Result<u64> {
        self.writer.write(Forget { before }).await
    }
}

struct Take {
    event_id: String,
    attempts: i64,
    again_at_ms: Millis,
}

impl crate::writer::Act<bool> for Take {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<bool>
    where
        Self: 'c,
    {
        let done = sqlx::query(
            "UPDATE webhook_deliveries SET attempts = attempts + 1, next_at_ms = $1 \
             WHERE event_id = $2 AND attempts = $3 AND state = 'waiting'",
        )
        .bind(self.again_at_ms)
        .bind(self.event_id)
        .bind(self.attempts)
        .execute(connection)
        .await?;
        Ok(done.rows_affected() == 1)
    }
}

struct Postpone {
    event_id: String,
    next_at_ms: Millis,
    error: String,
}

impl crate::writer::Act<()> for Postpone {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        sqlx::query(
            "UPDATE webhook_deliveries SET next_at_ms = $1, last_error = $2 \
             WHERE event_id = $3 AND state = 'waiting'",
        )
        .bind(self.next_at_ms)
        .bind(self.error)
        .bind(self.event_id)
        .execute(connection)
        .await?;
        Ok(())
    }
}

struct End {
    event_id: String,
    tenant: String,
    at_ms: Millis,
    error: Option<String>,
    event: Option<AuditEvent>,
}

impl crate::writer::Act<()> for End {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let state = if self.error.is_some() { "given_up" } else { "delivered" };
        let done = sqlx::query(
            "UPDATE webhook_deliveries SET state = $1, ended_at_ms = $2, last_error = $3, secret = '' \
             WHERE event_id = $4 AND state = 'waiting'",
        )
        .bind(state)
        .bind(self.at_ms)
        .bind(self.error)
        .bind(self.event_id)
        .execute(&mut *connection)
        .await?;
        match self.event {
            Some(event) if done.rows_affected() == 1 => {
                audit::append(connection, &self.tenant, &[event]).await
            }
            _ => Ok(()),
        }
    }
}

struct Forget {
    before: Millis,
}

impl crate::writer::Act<u64> for Forget {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<u64>
    where
        Self: 'c,
    {
        let done = sqlx::query(FORGET).bind(self.before).execute(connection).await?;
        Ok(done.rows_affected())
    }
}
