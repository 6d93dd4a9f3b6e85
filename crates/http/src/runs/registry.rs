//! The runs of a worker: each attempt at a job once, each under the newest claim that was shown for it, and none for
//! longer than somebody answers for it.

use super::desk::RunDesk;
use super::spool::{Sink, Spool};
use crate::answer::Problem;
use cofferdam_api::{ErrorCode, Run, RunCreate, RunEnd as WireEnd, RunSecret, RunState};
use cofferdam_control::{
    Capacity, Checker, Health, Metrics, Phase, RunEnd, RunOrder, RunSignals, SecretFile, Worker,
};
use cofferdam_core::{JobId, Outcome, TaskId};
use cofferdam_telemetry::{TRACE, continue_trace};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tracing::{Instrument, info_span};

/// How often runs that nobody answers for are looked for.
const LOOK: Duration = Duration::from_millis(500);

/// A call that was late for longer than this will not come any more.
const REMEMBER: Duration = Duration::from_secs(900);

/// The longest lease that is taken; a typing error must not keep a run for days.
const MAX_LEASE: Duration = Duration::from_secs(600);

/// The runs of one worker.
#[derive(Clone)]
pub struct Runs {
    parts: Arc<Parts>,
}

struct Parts {
    id: String,
    worker: Arc<dyn Worker>,
    checker: Arc<dyn Checker>,
    capacity: Capacity,
    state: Mutex<State>,
    is_draining: AtomicBool,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct State {
    runs: HashMap<String, Entry>,
    /// The last attempt of jobs that are over, so that no late call begins one again.
    over: HashMap<String, (i64, Instant)>,
    slots: u64,
    cpus_millis: u64,
    memory_bytes: u64,
}

struct Entry {
    attempt: i64,
    fence: i64,
    lease: Duration,
    touched: Instant,
    spool: Arc<Spool>,
    desk: Arc<RunDesk>,
    cancel: watch::Sender<Option<String>>,
    task: AbortHandle,
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs").field("count", &self.state().runs.len()).finish_non_exhaustive()
    }
}

/// A part of the worker's room, given back when its run is over, however it ended.
struct Part {
    parts: Arc<Parts>,
    cpus_millis: u64,
    memory_bytes: u64,
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut state = self.parts.state();
        state.slots -= 1;
        state.cpus_millis -= self.cpus_millis;
        state.memory_bytes -= self.memory_bytes;
    }
}

impl Parts {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    /// Starts with none, and looks after them for as long as the process lives.
    pub fn new(id: String, worker: Arc<dyn Worker>, checker: Arc<dyn Checker>, capacity: Capacity) -> Self {
        let (state, is_draining) = (Mutex::default(), AtomicBool::new(false));
        let metrics = Arc::default();
        let parts = Parts { id, worker, checker, capacity, state, is_draining, metrics };
        let runs = Self { parts: Arc::new(parts) };
        let tended = runs.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                tended.end_unanswered();
            }
        });
        runs
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.parts.state()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// Everything that is counted here, in the text form of Prometheus.
    pub(super) async fn metrics_text(&self) -> String {
        let used = {
            let State { slots, cpus_millis, memory_bytes, .. } = &*self.state();
            Capacity { slots: *slots, cpus_millis: *cpus_millis, memory_bytes: *memory_bytes }
        };
        let worker = &self.parts.worker;
        let has_problem = matches!(worker.health().await, Health::BackendUnhealthy(_));
        self.parts.metrics.worker_text(used, worker.counts(), has_problem)
    }

    /// Begins an attempt, or finds it begun. It becomes a part of the trace that came with the request.
    pub(super) fn create(&self, order: RunCreate, traceparent: &str) -> Result<(Run, bool), Problem> {
        if order.worker_id != self.parts.id {
            let message = format!("this is the worker {}, not {}", self.parts.id, order.worker_id);
            return Err(Problem::new(ErrorCode::Unavailable, message, "look at the list of workers again"));
        }
        let id = JobId::parse("job_id", &order.job_id)?;
        let task_id = TaskId::parse("task_id", &order.task_id)?;
        let limits = self.parts.checker.check(&order.request)?;
        let secrets =
            order.secrets.into_iter().map(|RunSecret { path, value }| SecretFile::new(&path, value));
        let secrets = secrets.collect::<Result<_, _>>()?;
        let mut state = self.state();
        if let Some(entry) = state.runs.get_mut(&order.job_id) {
            if entry.attempt == order.attempt {
                entry.check(&order.job_id, order.attempt, order.fence)?;
                return Ok((entry.view(&order.job_id), false));
            }
            if entry.attempt > order.attempt {
                return Err(outdated(&order.job_id, "a newer attempt at the job has begun"));
            }
            // Whoever asks for the next attempt has given this one up.
            entry.task.abort();
        }
        if state.over.get(&order.job_id).is_some_and(|(attempt, _)| *attempt >= order.attempt) {
            return Err(outdated(&order.job_id, "the attempt is over"));
        }
        let cpus_millis = u64::from(limits.cpus.millis());
        self.check_room(&state, cpus_millis, limits.memory_bytes)?;
        state.slots += 1;
        state.cpus_millis += cpus_millis;
        state.memory_bytes += limits.memory_bytes;
        let part = Part { parts: Arc::clone(&self.parts), cpus_millis, memory_bytes: limits.memory_bytes };
        let lease = Duration::from_millis(order.lease_ms).min(MAX_LEASE);
        let run = RunOrder {
            id,
            task_id,
            request: order.request,
            attempt: order.attempt,
            fence: order.fence,
            lease,
            is_begun: false,
            secrets,
        };
        let entry = self.begin(run, part, traceparent);
        let view = entry.view(&order.job_id);
        state.runs.insert(order.job_id, entry);
        Ok((view, true))
    }

    fn check_room(&self, state: &State, cpus_millis: u64, memory_bytes: u64) -> Result<(), Problem> {
        let unavailable = |message: &str| {
            Err(Problem::new(ErrorCode::Unavailable, message, "ask another worker, or again in a moment"))
        };
        if self.parts.is_draining.load(Ordering::Relaxed) {
            return unavailable("the worker is about to stop");
        }
        let all = self.parts.capacity;
        let fits = state.slots < all.slots
            && state.cpus_millis.saturating_add(cpus_millis) <= all.cpus_millis
            && state.memory_bytes.saturating_add(memory_bytes) <= all.memory_bytes;
        if fits { Ok(()) } else { unavailable("the worker has no room for the run") }
    }

    fn begin(&self, run: RunOrder, part: Part, traceparent: &str) -> Entry {
        let (attempt, fence, lease) = (run.attempt, run.fence, run.lease);
        let spool = Spool::new();
        let desk = RunDesk::new(Arc::clone(&spool));
        let span = info_span!(target: TRACE, "worker.run", job.id = %run.id);
        continue_trace(&span, traceparent);
        let cancel = watch::Sender::new(None);
        // Nobody sends on the second: here the lease is looked after by the registry.
        let signals = RunSignals { cancelled: cancel.subscribe(), renewed: watch::channel(0).1 };
        let worker = Arc::clone(&self.parts.worker);
        let (kept, at) = (Arc::clone(&spool), Arc::clone(&desk));
        let metrics = Arc::clone(&self.parts.metrics);
        let run = async move {
            let mut sink = Sink::new(Arc::clone(&kept), at, Arc::clone(&metrics));
            let end = worker.run(run, &mut sink, signals).await;
            if let Some(since) = sink.started {
                metrics.phase(Phase::Run, since.elapsed());
            }
            metrics.outcome(&outcome(&end));
            drop((part, sink));
            kept.end(on_the_wire(end));
        };
        let task = tokio::spawn(run.instrument(span)).abort_handle();
        Entry { attempt, fence, lease, touched: Instant::now(), spool, desk, cancel, task }
    }

    /// Finds a run for somebody who has a claim on it that is not older than the last, and notes that they were there.
    fn with<T>(
        &self,
        id: &str,
        attempt: i64,
        fence: i64,
        act: impl FnOnce(&mut Entry) -> T,
    ) -> Result<T, Problem> {
        let mut state = self.state();
        let entry = state.runs.get_mut(id).ok_or_else(no_such_run)?;
        entry.check(id, attempt, fence)?;
        Ok(act(entry))
    }

    pub(super) fn get(&self, id: &str) -> Result<Run, Problem> {
        let state = self.state();
        state.runs.get(id).map(|entry| entry.view(id)).ok_or_else(no_such_run)
    }

    pub(super) fn renew(&self, id: &str, attempt: i64, fence: i64, lease_ms: u64) -> Result<Run, Problem> {
        self.with(id, attempt, fence, |entry| {
            entry.lease = Duration::from_millis(lease_ms).min(MAX_LEASE);
            entry.view(id)
        })
    }

    pub(super) fn terminate(&self, id: &str, attempt: i64, fence: i64, by: String) -> Result<Run, Problem> {
        self.with(id, attempt, fence, |entry| {
            entry.cancel.send_if_modified(|known| {
                let is_news = known.is_none();
                known.get_or_insert(by);
                is_news
            });
            entry.view(id)
        })
    }

    pub(super) fn spool(&self, id: &str, attempt: i64, fence: i64) -> Result<Arc<Spool>, Problem> {
        self.with(id, attempt, fence, |entry| Arc::clone(&entry.spool))
    }

    pub(super) fn desk(&self, id: &str, attempt: i64, fence: i64) -> Result<Arc<RunDesk>, Problem> {
        self.with(id, attempt, fence, |entry| Arc::clone(&entry.desk))
    }

    /// Whether nobody with a newer claim has come since.
    pub(super) fn is_current(&self, id: &str, attempt: i64, fence: i64) -> bool {
        self.state().runs.get(id).is_some_and(|entry| entry.attempt == attempt && entry.fence == fence)
    }

    /// Forgets a run. One that has not ended is ended.
    pub(super) fn forget(&self, id: &str, attempt: i64, fence: i64) -> Result<(), Problem> {
        let mut state = self.state();
        state.runs.get_mut(id).ok_or_else(no_such_run)?.check(id, attempt, fence)?;
        self.remove(&mut state, id);
        Ok(())
    }

    fn remove(&self, state: &mut State, id: &str) {
        if let Some(entry) = state.runs.remove(id) {
            entry.task.abort();
            entry.spool.tell();
            state.over.insert(id.to_owned(), (entry.attempt, Instant::now()));
        }
    }

    fn end_unanswered(&self) {
        let mut state = self.state();
        let is_over = |entry: &Entry| entry.touched.elapsed() > entry.lease * 2;
        let over: Vec<_> =
            state.runs.iter().filter(|(_, entry)| is_over(entry)).map(|(id, _)| id.clone()).collect();
        for id in over {
            self.remove(&mut state, &id);
        }
        state.over.retain(|_, (_, since)| since.elapsed() < REMEMBER);
    }

    /// Takes no new runs.
    pub fn stop_taking(&self) {
        self.parts.is_draining.store(true, Ordering::Relaxed);
    }

    /// Waits until every run has ended and its end was fetched, up to a time. What is left then is ended.
    pub async fn drain(&self, time: Duration) {
        let fetched = async {
            while !self.state().runs.is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(time, fetched).await.is_err() {
            let mut state = self.state();
            let ids: Vec<_> = state.runs.keys().cloned().collect();
            ids.iter().for_each(|id| self.remove(&mut state, id));
        }
    }
}

impl Entry {
    fn check(&mut self, id: &str, attempt: i64, fence: i64) -> Result<(), Problem> {
        if self.attempt != attempt {
            return Err(outdated(id, "another attempt at the job runs"));
        }
        if fence < self.fence {
            return Err(outdated(id, "somebody else has taken the job over"));
        }
        if fence > self.fence {
            self.fence = fence;
            // Whoever followed under the claim before is told.
            self.spool.tell();
        }
        self.touched = Instant::now();
        Ok(())
    }

    fn view(&self, id: &str) -> Run {
        let state = if self.spool.is_ended() { RunState::Ended } else { RunState::Running };
        let last_seq = self.spool.last_seq();
        Run { job_id: id.to_owned(), attempt: self.attempt, fence: self.fence, state, last_seq }
    }
}

fn no_such_run() -> Problem {
    Problem::new(ErrorCode::NotFound, "there is no such run", "it was never begun here, or is over")
}

fn outdated(id: &str, message: &str) -> Problem {
    let mut problem = Problem::new(ErrorCode::WrongState, message, "look at the job in the store again");
    problem.details = serde_json::json!({"job_id": id});
    problem
}

fn outcome(end: &RunEnd) -> Outcome {
    match end {
        RunEnd::Result(result) => result.outcome.clone(),
        RunEnd::Errored { .. } => Outcome::Failed { code: String::new(), message: String::new() },
        RunEnd::Lost { .. } | RunEnd::Unstarted { .. } => Outcome::Lost,
    }
}

/// The end without the output, which is in the spool.
fn on_the_wire(end: RunEnd) -> WireEnd {
    let failed = |code: &str, message: String| WireEnd::Errored { code: code.to_owned(), message };
    match end {
        RunEnd::Result(mut result) => {
            result.stdout.bytes.clear();
            result.stderr.bytes.clear();
            match serde_json::to_value(&*result) {
                Ok(result) => WireEnd::Result { result },
                Err(error) => failed("unreadable", error.to_string()),
            }
        }
        RunEnd::Errored { code, message } => failed(&code, message),
        RunEnd::Unstarted { why } | RunEnd::Lost { why } => failed("sandbox_failed", why),
    }
}
