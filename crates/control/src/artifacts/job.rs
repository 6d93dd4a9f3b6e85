//! What a job takes from the artifacts of its tenant, and what it leaves there.
//!
//! Everything that a job leaves is hostile in name, number and size. It is counted against the quota as it comes in,
//! and made readable all at once when the run is over, before the job is shown as ended. A store that is away costs
//! the job its artifacts, not its end: the result says what was not kept.

use super::Artifacts;
use crate::{Control, Result, ids, now_ms};
use async_trait::async_trait;
use cofferdam_artifacts::{ArtifactError, Name};
use cofferdam_core::{Artifact, JobResult};
use cofferdam_store::{Attempt, AuditEvent, DoneArtifact, NewArtifact, StoreError};
use serde_json::json;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

pub type Reader = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// Where a run gets the artifacts that it was given, and puts those that it leaves.
#[async_trait]
pub trait ArtifactDesk: Send + Sync {
    /// Opens an artifact of the job's tenant.
    async fn open(&self, artifact: &str) -> io::Result<Reader>;

    /// Keeps one that the job has left, and says how many bytes it had. When reading fails, nothing of it is kept.
    async fn keep(&self, path: &str, content: &mut (dyn AsyncRead + Send + Sync + Unpin)) -> io::Result<u64>;
}

/// Read at once.
const READ_BYTES: usize = 64 << 10;

/// By so much is counted ahead what has no end yet: a part of what has come, within bounds.
const AHEAD_MIN: u64 = 1 << 20;
const AHEAD_MAX: u64 = 64 << 20;

/// How long the store is asked to make them readable. One that is away for longer is away.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(100);

/// Whose the artifacts are.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    /// With the fence of its claim.
    Job { id: String, fence: i64 },
    /// A session's, and a step's where one made it.
    Session { id: String, step: Option<String> },
}

impl Owner {
    fn details(&self) -> serde_json::Value {
        match self {
            Self::Job { id, .. } => json!({"job": id}),
            Self::Session { id, step } => json!({"session": id, "step": step}),
        }
    }
}

/// The desk of one run.
pub(crate) struct Keeper {
    control: Control,
    tenant: String,
    owner: Owner,
    /// With the path of each.
    done: Mutex<Vec<(String, DoneArtifact)>>,
    lost: Mutex<Vec<String>>,
    /// Once the place did not answer: the next of many would wait just as long.
    is_away: AtomicBool,
}

impl Keeper {
    pub(crate) fn new(control: Control, tenant: String, owner: Owner) -> Self {
        let (done, lost) = (Mutex::default(), Mutex::default());
        Self { control, tenant, owner, done, lost, is_away: AtomicBool::new(false) }
    }

    /// Makes what was kept readable, and tells the result of it.
    pub(crate) async fn settle(&self, result: &mut JobResult) {
        self.settle_into(&mut result.artifacts, &mut result.warnings).await;
    }

    /// The same for a list of what was found, and where warnings go.
    pub(crate) async fn settle_into(&self, artifacts: &mut Vec<Artifact>, warnings: &mut Vec<String>) {
        let done = std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner));
        let mut lost = std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner));
        if !done.is_empty() {
            match self.finalize(done.iter().map(|(_, artifact)| artifact.clone()).collect()).await {
                Ok(()) => {
                    for (path, artifact) in done {
                        let shown = artifacts.iter_mut().find(|shown| shown.path == path);
                        if let Some(shown) = shown {
                            (shown.id, shown.sha256) = (Some(artifact.id), Some(artifact.sha256));
                        }
                    }
                }
                Err(_) => lost.extend(done.into_iter().map(|(path, _)| path)),
            }
        }
        drop_unkept(artifacts, warnings, &lost);
        if !lost.is_empty() {
            lost.sort();
            let names = lost.join(", ");
            warnings.push(format!("the artifact store does not answer, so these were not kept: {names}"));
        }
    }

    async fn finalize(&self, done: Vec<DoneArtifact>) -> std::result::Result<(), StoreError> {
        let event = AuditEvent {
            at_ms: now_ms(),
            kind: "artifact.created",
            actor: "system".to_owned(),
            resource: String::new(),
            details: self.owner.details(),
        };
        let until = self.control.retained_until(event.at_ms);
        let store = &self.control.parts.store;
        let began = tokio::time::Instant::now();
        loop {
            let (done, event) = (done.clone(), event.clone());
            let finalized = match self.owner.clone() {
                Owner::Job { id, fence } => store.finalize_job_artifacts(id, fence, done, until, event).await,
                Owner::Session { id, .. } => {
                    store.finalize_session_artifacts(self.tenant.clone(), id, done, until, event).await
                }
            };
            match finalized {
                Err(StoreError::Failed(_)) if began.elapsed() < PATIENCE => tokio::time::sleep(AGAIN).await,
                other => return other,
            }
        }
    }

    async fn try_keep(
        &self,
        path: &str,
        content: &mut (dyn AsyncRead + Send + Sync + Unpin),
    ) -> std::result::Result<u64, Failure> {
        let artifacts = self.control.artifacts().map_err(|_| Failure::Away)?;
        let mut buffer = Vec::with_capacity(READ_BYTES);
        let is_short = fill(content, &mut buffer).await?;
        let id = ids::artifact().map_err(|_| Failure::Away)?.to_string();
        let name = Name::draw(&self.tenant, &id)?;
        let kept = self.write(artifacts, path, &id, &name, content, buffer, is_short).await;
        if kept.is_err() {
            // The record goes first; if the bytes stay for now, the sweep finds them without one.
            let event = AuditEvent {
                at_ms: now_ms(),
                kind: "artifact.discarded",
                actor: "system".to_owned(),
                resource: id.clone(),
                details: self.owner.details(),
            };
            let _ = self.control.parts.store.delete_artifact(self.tenant.clone(), id, event).await;
            self.control.sweep_soon();
        }
        kept
    }

    #[allow(clippy::too_many_arguments)] // they are one artifact's
    async fn write(
        &self,
        artifacts: &Artifacts,
        path: &str,
        id: &str,
        name: &Name,
        content: &mut (dyn AsyncRead + Send + Sync + Unpin),
        mut buffer: Vec<u8>,
        mut is_over: bool,
    ) -> std::result::Result<u64, Failure> {
        let (key, wrapped_key) = artifacts.vault.new_key(name)?;
        let settings = &self.control.parts.settings.artifacts;
        let quota = self.control.artifact_quota(&self.tenant).await?;
        let now = now_ms();
        let mut counted = if is_over { buffer.len() as u64 } else { AHEAD_MIN };
        let (job, session, step) = match self.owner.clone() {
            Owner::Job { id, .. } => (Some(id), None, None),
            Owner::Session { id, step } => (None, Some(id), step),
        };
        let artifact = NewArtifact {
            id: id.to_owned(),
            tenant: self.tenant.clone(),
            job,
            session,
            step,
            name: path.to_owned(),
            content_type: "application/octet-stream".to_owned(),
            size_bytes: counted as i64,
            sha256: None,
            attempt: Some(Attempt { name: name.attempt().to_owned(), wrapped_key }),
            created_at_ms: now,
            expires_at_ms: now + settings.upload_time.as_millis() as i64,
        };
        let store = &self.control.parts.store;
        store.create_artifact(artifact, quota, None, Vec::new()).await?;
        let mut writing = artifacts.vault.write(name.clone(), key);
        loop {
            let size = writing.size() + buffer.len() as u64;
            if size > counted {
                counted = size + (size / 4).clamp(AHEAD_MIN, AHEAD_MAX);
                store.grow_artifact(self.tenant.clone(), id.to_owned(), counted as i64, quota).await?;
            }
            writing.write(&buffer).await?;
            if is_over {
                break;
            }
            buffer.clear();
            is_over = fill(content, &mut buffer).await?;
        }
        let written = writing.finish().await?;
        let size_bytes = written.size as i64;
        let done = DoneArtifact { id: id.to_owned(), size_bytes, sha256: written.sha256 };
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), done));
        Ok(written.size)
    }
}

/// What another owner of the run had begun to keep went with it.
fn drop_unkept(artifacts: &mut Vec<Artifact>, warnings: &mut Vec<String>, lost: &[String]) {
    let unkept = artifacts.iter().filter(|shown| shown.id.is_none());
    let unkept: Vec<String> =
        unkept.map(|shown| shown.path.clone()).filter(|path| !lost.contains(path)).collect();
    if !unkept.is_empty() {
        artifacts.retain(|shown| !unkept.contains(&shown.path));
        let names = unkept.join(", ");
        warnings.push(format!("another server had these when it went away, so they were not kept: {names}"));
    }
}

/// Reads until the buffer is full, or to the end: true then.
async fn fill(content: &mut (dyn AsyncRead + Send + Sync + Unpin), buffer: &mut Vec<u8>) -> io::Result<bool> {
    while buffer.len() < READ_BYTES {
        let mut rest = content.take((READ_BYTES - buffer.len()) as u64);
        if rest.read_buf(buffer).await? == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Why one was not kept.
enum Failure {
    /// The guest's file could not be read to its end.
    Read(io::Error),
    Quota,
    Away,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<ArtifactError> for Failure {
    fn from(_: ArtifactError) -> Self {
        Self::Away
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::OverQuota { .. }) { Self::Quota } else { Self::Away }
    }
}

#[async_trait]
impl ArtifactDesk for Keeper {
    async fn open(&self, artifact: &str) -> io::Result<Reader> {
        let open = async {
            let record = self.control.artifact_record(&self.tenant, artifact).await?;
            let size = record.size_bytes.max(0) as u64;
            self.control.open_artifact(&record, 0..size)
        };
        let opened: Result<_> = open.await;
        Ok(Box::new(opened.map_err(|error| io::Error::other(error.to_string()))?.into_reader()))
    }

    async fn keep(&self, path: &str, content: &mut (dyn AsyncRead + Send + Sync + Unpin)) -> io::Result<u64> {
        let kept = match self.is_away.load(Ordering::Relaxed) {
            true => Err(Failure::Away),
            false => self.try_keep(path, content).await,
        };
        match kept {
            Ok(size) => Ok(size),
            Err(Failure::Read(error)) => Err(error),
            Err(Failure::Quota) => Err(io::Error::other("the quota for artifacts is used up")),
            Err(Failure::Away) => {
                self.is_away.store(true, Ordering::Relaxed);
                self.lost.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
                Err(io::Error::other("the artifact store does not answer"))
            }
        }
    }
}
