//! The runs of a worker: each attempt at a job and each step once, each under the newest claim that was shown for it, and none for
//! longer than somebody answers for it.

use super::desk::RunDesk;
use super::sessions::Places;
use super::spool::{Sink, Spool};
use crate::answer::Problem;
use cofferdam_api::{ErrorCode, Run, RunCreate, RunEnd as WireEnd, RunSecret, RunState};
use cofferdam_control::{
    Capacity, Checker, Health, Metrics, Phase, RunEnd, RunOrder, RunSignals, SecretFile, StepEnd, StepOrder,
    Worker,
};
use cofferdam_core::{JobId, Limits, Outcome, TaskId};
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

/// For so long a step that nobody answers for is asked to end, before it is cut off.
const STEP_PATIENCE: Duration = Duration::from_secs(60);

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
    places: Mutex<Places>,
    is_draining: AtomicBool,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
pub(super) struct State {
    runs: HashMap<String, Entry>,
    /// The last attempt of jobs that are over, so that no late call begins one again.
    over: HashMap<String, Over>,
    /// The attempt and the claim under which a job may not be begun any more: somebody was told that it was not.
    barred: HashMap<String, (i64, i64, Instant)>,
    slots: u64,
    cpus_millis: u64,
    memory_bytes: u64,
}

struct Over {
    attempt: i64,
    since: Instant,
    /// Its end was heard. One that nobody heard may be asked for at any time, and must never be taken for one that was
    /// not begun.
    is_heard: bool,
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
    is_step: bool,
}

/// What a run does.
pub(super) enum Work {
    Job(Box<RunOrder>),
    Step(Box<StepOrder>),
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs").field("count", &self.state().runs.len()).finish_non_exhaustive()
    }
}

/// A part of the worker's room, given back when its run is over, however it ended.
pub(super) struct Part {
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
        let (state, places, is_draining) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        let metrics = Arc::default();
        let parts = Parts { id, worker, checker, capacity, state, places, is_draining, metrics };
        let runs = Self { parts: Arc::new(parts) };
        let tended = runs.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                tended.end_unanswered();
                tended.forget_old_sessions();
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

    pub(super) fn places(&self) -> MutexGuard<'_, Places> {
        self.parts.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn worker(&self) -> &dyn Worker {
        &*self.parts.worker
    }

    pub(super) fn checker(&self) -> &dyn Checker {
        &*self.parts.checker
    }

    /// Refuses what is meant for another worker.
    pub(super) fn check_worker(&self, meant: &str) -> Result<(), Problem> {
        if meant == self.parts.id {
            return Ok(());
        }
        let message = format!("this is the worker {}, not {meant}", self.parts.id);
        Err(Problem::new(ErrorCode::Unavailable, message, "look at the list of workers again"))
    }

    /// Begins an attempt, or finds it begun. It becomes a part of the trace that came with the request.
    pub(super) fn create(&self, order: RunCreate, traceparent: &str) -> Result<(Run, bool), Problem> {
        self.check_worker(&order.worker_id)?;
        let id = JobId::parse("job_id", &order.job_id)?;
        let task_id = TaskId::parse("task_id", &order.task_id)?;
        let limits = self.parts.checker.check(&order.request)?;
        let RunCreate { job_id, attempt, fence, lease_ms, request, secrets, .. } = order;
        let secrets = secrets.into_iter().map(|RunSecret { path, value }| SecretFile::new(&path, value));
        let secrets = secrets.collect::<Result<_, _>>()?;
        self.begin_once(&job_id, (attempt, fence), lease_ms, traceparent, |state| {
            let part = self.take_part_of(state, &limits)?;
            let lease = Duration::from_millis(lease_ms).min(MAX_LEASE);
            let run = RunOrder { id, task_id, request, attempt, fence, lease, is_begun: false, secrets };
            Ok((Some(part), Work::Job(Box::new(run))))
        })
    }

    /// Begins what `make` says, if it was not begun before and is not over.
    pub(super) fn begin_once(
        &self,
        id: &str,
        (attempt, fence): (i64, i64),
        lease_ms: u64,
        traceparent: &str,
        make: impl FnOnce(&mut State) -> Result<(Option<Part>, Work), Problem>,
    ) -> Result<(Run, bool), Problem> {
        let mut state = self.state();
        if let Some(entry) = state.runs.get_mut(id) {
            if entry.attempt == attempt {
                entry.check(id, attempt, fence)?;
                return Ok((entry.view(id), false));
            }
            if entry.attempt > attempt {
                return Err(outdated(id, "a newer attempt at the job has begun"));
            }
            // Whoever asks for the next attempt has given this one up.
            entry.task.abort();
        }
        if state.is_over(id, attempt) {
            return Err(outdated(id, "the attempt is over"));
        }
        if state.barred.get(id).is_some_and(|(at, under, _)| (attempt, fence) <= (*at, *under)) {
            return Err(outdated(id, "somebody else has taken the job over"));
        }
        self.check_taking()?;
        let (part, work) = make(&mut state)?;
        let lease = Duration::from_millis(lease_ms).min(MAX_LEASE);
        let entry = self.begin(id, (attempt, fence), lease, part, work, traceparent);
        let view = entry.view(id);
        state.runs.insert(id.to_owned(), entry);
        Ok((view, true))
    }

    fn check_taking(&self) -> Result<(), Problem> {
        match self.parts.is_draining.load(Ordering::Relaxed) {
            true => Err(unavailable("the worker is about to stop")),
            false => Ok(()),
        }
    }

    /// Takes room, if there is any and the worker takes work.
    pub(super) fn take_part(&self, limits: &Limits) -> Result<Part, Problem> {
        self.check_taking()?;
        self.take_part_of(&mut self.state(), limits)
    }

    fn take_part_of(&self, state: &mut State, limits: &Limits) -> Result<Part, Problem> {
        let (cpus_millis, memory_bytes) = (u64::from(limits.cpus.millis()), limits.memory_bytes);
        let all = self.parts.capacity;
        let fits = state.slots < all.slots
            && state.cpus_millis.saturating_add(cpus_millis) <= all.cpus_millis
            && state.memory_bytes.saturating_add(memory_bytes) <= all.memory_bytes;
        if !fits {
            return Err(unavailable("the worker has no room for it"));
        }
        state.slots += 1;
        state.cpus_millis += cpus_millis;
        state.memory_bytes += memory_bytes;
        Ok(Part { parts: Arc::clone(&self.parts), cpus_millis, memory_bytes })
    }

    fn begin(
        &self,
        id: &str,
        (attempt, fence): (i64, i64),
        lease: Duration,
        part: Option<Part>,
        work: Work,
        traceparent: &str,
    ) -> Entry {
        let spool = Spool::new();
        let desk = RunDesk::new(Arc::clone(&spool));
        let is_step = matches!(work, Work::Step(_));
        let span = match is_step {
            true => info_span!(target: TRACE, "worker.step", step.id = id),
            false => info_span!(target: TRACE, "worker.run", job.id = id),
        };
        continue_trace(&span, traceparent);
        let cancel = watch::Sender::new(None);
        let cancelled = cancel.subscribe();
        let worker = Arc::clone(&self.parts.worker);
        let (kept, at) = (Arc::clone(&spool), Arc::clone(&desk));
        let metrics = Arc::clone(&self.parts.metrics);
        let run = async move {
            let mut sink = Sink::new(Arc::clone(&kept), at, Arc::clone(&metrics));
            let end = match work {
                Work::Job(run) => {
                    // Nobody sends on the second: here the lease is looked after by the registry.
                    let signals = RunSignals { cancelled, renewed: watch::channel(0).1 };
                    let end = worker.run(*run, &mut sink, signals).await;
                    if let Some(since) = sink.started {
                        metrics.phase(Phase::Run, since.elapsed());
                    }
                    metrics.outcome(&outcome(&end));
                    on_the_wire(end)
                }
                Work::Step(step) => match worker.sessions() {
                    Some(sessions) => step_on_the_wire(sessions.step(*step, &mut sink, cancelled).await),
                    None => step_on_the_wire(StepEnd::Lost { why: "this worker has no sessions".to_owned() }),
                },
            };
            drop((part, sink));
            kept.end(end);
        };
        let task = tokio::spawn(run.instrument(span)).abort_handle();
        Entry { attempt, fence, lease, touched: Instant::now(), spool, desk, cancel, task, is_step }
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
            entry.ask_to_end(&by);
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
        state.remove(id, true);
        Ok(())
    }

    /// Sees to it that an attempt which was not begun will not be, under this claim or an older one.
    pub(super) fn bar(&self, id: &str, attempt: i64, fence: i64) -> Result<(), Problem> {
        let mut state = self.state();
        if state.runs.get(id).is_some_and(|entry| entry.attempt >= attempt) || state.is_over(id, attempt) {
            return Err(outdated(id, "the attempt was begun"));
        }
        state.barred.insert(id.to_owned(), (attempt, fence, Instant::now()));
        Ok(())
    }

    fn end_unanswered(&self) {
        let mut state = self.state();
        for entry in state.runs.values().filter(|entry| entry.is_step && !entry.spool.is_ended()) {
            if entry.touched.elapsed() > entry.lease * 2 {
                // What its interpreter has stays: it is asked to stop, and not cut off.
                entry.ask_to_end("a control plane that went away");
            }
        }
        let is_over = |entry: &Entry| {
            let patience =
                if entry.is_step && !entry.spool.is_ended() { STEP_PATIENCE } else { Duration::ZERO };
            entry.touched.elapsed() > entry.lease * 2 + patience
        };
        let over: Vec<_> =
            state.runs.iter().filter(|(_, entry)| is_over(entry)).map(|(id, _)| id.clone()).collect();
        for id in over {
            state.remove(&id, false);
        }
        state.over.retain(|_, over| !over.is_heard || over.since.elapsed() < REMEMBER);
        state.barred.retain(|_, (_, _, since)| since.elapsed() < REMEMBER);
    }

    /// Takes no new runs.
    pub fn stop_taking(&self) {
        self.parts.is_draining.store(true, Ordering::Relaxed);
    }

    /// Waits until every run has ended and its end was fetched, and until the files of sessions that are to be kept were
    /// fetched, up to a time. What is left then is ended.
    pub async fn drain(&self, time: Duration) {
        let fetched = async {
            while !self.state().runs.is_empty() || self.has_sessions_to_keep() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(time, fetched).await.is_err() {
            let mut state = self.state();
            let ids: Vec<_> = state.runs.keys().cloned().collect();
            ids.iter().for_each(|id| state.remove(id, false));
        }
        self.end_sessions(self.sessions()).await;
    }
}

impl State {
    fn is_over(&self, id: &str, attempt: i64) -> bool {
        self.over.get(id).is_some_and(|over| over.attempt >= attempt)
    }

    fn remove(&mut self, id: &str, is_heard: bool) {
        if let Some(entry) = self.runs.remove(id) {
            entry.task.abort();
            entry.spool.tell();
            let over = Over { attempt: entry.attempt, since: Instant::now(), is_heard };
            self.over.insert(id.to_owned(), over);
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

    fn ask_to_end(&self, by: &str) {
        self.cancel.send_if_modified(|known| {
            let is_news = known.is_none();
            known.get_or_insert_with(|| by.to_owned());
            is_news
        });
    }

    fn view(&self, id: &str) -> Run {
        let state = if self.spool.is_ended() { RunState::Ended } else { RunState::Running };
        let last_seq = self.spool.last_seq();
        Run { job_id: id.to_owned(), attempt: self.attempt, fence: self.fence, state, last_seq }
    }
}

fn unavailable(message: &str) -> Problem {
    Problem::new(ErrorCode::Unavailable, message, "ask another worker, or again in a moment")
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

/// Nobody knows how far a step came.
const LOST: &str = "lost";

fn step_on_the_wire(end: StepEnd) -> WireEnd {
    let failed = |code: String, message: String| WireEnd::Errored { code, message };
    match end {
        StepEnd::Result(result) => match serde_json::to_value(&*result) {
            Ok(result) => WireEnd::Result { result },
            Err(error) => failed("unreadable".to_owned(), error.to_string()),
        },
        StepEnd::Errored(failure) => failed(failure.code, failure.message),
        StepEnd::Lost { why } => failed(LOST.to_owned(), why),
    }
}
