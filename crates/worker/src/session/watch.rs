//! Watches of a session: what changed in a folder, numbered, with the last of it kept for who was cut off.

use super::{SessionError, Sessions};
use cofferdam_backend::{BackendError, Change, EntryKind, Watched, Watcher};
use cofferdam_core::{GuestPath, InvalidValue, SessionId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// So many folders of a session are watched at once.
const MAX_WATCHES: usize = 8;

/// So many changes are kept of each.
const MAX_KEPT: usize = 4096;

/// For so long a watch goes on without anybody who follows it.
const UNFOLLOWED_MAX: Duration = Duration::from_secs(60);

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub seq: u64,
    /// Below the folder that is watched; bytes that are not UTF-8 are replaced.
    pub path: String,
    pub kind: EntryKind,
    pub change: Change,
}

/// What changed after a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchNews {
    pub changes: Vec<FileChange>,
    /// Something before these, or among them, was dropped.
    pub has_gap: bool,
    /// Up to where this goes.
    pub last_seq: u64,
    /// The folder is gone, and nothing more comes.
    pub is_over: bool,
}

#[derive(Debug)]
struct Kept {
    changes: VecDeque<FileChange>,
    /// Whoever has seen less than this has missed something.
    complete_after: u64,
    last_seq: u64,
    is_over: bool,
    followed: Instant,
}

#[derive(Debug)]
struct Watch {
    kept: Mutex<Kept>,
    news: Notify,
}

impl Watch {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, news: Vec<Watched>) {
        let mut kept = self.kept();
        for one in news {
            kept.last_seq += 1;
            let seq = kept.last_seq;
            match one {
                // Whoever goes on from before this number has missed something.
                Watched::Missed => {
                    kept.complete_after = seq;
                    kept.changes.clear();
                }
                Watched::Changed { path, kind, change } => {
                    let path = String::from_utf8_lossy(&path).into_owned();
                    kept.changes.push_back(FileChange { seq, path, kind, change });
                }
            }
            if kept.changes.len() > MAX_KEPT
                && let Some(dropped) = kept.changes.pop_front()
            {
                kept.complete_after = dropped.seq;
            }
        }
        drop(kept);
        self.news.notify_waiters();
    }
}

type ByFolder = HashMap<GuestPath, (Arc<Watch>, JoinHandle<()>)>;

/// The watches of one session, by folder.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<ByFolder>);

impl Watches {
    fn all(&self) -> MutexGuard<'_, ByFolder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, path: &GuestPath) -> Option<Arc<Watch>> {
        let mut all = self.all();
        all.retain(|_, (_, task)| !task.is_finished());
        all.get(path).map(|(watch, _)| Arc::clone(watch))
    }

    /// Ends them all: they must not hold up what they watch.
    pub(super) fn end(&self) {
        for (_, (_, task)) in self.all().drain() {
            task.abort();
        }
    }

    fn add(&self, path: &GuestPath, watcher: Box<dyn Watcher>) -> Result<Arc<Watch>, SessionError> {
        let mut all = self.all();
        if let Some((watch, _)) = all.get(path) {
            return Ok(Arc::clone(watch));
        }
        if all.len() >= MAX_WATCHES {
            let fix = format!(
                "a session has at most {MAX_WATCHES} watches; let go of one, which ends it within a minute"
            );
            return Err(InvalidValue::new("path", path.as_str(), fix).into());
        }
        // Numbers go on from those of a watch of the same folder that has ended: time does, and is quicker.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let first = u64::try_from(now.as_micros()).unwrap_or(0);
        let kept = Kept {
            changes: VecDeque::new(),
            complete_after: first,
            last_seq: first,
            is_over: false,
            followed: Instant::now(),
        };
        let watch = Arc::new(Watch { kept: Mutex::new(kept), news: Notify::new() });
        let task = tokio::spawn(keep(Arc::clone(&watch), watcher));
        all.insert(path.clone(), (Arc::clone(&watch), task));
        Ok(watch)
    }
}

/// Keeps what a watcher tells, until nobody wants to know or there is nothing to tell any more.
async fn keep(watch: Arc<Watch>, mut watcher: Box<dyn Watcher>) {
    loop {
        let until = watch.kept().followed + UNFOLLOWED_MAX;
        tokio::select! {
            news = watcher.next() => match news {
                Ok(news) => watch.take(news),
                Err(_) => {
                    watch.kept().is_over = true;
                    return watch.news.notify_waiters();
                }
            },
            () = tokio::time::sleep_until(until) => {
                if watch.kept().followed + UNFOLLOWED_MAX <= Instant::now() {
                    watch.kept().is_over = true;
                    return watch.news.notify_waiters();
                }
            }
        }
    }
}

impl Sessions {
    /// What changed in a folder after a number; where nothing did, what does within a time. Without a number it begins
    /// now, and the answer says where that is.
    pub async fn watch_files(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        after: Option<u64>,
        time: Duration,
    ) -> Result<WatchNews, SessionError> {
        let live = self.find(id, generation)?;
        let watch = match live.watches.find(path) {
            Some(watch) => watch,
            None => {
                let watcher = match live.sandbox.watch(path).await {
                    // It was listed a moment ago, and something else is there now.
                    Err(BackendError::Gone { .. }) => return Err(SessionError::Unknown),
                    watcher => watcher?,
                };
                live.watches.add(path, watcher)?
            }
        };
        drop(live);
        let deadline = Instant::now() + time;
        loop {
            let waiting = watch.news.notified();
            tokio::pin!(waiting);
            waiting.as_mut().enable();
            {
                let mut kept = watch.kept();
                kept.followed = Instant::now().max(deadline);
                let last_seq = kept.last_seq;
                let Some(after) = after else {
                    return Ok(WatchNews {
                        changes: Vec::new(),
                        has_gap: false,
                        last_seq,
                        is_over: kept.is_over,
                    });
                };
                let has_gap = after < kept.complete_after;
                let changes: Vec<_> =
                    kept.changes.iter().filter(|change| change.seq > after).cloned().collect();
                if has_gap || !changes.is_empty() || kept.is_over || Instant::now() >= deadline {
                    return Ok(WatchNews { changes, has_gap, last_seq, is_over: kept.is_over });
                }
            }
            let _ = tokio::time::timeout_at(deadline, waiting).await;
        }
    }
}
