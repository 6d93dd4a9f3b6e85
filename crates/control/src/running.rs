//! The jobs that run under this process: how to end one, how to hear of what it wrote, and by which claim it is ours.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

#[derive(Debug, Clone, Default)]
pub(crate) struct Running {
    jobs: Arc<Mutex<HashMap<String, Handle>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Handle {
    /// By whom it is to be ended.
    pub(crate) cancel: Arc<watch::Sender<Option<String>>>,
    /// Changes with everything that is kept of it, and closes at its end.
    pub(crate) news: watch::Sender<u64>,
    /// Changes with each renewal of its lease.
    pub(crate) renewed: watch::Sender<u64>,
    /// Whether somebody else has it by now.
    fenced: watch::Sender<bool>,
    /// 0 until it is claimed.
    fence: Arc<AtomicI64>,
    since: Instant,
}

impl Running {
    fn jobs(&self) -> std::sync::MutexGuard<'_, HashMap<String, Handle>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a job, from before it is kept until it has ended.
    pub(crate) fn add(&self, id: &str) -> Handle {
        let handle = Handle {
            cancel: Arc::new(watch::Sender::new(None)),
            news: watch::Sender::new(0),
            renewed: watch::Sender::new(0),
            fenced: watch::Sender::new(false),
            fence: Arc::default(),
            since: Instant::now(),
        };
        self.jobs().insert(id.to_owned(), handle.clone());
        handle
    }

    pub(crate) fn remove(&self, id: &str) {
        self.jobs().remove(id);
    }

    pub(crate) fn get(&self, id: &str) -> Option<Handle> {
        self.jobs().get(id).cloned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs().is_empty()
    }

    /// The jobs that were claimed before a while, each with its fence.
    pub(crate) fn claimed(&self, before: Duration) -> Vec<(String, i64)> {
        let jobs = self.jobs();
        let claimed = jobs.iter().filter(|(_, handle)| handle.since.elapsed() >= before);
        let fences = claimed.map(|(id, handle)| (id.clone(), handle.fence.load(Ordering::Relaxed)));
        fences.filter(|(_, fence)| *fence > 0).collect()
    }
}

impl Handle {
    pub(crate) fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    pub(crate) fn claim(&self, fence: i64) {
        self.fence.store(fence, Ordering::Relaxed);
    }

    pub(crate) fn renew(&self) {
        self.renewed.send_modify(|count| *count += 1);
    }

    /// It is not ours any more.
    pub(crate) fn take_away(&self) {
        self.fenced.send_replace(true);
    }

    /// Waits until it is not ours any more.
    pub(crate) async fn taken_away(&self) {
        let mut fenced = self.fenced.subscribe();
        if fenced.wait_for(|is_fenced| *is_fenced).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.borrow().is_some()
    }
}
