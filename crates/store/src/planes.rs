//! Control planes that share a store: until when each is believed to be there, and what one that went away had begun
//! and not finished. Times are the database's.

use crate::sessions::Pause;
use crate::{AuditEvent, Millis, Result, Store, StoreError, archives, audit, texts};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

/// What a process had begun with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// Its sandbox was being made.
    Create,
    /// Its files were being written away.
    Archive,
    /// A sandbox was being made for files that are still kept.
    Resume,
}

/// A session that somebody who is gone had begun something with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunSession {
    pub id: String,
    pub tenant: String,
    pub worker: String,
    pub generation: i64,
    pub begun: Begun,
    /// Who that was.
    pub owner: String,
}

impl Store {
    /// Notes that a control plane is there, and will be believed to be for a while.
    pub async fn plane_is_there(&self, id: String, for_ms: i64) -> Result<()> {
        texts::check([("the control plane", id.as_str())])?;
        let now = self.engine.kind().now_ms();
        let text = format!(
            "INSERT INTO planes (id, until_ms) VALUES ($1, {now} + $2) \
             ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms"
        );
        self.writer.write(There { id, for_ms, text }).await
    }

    /// Control planes that are not believed to be there any more.
    pub async fn gone_planes(&self) -> Result<Vec<String>> {
        let text = format!("SELECT id FROM planes WHERE until_ms < {}", self.engine.kind().now_ms());
        let rows = self.engine.fetch_all(sqlx::query(sqlx::AssertSqlSafe(text))).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Forgets a control plane, unless it is there again.
    pub async fn forget_plane(&self, id: String) -> Result<()> {
        let text = format!("DELETE FROM planes WHERE id = $1 AND until_ms < {}", self.engine.kind().now_ms());
        self.writer.write(Forget { id, text }).await
    }

    /// Ends the steps of owners whose name begins so, but for one, as lost, and gives up what they were writing away.
    /// Returns the steps.
    pub async fn lose_steps(&self, begins: String, but: String, now: Millis) -> Result<Vec<String>> {
        texts::check([("the owner", begins.as_str()), ("the owner", &but)])?;
        self.writer.write(LoseSteps { begins, but, now }).await
    }

    /// Sessions that owners whose name begins so, but for one, had begun something with.
    pub async fn begun_sessions(&self, begins: &str, but: &str) -> Result<Vec<BegunSession>> {
        let text = "SELECT id, tenant_id, worker, generation, state, pause_mode, owner FROM sessions \
                    WHERE state <> 'ended' AND owner IS NOT NULL \
                    AND (state = 'creating' OR pause_mode IN ('archiving', 'resuming'))";
        let mut found = Vec::new();
        for row in self.engine.fetch_all(sqlx::query(text)).await? {
            let owner: String = row.try_get(6)?;
            if !owner.starts_with(begins) || owner == but {
                continue;
            }
            let pause: Option<String> = row.try_get(5)?;
            let begun = match pause.as_deref() {
                None => Begun::Create,
                Some(pause) if pause == Pause::Archiving.as_str() => Begun::Archive,
                Some(_) => Begun::Resume,
            };
            let (id, tenant, worker) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            found.push(BegunSession { id, tenant, worker, generation: row.try_get(3)?, begun, owner });
        }
        Ok(found)
    }

    /// Makes another process the one that sees to a session that is being written away. False if somebody was quicker.
    pub async fn adopt_archiving(&self, session: &BegunSession, owner: String) -> Result<bool> {
        texts::check([("the owner", owner.as_str())])?;
        self.writer.write(Adopt { session: session.clone(), owner }).await
    }

    /// Steps of an owner that somebody wants ended, and who.
    pub async fn interrupted_of(&self, owner: &str) -> Result<Vec<(String, String)>> {
        let text = "SELECT id, cancelled_by FROM steps WHERE state IN ('queued', 'running') AND owner = $1 \
                    AND cancelled_by IS NOT NULL";
        let rows = self.engine.fetch_all(sqlx::query(text).bind(owner)).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }
}

struct There {
    id: String,
    for_ms: i64,
    text: String,
}

impl crate::writer::Act<()> for There {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let query = sqlx::query(sqlx::AssertSqlSafe(self.text)).bind(self.id).bind(self.for_ms);
        query.execute(connection).await?;
        Ok(())
    }
}

struct Forget {
    id: String,
    text: String,
}

impl crate::writer::Act<()> for Forget {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        sqlx::query(sqlx::AssertSqlSafe(self.text)).bind(self.id).execute(connection).await?;
        Ok(())
    }
}

struct LoseSteps {
    begins: String,
    but: String,
    now: Millis,
}

impl crate::writer::Act<Vec<String>> for LoseSteps {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Vec<String>>
    where
        Self: 'c,
    {
        let rows = sqlx::query(
            "SELECT steps.id, steps.session_id, sessions.tenant_id, steps.owner FROM steps \
             JOIN sessions ON sessions.id = steps.session_id \
             WHERE steps.state IN ('queued', 'running') AND steps.owner IS NOT NULL",
        )
        .fetch_all(&mut *connection)
        .await?;
        let mut lost = Vec::new();
        for row in rows {
            let (step, session, tenant, owner): (String, String, String, String) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
            if !owner.starts_with(&self.begins) || owner == self.but {
                continue;
            }
            sqlx::query(
                "UPDATE steps SET state = 'lost', reason = 'lost', transition_at_ms = $1, \
                 message = 'the control plane that ran it went away' WHERE id = $2",
            )
            .bind(self.now)
            .bind(step.as_str())
            .execute(&mut *connection)
            .await?;
            let event = AuditEvent {
                at_ms: self.now,
                kind: "step.finished",
                actor: "system".to_owned(),
                resource: step.clone(),
                details: serde_json::json!({"session": session, "state": JobState::Lost}),
            };
            audit::append(connection, &tenant, &[event]).await?;
            lost.push(step);
        }
        archives::abandon_of(connection, &self.begins, &self.but).await?;
        Ok(lost)
    }
}

struct Adopt {
    session: BegunSession,
    owner: String,
}

impl crate::writer::Act<bool> for Adopt {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<bool>
    where
        Self: 'c,
    {
        let BegunSession { id, generation, owner, .. } = self.session;
        let done = sqlx::query(
            "UPDATE sessions SET owner = $1 WHERE id = $2 AND generation = $3 AND owner = $4 AND state = 'paused' \
             AND pause_mode = 'archiving'",
        )
        .bind(self.owner)
        .bind(id)
        .bind(generation)
        .bind(owner)
        .execute(connection)
        .await?;
        Ok::<_, StoreError>(done.rows_affected() > 0)
    }
}
