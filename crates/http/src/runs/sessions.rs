//! The sessions of a worker: each placement started once, none begun again that is over, and room for each for as long
//! as it is here. What they are made of is somebody else's.

use super::registry::{Part, Runs, Work};
use crate::answer::Problem;
use cofferdam_api::{ErrorCode, PlaceStart, PlaceStarted, PlaceStep, Run, WorkerSession};
use cofferdam_control::{SessionFailure, SessionOrder, SessionWorker, StepOrder, like_job};
use cofferdam_core::{SessionId, TaskId};
use serde_json::json;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A call that was late for longer than this will not come any more.
const REMEMBER: Duration = Duration::from_secs(900);

/// As much as control takes of why a session is lost, however many bytes a letter has.
const MAX_LOST: usize = 512;

/// Steps are asked for under one claim: whoever else would ask knows that they were begun.
const STEP_FENCE: i64 = 1;

#[derive(Default)]
pub(super) struct Places {
    held: HashMap<String, Held>,
    /// The last placement of sessions that are over, so that no late call begins one again.
    over: HashMap<String, (i64, Instant)>,
}

type Started = Result<String, SessionFailure>;

/// One session that is here, or is being made.
struct Held {
    generation: i64,
    since: Instant,
    archives_on_drain: bool,
    /// The name of its sandbox, once there is one.
    started: watch::Receiver<Option<Started>>,
    /// Of the worker's room; given back with the rest.
    _part: Part,
}

impl Runs {
    pub(super) fn session_worker(&self) -> Result<&dyn SessionWorker, Problem> {
        let none =
            || Problem::new(ErrorCode::Unsupported, "this worker has no sessions", "ask another worker");
        self.worker().sessions().ok_or_else(none)
    }

    /// Starts a session, or finds it started. Whoever asked may go away meanwhile: then it is made all the same.
    pub(super) async fn start_session(&self, order: PlaceStart) -> Result<(PlaceStarted, bool), Problem> {
        self.check_worker(&order.worker_id)?;
        self.session_worker()?;
        let id = SessionId::parse("session_id", &order.session_id)?;
        let task_id = TaskId::parse("task_id", &order.task_id)?;
        let limits = self.checker().check(&like_job(&order.request))?;
        let PlaceStart { session_id, generation, request, .. } = order;
        let (mut started, is_new) = {
            let mut places = self.places();
            let known = places.held.get(&session_id).map(|held| (held.generation, held.started.clone()));
            let over = places.over.get(&session_id).map_or(0, |(generation, _)| *generation);
            match known {
                Some((known, started)) if known == generation => (started, false),
                Some((known, _)) if known > generation => return Err(stale(&session_id)),
                _ if over >= generation => return Err(stale(&session_id)),
                _ => {
                    let part = self.take_part(&limits)?;
                    let archives_on_drain = request.on_drain.as_deref() == Some("archive");
                    let started = self.spawn_start(SessionOrder { id, task_id, generation, request });
                    let held = Held {
                        generation,
                        since: Instant::now(),
                        archives_on_drain,
                        started: started.clone(),
                        _part: part,
                    };
                    places.held.insert(session_id.clone(), held);
                    (started, true)
                }
            }
        };
        let made = started.wait_for(Option::is_some).await.ok().and_then(|made| made.clone());
        match made {
            Some(Ok(sandbox_id)) => Ok((PlaceStarted { session_id, generation, sandbox_id }, is_new)),
            Some(Err(failure)) => Err(refused(failure)),
            None => Err(Problem::new(ErrorCode::Unavailable, "the worker is about to stop", "ask another")),
        }
    }

    fn spawn_start(&self, order: SessionOrder) -> watch::Receiver<Option<Started>> {
        let (tell, started) = watch::channel(None);
        let runs = self.clone();
        tokio::spawn(async move {
            let (id, generation) = (order.id.to_string(), order.generation);
            let made = match runs.session_worker() {
                Ok(sessions) => sessions.start(order).await.map(|started| started.sandbox_id),
                Err(_) => Err(SessionFailure::new("unsupported", "this worker has no sessions")),
            };
            if made.is_err() {
                let mut places = runs.places();
                if places.held.get(&id).is_some_and(|held| held.generation == generation) {
                    places.held.remove(&id);
                }
            }
            tell.send_replace(Some(made));
        });
        started
    }

    /// Ends a placement of a session, and every older one. When this returns, nothing of it runs any more.
    pub(super) async fn terminate_session(&self, id: &str, generation: i64) -> Result<(), Problem> {
        let parsed = SessionId::parse("id", id).map_err(|_| not_here(id))?;
        let held = {
            let mut places = self.places();
            let last = places.over.get(id).map_or(generation, |(last, _)| generation.max(*last));
            places.over.insert(id.to_owned(), (last, Instant::now()));
            match places.held.get(id) {
                Some(held) if held.generation <= generation => places.held.remove(id),
                _ => None,
            }
        };
        let runs = self.clone();
        // Whoever asked may go away: what is being made is ended all the same.
        let ended = tokio::spawn(async move {
            let mut held = held;
            if let Some(held) = &mut held {
                let _ = held.started.wait_for(Option::is_some).await;
            }
            if let Ok(sessions) = runs.session_worker() {
                sessions.terminate(&parsed, generation).await;
            }
            // Its room is free only now.
            drop(held);
        });
        ended.await.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string(), "ask again"))
    }

    /// Begins a step, or finds it begun. It is a run from then on.
    pub(super) fn start_step(
        &self,
        id: &str,
        order: PlaceStep,
        traceparent: &str,
    ) -> Result<(Run, bool), Problem> {
        let PlaceStep { generation, number, lease_ms, request } = order;
        let session = SessionId::parse("id", id).map_err(|_| not_here(id))?;
        self.check_session(id, generation)?;
        let run = format!("{id}-{number}");
        let order = StepOrder { session, generation, number, request };
        self.begin_once(&run, (generation, STEP_FENCE), lease_ms, traceparent, |_| {
            Ok((None, Work::Step(Box::new(order))))
        })
    }

    /// Whether this placement of a session is here.
    pub(super) fn check_session(&self, id: &str, generation: i64) -> Result<(), Problem> {
        match self.places().held.get(id).map(|held| held.generation) {
            Some(known) if known == generation => Ok(()),
            Some(_) => Err(stale(id)),
            None => Err(not_here(id)),
        }
    }

    /// The sessions that are here, for whoever keeps the list of all.
    pub fn sessions(&self) -> Vec<WorkerSession> {
        let lost = self.worker().sessions().map(SessionWorker::lost).unwrap_or_default();
        let why = |id: &str, generation: i64| {
            let mut lost = lost.iter().filter(|(at, _)| at.id.as_str() == id && at.generation == generation);
            lost.next().map(|(_, why)| why.chars().take(MAX_LOST).collect())
        };
        let places = self.places();
        let here = places.held.iter().map(|(id, held)| WorkerSession {
            id: id.clone(),
            generation: held.generation,
            age_ms: u64::try_from(held.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            lost: why(id, held.generation),
        });
        here.collect()
    }

    /// Ends sessions that were listed.
    pub async fn end_sessions(&self, sessions: Vec<WorkerSession>) {
        for WorkerSession { id, generation, .. } in sessions {
            // What is no id was never here.
            let _ = self.terminate_session(&id, generation).await;
        }
    }

    pub(super) fn forget_old_sessions(&self) {
        self.places().over.retain(|_, (_, since)| since.elapsed() < REMEMBER);
    }

    /// Whether there is a session whose files are to be kept before the worker stops.
    pub(super) fn has_sessions_to_keep(&self) -> bool {
        self.places().held.values().any(|held| held.archives_on_drain)
    }
}

fn not_here(id: &str) -> Problem {
    let message = format!("the session {id} is not here");
    Problem::new(ErrorCode::NotFound, message, "it has ended, or was never started here")
}

fn stale(id: &str) -> Problem {
    let message = format!("another placement of the session {id} is newer");
    let mut problem = Problem::new(ErrorCode::WrongState, message, "look at the session in the store again");
    problem.details = json!({"session_id": id});
    problem
}

/// What a worker says of a session that it could not make, with the code that control knows.
fn refused(failure: SessionFailure) -> Problem {
    let SessionFailure { code, message } = failure;
    let kind = match code.as_str() {
        "invalid" | "unsupported" => ErrorCode::Invalid,
        _ => ErrorCode::Unavailable,
    };
    let mut problem = Problem::new(kind, message, "change the request, or ask another worker");
    problem.details = json!({"failure": code});
    problem
}
