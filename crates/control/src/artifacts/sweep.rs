//! The sweep: what is over goes, and records and bytes that have lost each other go, too. It takes no input, and
//! doing it twice, or in two processes at once, does the same as once.

use crate::{Control, Result, now_ms};
use cofferdam_artifacts::{ArtifactError, Found, Name};
use cofferdam_store::{ArtifactRecord, AuditEvent};
use serde_json::json;
use tokio::time::{Instant, timeout};

/// As many at a time as a transaction should hold.
const BATCH: i64 = 100;

impl Control {
    /// Has the sweep look at what was just deleted.
    pub(crate) fn sweep_soon(&self) {
        if let Some(artifacts) = &self.parts.artifacts {
            artifacts.swept.notify_one();
        }
    }

    /// Starts the sweep, for as long as the process lives. Everything is looked at once at the start.
    pub(crate) fn spawn_sweep(&self) {
        let Ok(_) = self.artifacts() else { return };
        let control = self.clone();
        tokio::spawn(async move {
            let mut full_at = Instant::now();
            loop {
                let settings = &control.parts.settings.artifacts;
                // An error is the store's or the place's: what is to go is still there next time.
                let mut swept = control.sweep_over().await;
                if swept.is_ok() && Instant::now() >= full_at {
                    swept = control.sweep_all().await;
                    full_at = Instant::now() + settings.full_sweep;
                }
                if let Err(error) = swept {
                    tracing::error!("the sweep of artifacts was cut short: {error}");
                }
                let Ok(artifacts) = control.artifacts() else { return };
                let _ = timeout(settings.sweep, artifacts.swept.notified()).await;
            }
        });
    }

    /// What is over by its time or by somebody's word.
    pub async fn sweep_over(&self) -> Result<()> {
        let (store, vault) = (&self.parts.store, &self.artifacts()?.vault);
        while store.expire_artifacts(now_ms(), BATCH).await? > 0 {}
        loop {
            let deleting = store.deleting_artifacts(BATCH).await?;
            if deleting.is_empty() {
                return Ok(());
            }
            for (tenant, id) in deleting {
                vault.remove(&tenant, &id, None).await?;
                store.forget_artifact(id).await?;
            }
        }
    }

    /// What has lost its other half: bytes without a record, records without bytes or without their job.
    pub async fn sweep_all(&self) -> Result<()> {
        let store = &self.parts.store;
        while store.expire_artifacts_without_job(now_ms(), BATCH).await? > 0 {}
        self.sweep_bytes().await?;
        self.sweep_records().await?;
        self.sweep_over().await
    }

    async fn sweep_bytes(&self) -> Result<()> {
        let vault = &self.artifacts()?.vault;
        let before = now_ms() - self.parts.settings.artifacts.orphan_age.as_millis() as i64;
        let mut last = None;
        let mut listed = vault.list();
        while let Some(found) = listed.recv().await {
            let found = found?;
            let key = (found.tenant.clone(), found.id.clone(), found.attempt.clone());
            if last.as_ref() == Some(&key) {
                continue;
            }
            last = Some(key);
            // What is young may be about to get its record, or be written right now.
            if found.changed_at_ms < before {
                self.sweep_found(&found).await?;
            }
        }
        Ok(())
    }

    async fn sweep_found(&self, found: &Found) -> Result<()> {
        let Found { tenant, id, attempt, .. } = found;
        // What cannot be a name of ours was put there by somebody else, and is theirs.
        let Ok(name) = Name::new(tenant, id, attempt) else { return Ok(()) };
        if !self.parts.store.has_attempt(tenant, id, attempt).await? {
            self.artifacts()?.vault.remove_attempt(&name).await?;
        }
        Ok(())
    }

    /// A readable artifact whose bytes are not there is not readable. Looked at only in the place that was marked as
    /// the right one: an empty bucket by mistake must not cost anybody their records.
    async fn sweep_records(&self) -> Result<()> {
        let (store, vault) = (&self.parts.store, &self.artifacts()?.vault);
        if !vault.is_marked().await? {
            if !store.ready_artifacts("", 1).await?.is_empty() {
                let what = "it is not the place that this server's artifacts were put into".to_owned();
                return Err(ArtifactError::Setup { what }.into());
            }
            return Ok(vault.mark().await?);
        }
        let mut after = String::new();
        loop {
            let page = store.ready_artifacts(&after, BATCH).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(&last.id);
            for record in page {
                if !self.has_bytes(&record).await? {
                    self.lose(record).await?;
                }
            }
        }
    }

    async fn has_bytes(&self, record: &ArtifactRecord) -> Result<bool> {
        let Some(attempt) = &record.attempt else { return Ok(false) };
        let name = Name::new(&record.tenant, &record.id, &attempt.name)?;
        Ok(self.artifacts()?.vault.is_whole(&name, record.size_bytes.max(0) as u64).await?)
    }

    async fn lose(&self, record: ArtifactRecord) -> Result<()> {
        let event = AuditEvent {
            at_ms: now_ms(),
            kind: "artifact.lost",
            actor: "system".to_owned(),
            resource: record.id.clone(),
            details: json!({"why": "its bytes are not in the artifact store"}),
        };
        match self.parts.store.delete_artifact(record.tenant, record.id, event).await {
            Err(cofferdam_store::StoreError::NotFound { .. }) => Ok(()),
            other => Ok(other?),
        }
    }
}
