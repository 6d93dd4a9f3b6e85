//! The jobs that run in this process: how to end one, and how to hear of what it wrote.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
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
}

impl Running {
    fn jobs(&self) -> std::sync::MutexGuard<'_, HashMap<String, Handle>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a job, from before it is kept until it has ended.
    pub(crate) fn add(&self, id: &str) -> Handle {
        let handle = Handle { cancel: Arc::new(watch::Sender::new(None)), news: watch::Sender::new(0) };
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
}

impl Handle {
    pub(crate) fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }
}
