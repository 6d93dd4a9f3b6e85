//! The jobs that run under this process: how to end one, how to hear of what it wrote, and by which claim it is ours.

#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError};
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;

#[derive(Debug, Clone, Default)]
pub struct Running {
    /// Of each job those who have it, or try to, the newest last: an attempt may begin while the one before has not let
    /// go yet, and a claim may be refused.
    jobs: Arc<Mutex<Jobs>>,
}

type Jobs = HashMap<String, Vec<Handle>>;

#[derive(Debug, Clone)]
pub struct Handle {
    /// By whom it is to be ended.
    pub cancel: Arc<watch::Sender<Option<String>>>,
    /// Changes with everything that is kept of it, and closes at its end.
    pub news: watch::Sender<u64>,
    /// Changes with each renewal of its lease.
    pub renewed: watch::Sender<u64>,
    /// Whether somebody else has it by now.
    fenced: watch::Sender<bool>,
    /// 0 until it is claimed.
    fence: Arc<AtomicI64>,
    since: Instant,
}

impl Running {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a job, from before it is kept until it has ended.
    pub fn add(&self, id: &str) -> Handle {
        let handle = Handle {
            cancel: Arc::new(watch::Sender::new(None)),
            news: watch::Sender::new(0),
            renewed: watch::Sender::new(0),
            fenced: watch::Sender::new(false),
            fence: Arc::default(),
            since: Instant::now(),
        };
        self.jobs().entry(id.to_owned()).or_default().push(handle.clone());
        handle
    }

    /// Lets go of a job. Whoever else has it, or tries to, keeps it.
    pub fn remove(&self, id: &str, handle: &Handle) {
        let mut jobs = self.jobs();
        let Some(known) = jobs.get_mut(id) else { return };
        known.retain(|known| !known.is(handle));
        if known.is_empty() {
            jobs.remove(id);
        }
    }

    /// The run of a job by a claim.
    pub fn claimed_by(&self, id: &str, fence: i64) -> Option<Handle> {
        self.jobs().get(id)?.iter().find(|handle| handle.fence() == fence).cloned()
    }

    pub fn get(&self, id: &str) -> Option<Handle> {
        self.jobs().get(id)?.last().cloned()
    }

    pub fn is_empty(&self) -> bool {
        self.jobs().is_empty()
    }

    /// The jobs that were claimed before a while, each with its fence.
    pub fn claimed(&self, before: Duration) -> Vec<(String, i64)> {
        let jobs = self.jobs();
        let all = jobs.iter().flat_map(|(id, handles)| handles.iter().map(move |handle| (id, handle)));
        let claimed = all.filter(|(_, handle)| handle.since.elapsed() >= before);
        claimed.map(|(id, handle)| (id.clone(), handle.fence())).filter(|(_, fence)| *fence > 0).collect()
    }
}

impl Handle {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cancel, &other.cancel)
    }

    pub fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    fn fence(&self) -> i64 {
        self.fence.load(Ordering::Relaxed)
    }

    pub fn claim(&self, fence: i64) {
        self.fence.store(fence, Ordering::Relaxed);
    }

    pub fn renew(&self) {
        self.renewed.send_modify(|count| *count += 1);
    }

    /// It is not ours any more.
    pub fn take_away(&self) {
        self.fenced.send_replace(true);
    }

    /// Waits until it is not ours any more.
    pub async fn taken_away(&self) {
        let mut fenced = self.fenced.subscribe();
        if fenced.wait_for(|is_fenced| *is_fenced).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.borrow().is_some()
    }
}
