//! Sandboxes made ahead of need. Each serves exactly one job or session, and is gone afterwards like any other.
//!
//! A request is served from the shelf of its own kind: same image, disk, network and the like. The limits that
//! can change are applied when a sandbox is handed out, before anything runs in it. Whatever the pool does not
//! have is made cold; an empty pool is slower, never an error.

mod shelf;
#[cfg(test)]
mod tests;

use cofferdam_backend::{Backend, Result, Sandbox, SandboxSpec};
use shelf::Shelf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How much may wait on the shelves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSettings {
    /// The most sandboxes of one kind.
    pub per_kind: usize,
    /// The most sandboxes in all.
    pub total: usize,
    /// The most memory that they may hold together, by what an idle one was measured to take.
    pub bytes: u64,
    /// How long a sandbox waits before it is taken for one too many.
    pub idle: Duration,
}

/// What an idle sandbox takes, rounded up from measurements.
pub const IDLE_SANDBOX_BYTES: u64 = 1 << 20;

impl Default for PoolSettings {
    fn default() -> Self {
        Self { per_kind: 8, total: 64, bytes: 256 << 20, idle: Duration::from_secs(60) }
    }
}

impl PoolSettings {
    /// The most sandboxes that both bounds allow.
    fn room(&self) -> usize {
        let by_bytes = usize::try_from(self.bytes / IDLE_SANDBOX_BYTES).unwrap_or(usize::MAX);
        self.total.min(by_bytes)
    }
}

/// What the pool has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Requests that were served from a shelf.
    pub warm: u64,
    /// Requests that were served by making a sandbox.
    pub cold: u64,
    /// Sandboxes that wait now.
    pub waiting: usize,
}

#[derive(Default)]
struct State {
    shelves: Vec<Shelf>,
    counts: PoolCounts,
}

impl State {
    fn waiting(&self) -> usize {
        self.shelves.iter().map(Shelf::len).sum()
    }
}

/// The pool. [`Pool::tend`] fills and thins its shelves, for as long as it is polled.
pub struct Pool {
    backend: Arc<dyn Backend>,
    settings: PoolSettings,
    state: Mutex<State>,
    changed: Notify,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("settings", &self.settings).field("counts", &self.counts()).finish()
    }
}

impl Pool {
    pub fn new(backend: Arc<dyn Backend>, settings: PoolSettings) -> Self {
        Self { backend, settings, state: Mutex::default(), changed: Notify::new() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn counts(&self) -> PoolCounts {
        let state = self.state();
        PoolCounts { waiting: state.waiting(), ..state.counts }
    }

    /// Asks for `count` sandboxes of a kind to be kept ready, before the first request for one.
    pub fn keep_ready(&self, spec: &SandboxSpec, count: usize) {
        let mut state = self.state();
        let wanted = count.min(self.settings.per_kind);
        Shelf::for_spec(&mut state.shelves, spec).want_at_least(wanted);
        drop(state);
        self.changed.notify_one();
    }

    /// A sandbox for a request: from its shelf, with the request's limits in force, or made now.
    pub async fn take(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>> {
        while let Some(sandbox) = self.take_waiting(&spec) {
            // One that cannot be limited, or has died, is never handed out; dropping it destroys it.
            if sandbox.change_limits(&spec.limits).await.is_ok() {
                self.state().counts.warm += 1;
                return Ok(sandbox);
            }
        }
        self.state().counts.cold += 1;
        self.backend.create(spec).await
    }

    fn take_waiting(&self, spec: &SandboxSpec) -> Option<Box<dyn Sandbox>> {
        if !self.backend.capabilities().change_limits {
            return None;
        }
        let mut state = self.state();
        let taken = Shelf::for_spec(&mut state.shelves, spec).take(self.settings.per_kind);
        drop(state);
        self.changed.notify_one();
        taken
    }

    /// Fills shelves that want more and thins those that were not asked. Its owner polls it, and ends it by not
    /// polling any more.
    pub async fn tend(&self) -> std::convert::Infallible {
        loop {
            self.thin();
            match self.next_to_make() {
                Some(spec) => self.make(spec).await,
                None => {
                    let _ = tokio::time::timeout(self.settings.idle / 4, self.changed.notified()).await;
                }
            }
        }
    }

    fn next_to_make(&self) -> Option<SandboxSpec> {
        let state = self.state();
        if state.waiting() >= self.settings.room() {
            return None;
        }
        state.shelves.iter().find_map(|shelf| shelf.wants_more(Instant::now()))
    }

    async fn make(&self, spec: SandboxSpec) {
        let made = self.backend.create(spec.clone()).await;
        let mut state = self.state();
        let shelf = Shelf::for_spec(&mut state.shelves, &spec);
        match made {
            Ok(sandbox) => shelf.put(sandbox),
            // Requests then make their own and report why that fails; this only must not spin.
            Err(_) => shelf.back_off(self.settings.idle),
        }
    }

    fn thin(&self) {
        let mut surplus = Vec::new();
        {
            let mut state = self.state();
            for shelf in &mut state.shelves {
                surplus.extend(shelf.surplus(self.settings.idle));
            }
            state.shelves.retain(|shelf| !shelf.is_forgotten());
        }
        // Outside the lock, as dropping a sandbox destroys it.
        drop(surplus);
    }

    /// Destroys what waits, and waits until it is gone.
    pub async fn drain(&self) -> Result<()> {
        let shelves = std::mem::take(&mut self.state().shelves);
        for sandbox in shelves.into_iter().flat_map(Shelf::into_sandboxes) {
            sandbox.destroy().await?;
        }
        Ok(())
    }
}
