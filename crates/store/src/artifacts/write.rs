//! The steps of an artifact's life, each guarded by the one before.

use super::{ArtifactState, Attempt, DoneArtifact, NewArtifact, count};
use crate::{Accepted, AuditEvent, Idempotency, Kept, Millis, Result, Store, StoreError};
use crate::{audit, idempotency, jobs, texts};
use sqlx::{AnyConnection, Row};

impl Store {
    /// Begins an artifact, if the tenant's quota has room for it.
    pub async fn create_artifact(
        &self,
        artifact: NewArtifact,
        quota_bytes: i64,
        idempotency: Option<Idempotency>,
        events: Vec<AuditEvent>,
    ) -> Result<Accepted> {
        check_new(&artifact)?;
        texts::check([("the idempotency key", idempotency.as_ref().map(|taken| taken.name.as_str()))])?;
        texts::check_events(&events)?;
        self.writer.write(Create { artifact, quota_bytes, idempotency, events }).await
    }

    /// Counts more bytes for an artifact that is being written.
    pub async fn grow_artifact(&self, tenant: String, id: String, to: i64, quota_bytes: i64) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the artifact's id", &id)])?;
        self.writer.write(Grow { tenant, id, to, quota_bytes }).await
    }

    /// Begins a writing of the bytes. An earlier one that has not ended is over by that.
    pub async fn begin_upload(
        &self,
        tenant: String,
        id: String,
        attempt: Attempt,
        now: Millis,
    ) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the artifact's id", &id)])?;
        self.writer.write(Begin { tenant, id, attempt, now }).await
    }

    /// Notes that all bytes of a writing are kept.
    pub async fn end_upload(
        &self,
        tenant: String,
        id: String,
        attempt: String,
        sha256: String,
    ) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the artifact's id", &id), ("the hash", &sha256)])?;
        self.writer.write(End { tenant, id, attempt, sha256 }).await
    }

    /// Makes an artifact readable, if its bytes have this hash. Doing it again changes nothing.
    pub async fn finalize_artifact(
        &self,
        tenant: String,
        id: String,
        sha256: String,
        expires_at_ms: Millis,
        event: AuditEvent,
    ) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the artifact's id", &id), ("the hash", &sha256)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Finalize { tenant, id, sha256, expires_at_ms, event }).await
    }

    /// Makes everything readable that a running job has left, at once. The fence is that of the job's claim; the event
    /// is noted for each.
    pub async fn finalize_job_artifacts(
        &self,
        job: String,
        fence: i64,
        done: Vec<DoneArtifact>,
        expires_at_ms: Millis,
        event: AuditEvent,
    ) -> Result<()> {
        texts::check([("the job's id", job.as_str())])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(FinalizeOfJob { job, fence, done, expires_at_ms, event }).await
    }

    /// Makes readable what was kept of a session's files; the event is noted for each.
    pub async fn finalize_session_artifacts(
        &self,
        tenant: String,
        session: String,
        done: Vec<DoneArtifact>,
        expires_at_ms: Millis,
        event: AuditEvent,
    ) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the session's id", &session)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(FinalizeOfSession { tenant, session, done, expires_at_ms, event }).await
    }

    /// Takes an artifact from everyone: its key is gone when this returns, its bytes are soon.
    pub async fn delete_artifact(&self, tenant: String, id: String, event: AuditEvent) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the artifact's id", &id)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Delete { tenant, id, event }).await
    }
}

fn check_new(artifact: &NewArtifact) -> Result<()> {
    let NewArtifact { id, tenant, job, session, step, name, content_type, sha256, attempt, .. } = artifact;
    texts::check([("the job's id", job.as_deref()), ("the hash", sha256.as_deref())])?;
    texts::check([("the session's id", session.as_deref()), ("the step's id", step.as_deref())])?;
    texts::check([("the attempt", attempt.as_ref().map(|attempt| attempt.name.as_str()))])?;
    texts::check([
        ("the artifact's id", id.as_str()),
        ("the tenant", tenant),
        ("the artifact's name", name),
        ("the artifact's type", content_type),
    ])
}

struct Create {
    artifact: NewArtifact,
    quota_bytes: i64,
    idempotency: Option<Idempotency>,
    events: Vec<AuditEvent>,
}

impl crate::writer::Act<Accepted> for Create {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Accepted>
    where
        Self: 'c,
    {
        let NewArtifact {
            id,
            tenant,
            job,
            session,
            step,
            name,
            content_type,
            size_bytes,
            sha256,
            attempt,
            created_at_ms,
            expires_at_ms,
        } = self.artifact;
        if let Some(named) = &self.idempotency {
            match idempotency::take(connection, &tenant, named, &id, created_at_ms).await? {
                Kept::New => {}
                Kept::Same { resource } => return Ok(Accepted::Before { id: resource }),
                Kept::Other => return Ok(Accepted::OtherBody),
            }
        }
        count(connection, &tenant, size_bytes, Some(self.quota_bytes)).await?;
        let (attempt, wrapped_key) = attempt.map(|attempt| (attempt.name, attempt.wrapped_key)).unzip();
        sqlx::query(
            "INSERT INTO artifacts (id, tenant_id, job_id, name, content_type, size_bytes, sha256, state, attempt, \
             wrapped_key, created_at_ms, expires_at_ms, session_id, step_id) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, 'uploading', $8, $9, $10, $11, $12, $13)",
        )
        .bind(id)
        .bind(tenant.as_str())
        .bind(job)
        .bind(name)
        .bind(content_type)
        .bind(size_bytes)
        .bind(sha256)
        .bind(attempt)
        .bind(wrapped_key)
        .bind(created_at_ms)
        .bind(expires_at_ms)
        .bind(session)
        .bind(step)
        .execute(&mut *connection)
        .await?;
        audit::append(connection, &tenant, &self.events).await?;
        Ok(Accepted::New { fence: None })
    }
}

/// Why a guarded change changed nothing.
async fn why(connection: &mut AnyConnection, tenant: &str, id: &str) -> StoreError {
    let row = sqlx::query("SELECT state FROM artifacts WHERE id = $1 AND tenant_id = $2")
        .bind(id)
        .bind(tenant)
        .fetch_optional(connection)
        .await;
    let state = row.map(|row| row.map(|row| row.try_get::<String, _>(0)));
    match state {
        Ok(None) => StoreError::NotFound { what: "artifact" },
        Ok(Some(Ok(name))) => match ArtifactState::from_name(&name) {
            Ok(ArtifactState::Deleting) => StoreError::NotFound { what: "artifact" },
            Ok(state) => StoreError::WrongArtifactState { state: state.as_str() },
            Err(error) => error,
        },
        Ok(Some(Err(error))) | Err(error) => error.into(),
    }
}

struct Grow {
    tenant: String,
    id: String,
    to: i64,
    quota_bytes: i64,
}

impl crate::writer::Act<()> for Grow {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let size =
            "SELECT size_bytes FROM artifacts WHERE id = $1 AND tenant_id = $2 AND state = 'uploading'";
        let row = sqlx::query(size).bind(self.id.as_str()).bind(self.tenant.as_str());
        let Some(row) = row.fetch_optional(&mut *connection).await? else {
            return Err(why(connection, &self.tenant, &self.id).await);
        };
        let before: i64 = row.try_get(0)?;
        count(connection, &self.tenant, self.to - before, Some(self.quota_bytes)).await?;
        sqlx::query("UPDATE artifacts SET size_bytes = $1 WHERE id = $2")
            .bind(self.to)
            .bind(self.id)
            .execute(connection)
            .await?;
        Ok(())
    }
}

struct Begin {
    tenant: String,
    id: String,
    attempt: Attempt,
    now: Millis,
}

impl crate::writer::Act<()> for Begin {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let done = sqlx::query(
            "UPDATE artifacts SET attempt = $1, wrapped_key = $2, stored_sha256 = NULL \
             WHERE id = $3 AND tenant_id = $4 AND state = 'uploading' AND expires_at_ms > $5",
        )
        .bind(self.attempt.name)
        .bind(self.attempt.wrapped_key)
        .bind(self.id.as_str())
        .bind(self.tenant.as_str())
        .bind(self.now)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 1 { Ok(()) } else { Err(why(connection, &self.tenant, &self.id).await) }
    }
}

struct End {
    tenant: String,
    id: String,
    attempt: String,
    sha256: String,
}

impl crate::writer::Act<()> for End {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let done = sqlx::query(
            "UPDATE artifacts SET stored_sha256 = $1 \
             WHERE id = $2 AND tenant_id = $3 AND attempt = $4 AND state = 'uploading'",
        )
        .bind(self.sha256)
        .bind(self.id.as_str())
        .bind(self.tenant.as_str())
        .bind(self.attempt)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 1 { Ok(()) } else { Err(why(connection, &self.tenant, &self.id).await) }
    }
}

struct Finalize {
    tenant: String,
    id: String,
    sha256: String,
    expires_at_ms: Millis,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Finalize {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let done = sqlx::query(
            "UPDATE artifacts SET state = 'ready', sha256 = stored_sha256, expires_at_ms = $1 \
             WHERE id = $2 AND tenant_id = $3 AND state = 'uploading' AND stored_sha256 = $4 \
             AND (sha256 IS NULL OR sha256 = stored_sha256)",
        )
        .bind(self.expires_at_ms)
        .bind(self.id.as_str())
        .bind(self.tenant.as_str())
        .bind(self.sha256.as_str())
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 1 {
            return audit::append(connection, &self.tenant, &[self.event]).await;
        }
        let same =
            "SELECT 1 FROM artifacts WHERE id = $1 AND tenant_id = $2 AND state = 'ready' AND sha256 = $3";
        let query = sqlx::query(same).bind(self.id.as_str()).bind(self.tenant.as_str()).bind(self.sha256);
        match query.fetch_optional(&mut *connection).await? {
            Some(_) => Ok(()),
            None => Err(why(connection, &self.tenant, &self.id).await),
        }
    }
}

struct FinalizeOfJob {
    job: String,
    fence: i64,
    done: Vec<DoneArtifact>,
    expires_at_ms: Millis,
    event: AuditEvent,
}

impl crate::writer::Act<()> for FinalizeOfJob {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        jobs::check_fence(connection, &self.job, self.fence).await?;
        for done in self.done {
            let owner = Owner { column: "job_id", id: &self.job, tenant: None };
            finalize_one(connection, owner, done, self.expires_at_ms, &self.event).await?;
        }
        Ok(())
    }
}

struct FinalizeOfSession {
    tenant: String,
    session: String,
    done: Vec<DoneArtifact>,
    expires_at_ms: Millis,
    event: AuditEvent,
}

impl crate::writer::Act<()> for FinalizeOfSession {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        for done in self.done {
            let owner = Owner { column: "session_id", id: &self.session, tenant: Some(&self.tenant) };
            finalize_one(connection, owner, done, self.expires_at_ms, &self.event).await?;
        }
        Ok(())
    }
}

/// Whose an artifact has to be.
struct Owner<'o> {
    column: &'static str,
    id: &'o str,
    tenant: Option<&'o str>,
}

async fn finalize_one(
    connection: &mut AnyConnection,
    owner: Owner<'_>,
    done: DoneArtifact,
    expires_at_ms: Millis,
    event: &AuditEvent,
) -> Result<()> {
    let DoneArtifact { id, size_bytes, sha256 } = done;
    let counted = format!(
        "SELECT size_bytes, tenant_id FROM artifacts WHERE id = $1 AND {} = $2 AND ($3 = '' OR tenant_id = $3) \
         AND state = 'uploading'",
        owner.column
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(counted)).bind(id.as_str()).bind(owner.id);
    let row = row.bind(owner.tenant.unwrap_or("")).fetch_optional(&mut *connection).await?;
    let row = row.ok_or(StoreError::NotFound { what: "artifact" })?;
    let (before, tenant): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
    // What was counted ahead and not used is given back.
    count(connection, &tenant, size_bytes - before, None).await?;
    sqlx::query(
        "UPDATE artifacts SET state = 'ready', size_bytes = $1, sha256 = $2, stored_sha256 = $2, \
         expires_at_ms = $3 WHERE id = $4",
    )
    .bind(size_bytes)
    .bind(sha256)
    .bind(expires_at_ms)
    .bind(id.as_str())
    .execute(&mut *connection)
    .await?;
    let event = AuditEvent { resource: id, ..event.clone() };
    audit::append(connection, &tenant, &[event]).await
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
        if !mark_deleting(connection, &self.id, Some(&self.tenant)).await? {
            return Err(StoreError::NotFound { what: "artifact" });
        }
        audit::append(connection, &self.tenant, &[self.event]).await
    }
}

/// Takes away the key of an artifact and no longer counts it; false where it was not there any more.
pub(super) async fn mark_deleting(
    connection: &mut AnyConnection,
    id: &str,
    tenant: Option<&str>,
) -> Result<bool> {
    let row = sqlx::query(
        "UPDATE artifacts SET state = 'deleting', wrapped_key = NULL, stored_sha256 = NULL \
         WHERE id = $1 AND ($2 = '' OR tenant_id = $2) AND state <> 'deleting' RETURNING tenant_id, size_bytes",
    )
    .bind(id)
    .bind(tenant.unwrap_or(""))
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(false) };
    let (tenant, size): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
    count(connection, &tenant, -size, None).await?;
    Ok(true)
}

/// What a job has left goes with it.
pub(crate) async fn delete_of_job(connection: &mut AnyConnection, job: &str) -> Result<()> {
    let rows = sqlx::query("SELECT id FROM artifacts WHERE job_id = $1 AND state <> 'deleting'")
        .bind(job)
        .fetch_all(&mut *connection)
        .await?;
    for row in rows {
        let id: String = row.try_get(0)?;
        mark_deleting(connection, &id, None).await?;
    }
    Ok(())
}
