//! The worker's interface: what control asks of a worker in another process. It is no part of the API: every call has
//! a service token, and nothing here knows tenants.

mod registry;
mod spool;

pub use registry::Runs;

use crate::answer::{self, Answer, Problem, json};
use crate::body::Body as JsonBody;
use crate::query::Query;
use crate::service::require_token;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cofferdam_api::{RunCreate, RunEvent, RunLease, RunTerminate};
use cofferdam_control::ServiceTokens;
use cofferdam_core::InvalidValue;
use spool::Spool;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// A follower hears something at least this often, so that a dead connection is known from a quiet run. Less than half
/// of the shortest lease.
const IDLE: Duration = Duration::from_millis(400);

/// Room for what a request grows by when control sends it on.
const MAX_BODY_BYTES: usize = crate::MAX_BODY_BYTES + (1 << 20);

/// All routes of a worker.
pub fn worker_router(runs: Runs, tokens: ServiceTokens) -> Router {
    let guarded = Router::new()
        .route("/runs", post(create))
        .route("/runs/{id}", get(show).delete(forget))
        .route("/runs/{id}/lease", post(renew))
        .route("/runs/{id}/terminate", post(terminate))
        .route("/runs/{id}/output", get(follow))
        .layer(from_fn_with_state(tokens, require_token));
    Router::new()
        .route("/healthz", get(health))
        .merge(guarded)
        .fallback(answer::no_such_path)
        .method_not_allowed_fallback(answer::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(runs)
}

/// The process answers.
async fn health() -> Response {
    json(200, &serde_json::json!({"status": "ok"}))
}

async fn create(State(runs): State<Runs>, body: JsonBody<RunCreate>) -> Answer {
    let (run, is_new) = runs.create(body.value)?;
    Ok(json(if is_new { 201 } else { 200 }, &run))
}

async fn show(State(runs): State<Runs>, Path(id): Path<String>) -> Answer {
    Ok(json(200, &runs.get(&id)?))
}

async fn renew(State(runs): State<Runs>, Path(id): Path<String>, body: JsonBody<RunLease>) -> Answer {
    let RunLease { attempt, fence, lease_ms } = body.value;
    Ok(json(200, &runs.renew(&id, attempt, fence, lease_ms)?))
}

async fn terminate(State(runs): State<Runs>, Path(id): Path<String>, body: JsonBody<RunTerminate>) -> Answer {
    let RunTerminate { attempt, fence, by } = body.value;
    Ok(json(202, &runs.terminate(&id, attempt, fence, by)?))
}

async fn forget(State(runs): State<Runs>, Path(id): Path<String>, query: Query) -> Answer {
    query.only(&["attempt", "fence"])?;
    let (attempt, fence) = claim(&query)?;
    runs.forget(&id, attempt, fence)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn claim(query: &Query) -> Result<(i64, i64), Problem> {
    let number = |name: &str| {
        let missing = || InvalidValue::new(name, "", "it must be given");
        Ok::<_, InvalidValue>(query.number(name, i64::MAX as u64)?.ok_or_else(missing)? as i64)
    };
    Ok((number("attempt")?, number("fence")?))
}

/// Events after a number, one JSON object a line, until the end of the run.
async fn follow(State(runs): State<Runs>, Path(id): Path<String>, query: Query) -> Answer {
    query.only(&["attempt", "fence", "after"])?;
    let (attempt, fence) = claim(&query)?;
    let after = query.number("after", i64::MAX as u64)?.unwrap_or(0);
    let spool = runs.spool(&id, attempt, fence)?;
    let place = Some(Follower { runs, id, attempt, fence, spool, after });
    let lines = futures_util::stream::unfold(place, |place| async move {
        let mut follower = place?;
        let event = follower.next().await?;
        let is_last = matches!(event, RunEvent::End { .. });
        let mut line = serde_json::to_vec(&event).ok()?;
        line.push(b'\n');
        Some((Ok::<_, Infallible>(line), (!is_last).then_some(follower)))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

struct Follower {
    runs: Runs,
    id: String,
    attempt: i64,
    fence: i64,
    spool: Arc<Spool>,
    after: u64,
}

impl Follower {
    /// What comes next; nothing once somebody else has the run.
    async fn next(&mut self) -> Option<RunEvent> {
        // Listened to before the look, so that nothing falls between the two.
        let mut changed = self.spool.subscribe();
        if !self.runs.is_current(&self.id, self.attempt, self.fence) {
            return None;
        }
        loop {
            if let Some(event) = self.spool.after(self.after) {
                self.after += 1;
                return Some(event);
            }
            if tokio::time::timeout(IDLE, changed.changed()).await.is_err() {
                return Some(RunEvent::Idle);
            }
            if !self.runs.is_current(&self.id, self.attempt, self.fence) {
                return None;
            }
        }
    }
}
