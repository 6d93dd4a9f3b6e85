//! Children of one session that are to have the same files. Each has its sandbox before the session stands still; that it
//! does once for all of them, until the last has its copy.

use crate::session_worker::Hold;
use crate::{ControlError, Result};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// A child that waits.
type Waiting = oneshot::Sender<Arc<Hold>>;

/// With this a child says that it waits.
#[derive(Clone)]
pub(super) struct Together(mpsc::Sender<Waiting>);

/// The children, as they come.
pub(super) struct Gathering {
    coming: mpsc::Receiver<Waiting>,
    here: Vec<Waiting>,
    count: usize,
}

/// For so many children.
pub(super) fn gather(count: usize) -> (Together, Gathering) {
    let (say, coming) = mpsc::channel(count.max(1));
    (Together(say), Gathering { coming, here: Vec::new(), count })
}

impl Together {
    /// Waits until every child has its sandbox and the session stands still, which it does until each has dropped this.
    pub(super) async fn still(&self) -> Result<Arc<Hold>> {
        let (go, wait) = oneshot::channel();
        let other = || ControlError::Unavailable("another of the children could not be made".to_owned());
        self.0.send(go).await.map_err(|_| other())?;
        wait.await.map_err(|_| other())
    }
}

impl Gathering {
    /// Waits until all are here; nothing where nobody is left who could come. Who stops waiting loses nobody.
    pub(super) async fn all(&mut self) -> Option<()> {
        while self.here.len() < self.count {
            self.here.push(self.coming.recv().await?);
        }
        Some(())
    }

    /// Has all of them go on.
    pub(super) fn go(&mut self, held: Hold) {
        let held = Arc::new(held);
        for child in self.here.drain(..) {
            let _ = child.send(Arc::clone(&held));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    struct Thaws(Arc<AtomicBool>);

    impl Drop for Thaws {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn it_stands_still_from_the_last_that_comes_to_the_last_that_goes() {
        let (together, mut gathering) = gather(2);
        let is_thawed = Arc::new(AtomicBool::new(false));
        let first = tokio::spawn({
            let together = together.clone();
            async move { together.still().await }
        });
        let second = tokio::spawn(async move { together.still().await });
        gathering.all().await.expect("both come");
        gathering.go(Hold::of(Thaws(Arc::clone(&is_thawed))));
        drop(first.await.unwrap().unwrap());
        let last = second.await.unwrap().unwrap();
        assert!(!is_thawed.load(Ordering::SeqCst), "one has it");
        drop(last);
        assert!(is_thawed.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn nobody_waits_for_one_that_does_not_come() {
        let (together, mut gathering) = gather(2);
        let waits = tokio::spawn(async move { together.still().await });
        tokio::task::yield_now().await;
        assert!(tokio::time::timeout(Duration::ZERO, gathering.all()).await.is_err(), "one is not here");
        drop(gathering);
        let error = waits.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("another of the children"), "{error}");
    }
}
