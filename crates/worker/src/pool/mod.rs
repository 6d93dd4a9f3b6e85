//! Sandboxes made ahead of need, some with an interpreter that has started in them. Each serves exactly one job or
//! session, and is gone afterwards like any other.
//!
//! A request is served from the shelf of its own kind: same image, disk, network, runtime and the like. The
//! limits that can change are applied when a sandbox is handed out, before any of the request's code runs in it.
//! Whatever the pool does not have is made cold; an empty pool is slower, never an error.

mod interpreter;
mod job;
mod shelf;
#[cfg(test)]
mod tests;
mod waiting;

pub use interpreter::{Taken, WaitingInterpreter};
pub use shelf::Held;

use crate::runtime::Runtime;
use cofferdam_backend::{Backend, Result, Sandbox, SandboxSpec};
use shelf::{Kind, Shelf, Take, Wish};
#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, PoisonError};
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use waiting::{Told, Waiting};

/// How much may wait on the shelves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSettings {
    /// The most sandboxes of one kind.
    pub per_kind: usize,
    /// The most sandboxes in all.
    pub total: usize,
    /// The most memory that they may hold together, by what one of each kind was measured to take.
    pub bytes: u64,
    /// How long a sandbox waits before it is taken for one too many.
    pub idle: Duration,
}

/// A sandbox in the making is waited for at most so long; then one is made for the request.
const JOIN_MAX: Duration = Duration::from_millis(100);

/// More at once than this only make each other slow.
const MAKERS_MAX: usize = 4;

/// How often those in the making are looked at when the pool is drained, and for how long.
const DRAIN_LOOK: Duration = Duration::from_millis(10);
const DRAIN_MAX: Duration = Duration::from_secs(10);

impl Default for PoolSettings {
    fn default() -> Self {
        Self { per_kind: 8, total: 64, bytes: 256 << 20, idle: Duration::from_secs(60) }
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
    /// Nothing is made any more.
    is_drained: bool,
}

impl State {
    fn waiting(&self) -> usize {
        self.shelves.iter().map(Shelf::len).sum()
    }

    /// Those that wait, and those that soon will.
    fn promised(&self) -> usize {
        self.shelves.iter().map(|shelf| shelf.len() + shelf.making()).sum()
    }

    fn bytes(&self) -> u64 {
        self.shelves.iter().map(Shelf::bytes).sum()
    }
}

/// The pool. [`Pool::tend`] fills and thins its shelves, for as long as it is polled.
pub struct Pool {
    backend: Arc<dyn Backend>,
    settings: PoolSettings,
    /// Whether one that waits can have other limits than it was made with.
    changes_limits: bool,
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
        let changes_limits = backend.capabilities().change_limits;
        Self { backend, settings, changes_limits, state: Mutex::default(), changed: Notify::new() }
    }

    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    fn kind(&self, spec: SandboxSpec, runtime: Option<&'static Runtime>, held: Held) -> Kind {
        let (changes_limits, sandbox_bytes) = (self.changes_limits, self.backend.idle_bytes());
        Kind { spec, runtime, _held: held, told: Told::default(), changes_limits, sandbox_bytes }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn counts(&self) -> PoolCounts {
        let state = self.state();
        PoolCounts { waiting: state.waiting(), ..state.counts }
    }

    /// Asks for `count` sandboxes of a kind to be kept ready, before the first request for one; with a runtime
    /// that can be started ahead, with its interpreter waiting in them.
    pub fn keep_ready(&self, spec: &SandboxSpec, runtime: Option<&'static Runtime>, count: usize) {
        let mut state = self.state();
        let wanted = count.min(self.settings.per_kind);
        Shelf::of(&mut state.shelves, &self.kind(spec.clone(), runtime, None)).want_at_least(wanted);
        drop(state);
        self.changed.notify_one();
    }

    /// A sandbox for a request: from its shelf, with the request's limits in force, or made now.
    pub async fn take(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>> {
        let kind = self.kind(spec, None, None);
        match self.take_warm(&kind).await {
            Some(waiting) => Ok(waiting.sandbox),
            None => self.backend.create(kind.spec).await,
        }
    }

    /// A sandbox that is like none that waits.
    pub(crate) async fn make_alone(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>> {
        self.state().counts.cold += 1;
        self.backend.create(spec).await
    }

    /// One from the shelf, limited as the request wants it. Where there is none, it counts as a cold start.
    async fn take_warm(&self, kind: &Kind) -> Option<Waiting> {
        while let Some(waiting) = self.take_waiting(kind).await {
            // One that cannot be limited, or has died, is never handed out; dropping it destroys it.
            if waiting.is_alive() && self.limit(&waiting, kind).await.is_ok() {
                self.state().counts.warm += 1;
                return Some(waiting);
            }
        }
        self.state().counts.cold += 1;
        None
    }

    /// Puts the request's limits in force, unless the sandbox was made with them.
    async fn limit(&self, waiting: &Waiting, kind: &Kind) -> Result<()> {
        match self.changes_limits {
            true => waiting.sandbox.change_limits(&kind.spec.limits).await,
            // Nothing has asked it yet whether it is still there.
            false => waiting.sandbox.stats().await.map(drop),
        }
    }

    async fn take_waiting(&self, kind: &Kind) -> Option<Waiting> {
        if !kind.can_wait() {
            return None;
        }
        let taken = Shelf::of(&mut self.state().shelves, kind).take(self.settings.per_kind);
        self.changed.notify_one();
        match taken {
            Take::Now(waiting) => Some(waiting),
            Take::Soon(coming) => tokio::time::timeout(JOIN_MAX, coming).await.ok()?.ok(),
            Take::None => None,
        }
    }

    /// Says that a request which had a sandbox of this kind has got its answer.
    fn answered(&self, kind: &Kind) {
        Shelf::of(&mut self.state().shelves, kind).hurry();
        self.changed.notify_one();
    }

    /// Fills shelves that want more and thins those that were not asked. Its owner polls it, and ends it by not
    /// polling any more.
    pub async fn tend(&self) -> Infallible {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut makers: Vec<_> =
            (0..processors.min(MAKERS_MAX)).map(|_| Box::pin(self.make_and_thin())).collect();
        poll_fn(|context| {
            for maker in &mut makers {
                if let Poll::Ready(never) = maker.as_mut().poll(context) {
                    match never {}
                }
            }
            Poll::Pending
        })
        .await
    }

    async fn make_and_thin(&self) -> Infallible {
        loop {
            self.thin();
            let rest = match self.next_to_make() {
                Wish::Now(kind) => {
                    // There may be work for another one, too.
                    self.changed.notify_one();
                    self.make(*kind).await;
                    continue;
                }
                Wish::At(time) => time.saturating_duration_since(Instant::now()),
                Wish::Nothing => self.settings.idle / 4,
            };
            let _ = tokio::time::timeout(rest, self.changed.notified()).await;
        }
    }

    /// What to make next; it is counted as in the making from here on.
    fn next_to_make(&self) -> Wish {
        let mut state = self.state();
        if state.is_drained || state.promised() >= self.settings.total {
            return Wish::Nothing;
        }
        let left = self.settings.bytes.saturating_sub(state.bytes());
        let mut soonest: Option<Instant> = None;
        for shelf in &mut state.shelves {
            match shelf.wants_more(Instant::now(), left) {
                Wish::Now(kind) => return Wish::Now(kind),
                Wish::At(time) => soonest = Some(soonest.map_or(time, |other| other.min(time))),
                Wish::Nothing => {}
            }
        }
        soonest.map_or(Wish::Nothing, Wish::At)
    }

    async fn make(&self, kind: Kind) {
        let mut making = Making { pool: self, kind: &kind, made: None };
        making.made = Some(Waiting::make(&*self.backend, &kind).await);
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

    /// Destroys what waits, and what is being made, and waits until it is gone. Nothing waits here from then on.
    pub async fn drain(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            let (waiting, left) = {
                let mut state = self.state();
                state.is_drained = true;
                let waiting: Vec<_> = state.shelves.iter_mut().flat_map(Shelf::clear).collect();
                (waiting, state.promised())
            };
            for waiting in waiting {
                waiting.sandbox.destroy().await?;
            }
            if left == 0 || began.elapsed() >= DRAIN_MAX {
                return Ok(());
            }
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    }
}

/// A sandbox in the making. However that ends, its shelf hears of it.
struct Making<'p> {
    pool: &'p Pool,
    kind: &'p Kind,
    made: Option<Result<Waiting>>,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        let shelf = Shelf::of(&mut state.shelves, self.kind);
        match self.made.take() {
            Some(Ok(waiting)) => shelf.put(waiting),
            // Requests then make their own and report why that fails; this only must not spin.
            Some(Err(_)) => shelf.back_off(self.pool.settings.idle),
            None => shelf.give_up(),
        }
    }
}
