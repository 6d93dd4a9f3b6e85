//! The keys of what sessions' steps are and write. They come with their session and go first; what was kept before there
//! were any gets one, session by session.

use crate::{Result, Store};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Connection, Executor, Row};

pub(crate) const DESTROY: &str = "DELETE FROM session_keys WHERE session_id = $1";

/// Sessions that have none. Those that were deleted get none any more.
const WITHOUT: &str = "SELECT id FROM sessions WHERE (cause IS NULL OR cause <> 'deleted') AND NOT EXISTS \
                       (SELECT 1 FROM session_keys WHERE session_id = sessions.id) LIMIT $1";

/// Pieces of output that are read together.
const PAGE: i64 = 64;

/// What is sealed of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepPart {
    Spec,
    Result,
    Message,
    /// A piece of output, by its number.
    Output(i64),
}

/// Seals a part of a step. Texts stay texts.
pub trait SealStep {
    fn text(&self, step: &str, part: StepPart, plain: &str) -> Result<String>;
    fn bytes(&self, step: &str, part: StepPart, plain: &[u8]) -> Result<Vec<u8>>;
}

pub(crate) async fn put(connection: &mut AnyConnection, session: &str, wrapped_key: &str) -> Result<()> {
    sqlx::query("INSERT INTO session_keys (session_id, wrapped_key) VALUES ($1, $2)")
        .bind(session)
        .bind(wrapped_key)
        .execute(connection)
        .await?;
    Ok(())
}

/// Destroys the key of a session's steps, and says whether there was one.
pub(crate) async fn destroy(connection: &mut AnyConnection, session: &str) -> Result<bool> {
    Ok(sqlx::query(DESTROY).bind(session).execute(connection).await?.rows_affected() > 0)
}

impl Store {
    /// The key of a session's steps, as it is wrapped.
    pub async fn session_key(&self, tenant: &str, session: &str) -> Result<Option<String>> {
        let text = "SELECT wrapped_key FROM session_keys JOIN sessions ON sessions.id = session_id \
                    WHERE session_id = $1 AND tenant_id = $2";
        let row = self.engine.fetch_optional(sqlx::query(text).bind(session).bind(tenant)).await?;
        row.map(|row| Ok(row.try_get(0)?)).transpose()
    }

    /// Some of the sessions whose steps lie there as they are.
    pub async fn sessions_without_key(&self, limit: i64) -> Result<Vec<String>> {
        let rows = self.engine.fetch_all(sqlx::query(WITHOUT).bind(limit)).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Gives a session a key, and seals everything of its steps with it, in one transaction.
    pub async fn seal_session(
        &self,
        session: &str,
        wrapped_key: &str,
        seal: &(dyn SealStep + Sync),
    ) -> Result<()> {
        let mut connection = self.engine.connect().await?;
        connection.execute(self.engine.kind().begin()).await?;
        put(&mut connection, session, wrapped_key).await?;
        let text = "SELECT id, spec, result, message FROM steps WHERE session_id = $1";
        let steps = sqlx::query(text).bind(session).fetch_all(&mut connection).await?;
        for row in &steps {
            seal_step(&mut connection, row, seal).await?;
        }
        connection.execute("COMMIT").await?;
        let _ = connection.close().await;
        Ok(())
    }
}

async fn seal_step(connection: &mut AnyConnection, row: &AnyRow, seal: &(dyn SealStep + Sync)) -> Result<()> {
    let (id, spec): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let (result, message): (Option<String>, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
    let text = |part, plain: Option<String>| plain.map(|plain| seal.text(&id, part, &plain)).transpose();
    let spec = seal.text(&id, StepPart::Spec, &spec)?;
    let (result, message) = (text(StepPart::Result, result)?, text(StepPart::Message, message)?);
    sqlx::query("UPDATE steps SET spec = $1, result = $2, message = $3 WHERE id = $4")
        .bind(spec)
        .bind(result)
        .bind(message)
        .bind(id.as_str())
        .execute(&mut *connection)
        .await?;
    let mut after = 0;
    loop {
        let text = "SELECT seq, bytes FROM output WHERE job_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let query = sqlx::query(text).bind(id.as_str()).bind(after).bind(PAGE);
        let rows = query.fetch_all(&mut *connection).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for row in rows {
            after = row.try_get(0)?;
            let bytes: Vec<u8> = row.try_get(1)?;
            sqlx::query("UPDATE output SET bytes = $1 WHERE job_id = $2 AND seq = $3")
                .bind(seal.bytes(&id, StepPart::Output(after), &bytes)?)
                .bind(id.as_str())
                .bind(after)
                .execute(&mut *connection)
                .await?;
        }
    }
}
