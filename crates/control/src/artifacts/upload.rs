//! The bytes of an upload, as they come in by a link.

use super::Uploading;
use crate::{Control, ControlError, Result, now_ms};
use cofferdam_artifacts::{Name, Vault, Writing};
use cofferdam_core::InvalidValue;
use cofferdam_policy::Permit;
use cofferdam_store::{ArtifactRecord, ArtifactState, Attempt};

/// An upload that goes on. Dropped before its end, it leaves nothing.
#[derive(Debug)]
pub struct Upload {
    control: Control,
    record: ArtifactRecord,
    writing: Option<Writing>,
    leftovers: Leftovers,
}

/// What is to be removed unless the upload is kept.
#[derive(Debug)]
struct Leftovers {
    vault: Vault,
    name: Name,
    /// Held until they are removed: the next one to upload this must not meet them.
    turn: Option<Uploading>,
    /// Or nothing is left of it.
    is_kept: bool,
}

impl Leftovers {
    /// Removes them now, so that whoever is told of the refusal can try again at once.
    async fn remove(&mut self) {
        if self.vault.remove_attempt(&self.name).await.is_ok() {
            self.is_kept = true;
            self.turn = None;
        }
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let (vault, name, turn) = (self.vault.clone(), self.name.clone(), self.turn.take());
        // Without a runtime the process is about to end, and the sweep of the next one does it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = vault.remove_attempt(&name).await;
                drop(turn);
            });
        }
    }
}

impl Control {
    /// Begins to take the bytes of an artifact. What an earlier try has left goes.
    pub async fn begin_upload(&self, permit: &Permit, record: ArtifactRecord) -> Result<Upload> {
        let artifacts = self.artifacts()?;
        let wrong = |state: &str| ControlError::Conflict { text: format!("the artifact is {state}") };
        if record.state != ArtifactState::Uploading {
            return Err(wrong(record.state.as_str()));
        }
        let turn = artifacts.take_upload(&record.id).ok_or_else(|| wrong("being uploaded"))?;
        let name = Name::draw(permit.tenant(), &record.id)?;
        let (key, wrapped_key) = artifacts.vault.new_key(&name)?;
        let attempt = Attempt { name: name.attempt().to_owned(), wrapped_key };
        let (tenant, id) = (record.tenant.clone(), record.id.clone());
        self.parts.store.begin_upload(tenant, id, attempt, now_ms()).await?;
        artifacts.vault.remove(&record.tenant, &record.id, None).await?;
        let writing = Some(artifacts.vault.write(name.clone(), key));
        let vault = artifacts.vault.clone();
        let leftovers = Leftovers { vault, name, turn: Some(turn), is_kept: false };
        Ok(Upload { control: self.clone(), record, writing, leftovers })
    }
}

impl Upload {
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.try_write(bytes).await;
        if written.is_err() {
            self.leftovers.remove().await;
        }
        written
    }

    /// Keeps what came, if it is what was announced. When this returns, it is on the disk.
    pub async fn finish(mut self) -> Result<ArtifactRecord> {
        let finished = self.try_finish().await;
        if finished.is_err() && !self.leftovers.is_kept {
            self.leftovers.remove().await;
        }
        finished
    }

    async fn try_write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writing) = &mut self.writing else { return Ok(()) };
        if writing.size() + bytes.len() as u64 > self.record.size_bytes as u64 {
            let text = format!("more than the {} bytes that were announced", self.record.size_bytes);
            return Err(ControlError::TooLarge { text });
        }
        Ok(writing.write(bytes).await?)
    }

    async fn try_finish(&mut self) -> Result<ArtifactRecord> {
        let Some(writing) = self.writing.take() else {
            return Err(ControlError::NotFound { what: "artifact" });
        };
        let announced = self.record.size_bytes as u64;
        if writing.size() != announced {
            let fix = format!("send the {announced} bytes that were announced");
            return Err(InvalidValue::new("size_bytes", writing.size().to_string(), fix).into());
        }
        let written = writing.finish().await?;
        if let Some(expected) = self.record.sha256.as_ref().filter(|expected| **expected != written.sha256) {
            let fix = format!("send the bytes whose hash is {expected}");
            return Err(InvalidValue::new("sha256", written.sha256, fix).into());
        }
        let (tenant, id) = (self.record.tenant.clone(), self.record.id.clone());
        let attempt = self.leftovers.name.attempt().to_owned();
        let store = &self.control.parts.store;
        // From here on the record may say that they are there, even if nobody hears so: then they have to be. If it
        // does not, they go with the next try, or with its time.
        self.leftovers.is_kept = true;
        store.end_upload(tenant.clone(), id.clone(), attempt, written.sha256).await?;
        self.control.artifact_record(&tenant, &id).await
    }
}
