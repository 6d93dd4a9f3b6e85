//! The task that opens and closes gates.

use super::Gate;
use crate::worker::Health;
use crate::{Control, now_ms};
use cofferdam_store::Probe;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How often is looked while something is wrong, and while nothing is.
const SOON: Duration = Duration::from_secs(1);
const AT_TIMES: Duration = Duration::from_secs(2);

/// The gates of the store; at most one of them is closed.
const STORE: [Gate; 3] = [Gate::StoreReadOnly, Gate::StoreFull, Gate::StoreUnreachable];

impl Control {
    /// Starts the task that watches over the store and the worker, for as long as the process lives.
    pub(crate) fn spawn_watch(&self) {
        let control = self.clone();
        let failures = self.parts.store.failures();
        tokio::spawn(async move { control.watch(failures).await });
    }

    async fn watch(&self, mut failures: watch::Receiver<u64>) {
        loop {
            // A failed write does not say why in a way that can be told apart; a probe does.
            let has_failed = failures.has_changed().unwrap_or(false);
            failures.mark_unchanged();
            let is_wrong = STORE.into_iter().any(|gate| self.parts.gates.is_closed(gate));
            let found = match has_failed || is_wrong {
                true => self.parts.store.probe_writing(now_ms()).await,
                false => self.parts.store.probe_reading().await,
            };
            self.note_store(found);
            self.note_worker(self.parts.fleet.health().await);
            self.look_at_backends().await;
            let pause = if self.parts.gates.closed().next().is_some() { SOON } else { AT_TIMES };
            let _ = timeout(pause, async {
                tokio::select! {
                    _ = failures.changed() => failures.mark_changed(),
                    () = self.parts.trouble.notified() => {}
                }
            })
            .await;
            // Someone whose every write fails does not make this spin.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn note_store(&self, found: Probe) {
        let (closed, said) = match found {
            Probe::Sound => (None, String::new()),
            Probe::ReadOnly(said) => (Some(Gate::StoreReadOnly), said),
            Probe::Full(said) => (Some(Gate::StoreFull), said),
            Probe::Unreachable(said) => (Some(Gate::StoreUnreachable), said),
        };
        self.set_gates(&STORE, closed, &said);
    }

    pub(crate) fn note_worker(&self, health: Health) {
        let (closed, said) = match health {
            Health::Ready => (None, String::new()),
            Health::NoWorker => (Some(Gate::NoWorker), String::new()),
            Health::BackendUnhealthy(said) => (Some(Gate::BackendUnhealthy), said),
        };
        self.set_gates(&[Gate::NoWorker, Gate::BackendUnhealthy], closed, &said);
    }

    pub(super) fn set_gates(&self, among: &[Gate], closed: Option<Gate>, said: &str) {
        for gate in among.iter().copied() {
            if Some(gate) == closed {
                if self.parts.gates.close(gate) {
                    tracing::error!(gate = gate.as_str(), said, "a gate is closed: {}", gate.reason());
                }
            } else if self.parts.gates.open(gate) {
                tracing::warn!(gate = gate.as_str(), "a gate is open again");
                // Whatever waited for it need not wait for the next sweep.
                self.parts.fleet.changed.notify_one();
            }
        }
    }
}
