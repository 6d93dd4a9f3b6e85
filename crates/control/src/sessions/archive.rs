//! The files of sessions, without their sandboxes: written under a key of their own, read back, and swept away.

use super::archive_seen::{Seen, watch_over};
use super::together::Together;
use crate::artifacts::over_quota;
use crate::session_worker::{FileReader, Placed, SessionFailure, SessionWorker};
use crate::worker::Worker;
use crate::{Control, ControlError, Result, now_ms};
use cofferdam_artifacts::{Name, ObjectKey};
use cofferdam_core::InvalidValue;
use cofferdam_store::{ArchiveRecord, NewArchive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// What is on its way from the sandbox to the place, at most.
const BETWEEN: usize = 1 << 20;

/// As much as is sealed at once.
const PIECE: usize = 64 << 10;

/// As many at a time as a sweep takes up.
const BATCH: i64 = 100;

/// How often the sweep looks, where nobody tells it to.
const SWEEP: Duration = Duration::from_secs(30);

/// Where files come from.
#[derive(Clone)]
pub(super) enum Source {
    /// A session that has a sandbox. It stands still while they are read.
    Live {
        worker: Arc<dyn Worker>,
        placed: Placed,
        /// Others that are to have the same.
        together: Option<Together>,
    },
    Kept(ArchiveRecord),
}

/// Files that were written away and that no record speaks of yet.
pub(super) struct Written {
    pub(super) attempt: String,
    pub(super) size_bytes: i64,
    pub(super) quota_bytes: i64,
}

impl Control {
    /// Has files read from where they are, by one who takes the stream. What comes back without an error was whole.
    pub(super) async fn read_source<T, F: Future<Output = Result<T>> + Send>(
        &self,
        source: &Source,
        most: u64,
        take: impl FnOnce(FileReader) -> F + Send,
    ) -> Result<T> {
        match source {
            Source::Kept(archive) => {
                let (from, seen) = self.open_archive(archive)?;
                let taken = take(from).await;
                seen.judge(taken)
            }
            Source::Live { worker, placed, .. } => {
                let sessions = worker.sessions().ok_or(super::context_restart::UNREACHABLE)?;
                let held = sessions.hold(placed).await.map_err(unkept)?;
                let read = read_live(sessions, placed, most, take).await;
                drop(held);
                read
            }
        }
    }

    /// Puts files into a session that was just made: straight from the other one where the same worker has both, and as
    /// a stream otherwise.
    pub(super) async fn put_source(
        &self,
        source: &Source,
        worker: &Arc<dyn Worker>,
        into: &Placed,
    ) -> Result<()> {
        let sessions = worker.sessions().ok_or(super::context_restart::UNREACHABLE)?;
        let take = |from: FileReader| async { sessions.restore(into, from).await.map_err(unkept) };
        let Source::Live { worker: owner, placed, together: Some(together) } = source else {
            return self.read_source(source, u64::MAX, take).await;
        };
        let _held = together.still().await?;
        if Arc::ptr_eq(owner, worker) {
            match sessions.copy(placed, into).await {
                Err(failure) if failure.code == "unsupported" => {}
                done => return done.map_err(unkept),
            }
        }
        read_live(owner.sessions().ok_or(super::context_restart::UNREACHABLE)?, placed, u64::MAX, take).await
    }

    /// Writes files away for a session or a snapshot. They have a record that says that they are not wanted yet.
    pub(super) async fn keep_files(&self, tenant: &str, owner: &str, source: &Source) -> Result<Written> {
        let vault = self.artifacts()?.vault.clone();
        let quota_bytes = self.artifact_quota(tenant).await?;
        let name = Name::draw(tenant, owner)?;
        let attempt = name.attempt().to_owned();
        let key = ObjectKey::draw()?;
        let begun = NewArchive {
            owner: owner.to_owned(),
            tenant: tenant.to_owned(),
            attempt: attempt.clone(),
            wrapped_key: vault.master().wrap(&key, &cofferdam_artifacts::archive_about(owner))?,
            writer: self.parts.instance.clone(),
            at_ms: now_ms(),
        };
        self.parts.store.begin_archive(begun).await?;
        let most = u64::try_from(quota_bytes).unwrap_or(0);
        let mut writing = vault.write(name, key);
        let written = self
            .read_source(source, most, |mut from: FileReader| async move {
                let mut piece = vec![0; PIECE];
                loop {
                    let read = from.read(&mut piece).await;
                    match read.map_err(|error| ControlError::Unavailable(error.to_string()))? {
                        0 => return Ok(writing.finish().await?),
                        read => writing.write(&piece[..read]).await?,
                    }
                }
            })
            .await;
        match written {
            Ok(whole) => {
                let size_bytes = i64::try_from(whole.size).unwrap_or(i64::MAX);
                Ok(Written { attempt, size_bytes, quota_bytes })
            }
            Err(error) => {
                self.abandon(owner, attempt).await;
                Err(error)
            }
        }
    }

    /// What was written is not wanted.
    pub(super) async fn abandon(&self, owner: &str, attempt: String) {
        // A store that is gone has told of it elsewhere; what is left goes at the next start.
        let _ = self.parts.store.abandon_archive(owner.to_owned(), attempt).await;
        self.sweep_archives_soon();
    }

    /// Opens what was kept. What is found to be wrong with it is known here, whatever its reader says.
    pub(super) fn open_archive(&self, archive: &ArchiveRecord) -> Result<(FileReader, Seen)> {
        let vault = &self.artifacts()?.vault;
        let name = Name::new(&archive.tenant, &archive.owner, &archive.attempt)?;
        let about = cofferdam_artifacts::archive_about(&archive.owner);
        let key = vault.master().unwrap(&archive.wrapped_key, &about)?;
        let size = u64::try_from(archive.size_bytes).unwrap_or(0);
        Ok(watch_over(vault.read(name, key, size, 0..size).into_reader()))
    }

    /// Has the sweep look at what was just given up.
    pub(crate) fn sweep_archives_soon(&self) {
        self.parts.archives_swept.notify_one();
    }

    /// Starts the sweep of archives that nobody can read any more, for as long as the process lives.
    pub(crate) fn spawn_archive_sweep(&self) {
        if self.parts.artifacts.is_none() {
            return;
        }
        let control = self.clone();
        tokio::spawn(async move {
            loop {
                // At the end the store goes before the sweep does.
                if let Err(error) = control.sweep_archives().await
                    && !control.is_draining()
                {
                    tracing::error!("the sweep of archives was cut short: {error}");
                }
                let _ = tokio::time::timeout(SWEEP, control.parts.archives_swept.notified()).await;
            }
        });
    }

    /// Their keys went first; now their bytes go, then what is known of them, and then what is left of that in the
    /// database's own files.
    pub(crate) async fn sweep_archives(&self) -> Result<()> {
        let (store, vault) = (&self.parts.store, &self.artifacts()?.vault);
        let mut has_swept = false;
        loop {
            let deleting = store.deleting_archives(BATCH).await?;
            if deleting.is_empty() {
                break;
            }
            has_swept = true;
            for (tenant, owner, attempt) in deleting {
                vault.remove_attempt(&Name::new(&tenant, &owner, &attempt)?).await?;
                store.forget_archive(owner, attempt).await?;
            }
        }
        if has_swept {
            self.forget_keys().await?;
        }
        Ok(())
    }

    /// The same for many at once: whoever comes while it is done waits for the next time, which is for all of them.
    pub(super) async fn forget_together(&self) -> Result<()> {
        let forgetting = &self.parts.forgetting;
        let asked = forgetting.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut done = forgetting.done.lock().await;
        if *done >= asked {
            return Ok(());
        }
        let served = forgetting.asked.load(Ordering::SeqCst);
        self.forget_keys().await?;
        *done = served;
        Ok(())
    }

    /// Has keys that were destroyed leave the database's own files, however busy that is.
    pub(super) async fn forget_keys(&self) -> Result<()> {
        for _ in 0..TRIES {
            if self.parts.store.forget_deleted().await? {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        tracing::warn!("the database is too busy to let go of destroyed keys; its log still has them");
        Ok(())
    }
}

/// Who waits for what was deleted to leave the database's own files.
#[derive(Debug, Default)]
pub(crate) struct Forgetting {
    asked: AtomicU64,
    /// Everything that was asked for up to here is done.
    done: tokio::sync::Mutex<u64>,
}

const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Has the files of a session that stands still read, by one who takes the stream.
async fn read_live<T, F: Future<Output = Result<T>> + Send>(
    sessions: &dyn SessionWorker,
    placed: &Placed,
    most: u64,
    take: impl FnOnce(FileReader) -> F + Send,
) -> Result<T> {
    let (reader, writer) = tokio::io::duplex(BETWEEN);
    let (saved, taken) = tokio::join!(sessions.save(placed, Box::new(writer), most), take(Box::new(reader)));
    // Whoever took it knows only that it ended too early.
    saved.map_err(unkept)?;
    taken
}

/// Why files could not be kept or put back.
pub(super) fn unkept(failure: SessionFailure) -> ControlError {
    let SessionFailure { code, message } = failure;
    match code.as_str() {
        "not_permitted" | "invalid" => {
            let (path, why) = message.split_once(": ").unwrap_or(("", &message));
            InvalidValue::new("files", path, why).into()
        }
        "archive_refused" => ControlError::Kept { why: message.trim_start_matches(": ").to_owned() },
        "unsupported" => ControlError::Unsupported { field: "mode", why: message.into() },
        // It was there when the session was made.
        "image_not_found" => ControlError::Conflict { text: message },
        "session_gone" | "session_stale" => super::context_restart::UNREACHABLE,
        _ => ControlError::Unavailable(message),
    }
}

/// What the store says when a tenant keeps as much as it may.
pub(super) fn refused(error: cofferdam_store::StoreError) -> ControlError {
    over_quota(error)
}
