//! The worker's interface: what control asks of a worker in another process. It is no part of the API: every call has
//! a service token, and nothing here knows tenants.

mod artifacts;
mod calls;
mod desk;
mod images;
mod places;
mod registry;
mod sessions;
mod spool;

pub use registry::Runs;

use crate::answer::{self, Answer, Problem, json};
use crate::body::Body as JsonBody;
use crate::document::refusals::{Always, OfBody, OfOne, OfQuery, OfState};
use crate::document::{WorkerRoot, worker_openapi_json};
use crate::observe::observe_worker;
use crate::path::Id;
use crate::query::{NoQuery, Query};
use crate::service::{require_token, token_or_bypass};
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use cofferdam_api::{Health, Run, RunCreate, RunEvent, RunLease, RunTerminate};
use cofferdam_control::ServiceTokens;
use cofferdam_core::InvalidValue;
use spool::Spool;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// A follower hears something at least this often, so that a dead connection is known from a quiet run. Less than half
/// of the shortest lease.
const IDLE: Duration = Duration::from_millis(400);

/// Room for what a request grows by when control sends it on.
const MAX_BODY_BYTES: usize = crate::MAX_BODY_BYTES + (1 << 20);

/// What needs a token.
fn guarded() -> OpenApiRouter<Runs> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(show, forget))
        .routes(routes!(renew))
        .routes(routes!(terminate))
        .routes(routes!(follow))
        .routes(routes!(bar))
        .routes(routes!(metrics))
        .merge(artifacts::routes())
        .merge(places::routes())
        .merge(images::routes())
}

/// What needs none.
fn open() -> OpenApiRouter<Runs> {
    OpenApiRouter::with_openapi(WorkerRoot::openapi()).routes(routes!(health)).routes(routes!(own_document))
}

pub(crate) fn document() -> utoipa::openapi::OpenApi {
    open().merge(guarded()).into_openapi()
}

/// All routes of a worker.
pub fn worker_router(runs: Runs, tokens: ServiceTokens) -> Router {
    all(runs, Router::from(guarded()).layer(from_fn_with_state(tokens, require_token)), Bypass(false))
}

/// The same for development: programs of this machine need no token. Whoever asks for this sees to it that nobody else
/// reaches the worker.
pub fn worker_router_without_auth(runs: Runs, tokens: ServiceTokens) -> Router {
    all(runs, Router::from(guarded()).layer(from_fn_with_state(tokens, token_or_bypass)), Bypass(true))
}

/// Whether calls without a token are taken.
#[derive(Debug, Clone, Copy)]
struct Bypass(bool);

fn all(runs: Runs, guarded: Router<Runs>, bypass: Bypass) -> Router {
    Router::from(open())
        .merge(guarded)
        .layer(Extension(bypass))
        .fallback(answer::no_such_path)
        .method_not_allowed_fallback(answer::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(runs.clone(), observe_worker))
        .with_state(runs)
}

/// Whether the process answers
#[utoipa::path(
    get, path = "/healthz", operation_id = "worker_health", tag = "server", security(()),
    responses((status = 200, description = "It does", body = Health), OfQuery)
)]
async fn health(Extension(bypass): Extension<Bypass>, _: NoQuery) -> Response {
    let warning =
        "authentication is off (dev-no-auth): whoever reaches this worker may run anything".to_owned();
    let warnings = if bypass.0 { vec![warning] } else { Vec::new() };
    json(200, &Health { status: "ok".to_owned(), warnings, backends: Vec::new() })
}

/// This document
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "worker_document", tag = "server", security(()),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object), OfQuery)
)]
async fn own_document(_: NoQuery) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], worker_openapi_json()).into_response()
}

/// Show metrics
///
/// Of this worker, in the text form of Prometheus, under the names that they have where all is in one process.
#[utoipa::path(
    get, path = "/metrics", operation_id = "worker_metrics", tag = "server",
    responses((status = 200, description = "The numbers", content_type = "text/plain", body = String), Always)
)]
async fn metrics(State(runs): State<Runs>, _: NoQuery) -> Response {
    let text = runs.metrics_text().await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// Begin a run
///
/// The same job and attempt make one run, however often they are sent. 503 means that nothing was begun.
#[utoipa::path(
    post, path = "/runs", operation_id = "run_create", tag = "runs",
    request_body(content = RunCreate, content_type = "application/json"),
    responses(
        (status = 201, description = "It is begun", body = Run),
        (status = 200, description = "It was begun before", body = Run),
        Always, OfBody, OfState
    )
)]
async fn create(
    State(runs): State<Runs>,
    headers: HeaderMap,
    _: NoQuery,
    body: JsonBody<RunCreate>,
) -> Answer {
    let traceparent = headers.get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (run, is_new) = runs.create(body.value, traceparent)?;
    Ok(json(if is_new { 201 } else { 200 }, &run))
}

/// Show a run
#[utoipa::path(
    get, path = "/runs/{id}", operation_id = "run_get", tag = "runs",
    params(("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa")),
    responses((status = 200, description = "The run", body = Run), Always, OfOne)
)]
async fn show(State(runs): State<Runs>, Id(id): Id, _: NoQuery) -> Answer {
    Ok(json(200, &runs.get(&id)?))
}

/// Renew a run's lease
///
/// Its owner is still there. A run that nobody renews for twice the lease is ended and forgotten.
#[utoipa::path(
    post, path = "/runs/{id}/lease", operation_id = "run_renew", tag = "runs",
    params(("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa")),
    request_body(content = RunLease, content_type = "application/json"),
    responses((status = 200, description = "It is renewed", body = Run), Always, OfOne, OfBody, OfState)
)]
async fn renew(State(runs): State<Runs>, Id(id): Id, _: NoQuery, body: JsonBody<RunLease>) -> Answer {
    let RunLease { attempt, fence, lease_ms } = body.value;
    Ok(json(200, &runs.renew(&id, attempt, fence, lease_ms)?))
}

/// End a run
///
/// As its deadline would: it is asked, and killed after its grace.
#[utoipa::path(
    post, path = "/runs/{id}/terminate", operation_id = "run_terminate", tag = "runs",
    params(("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa")),
    request_body(content = RunTerminate, content_type = "application/json"),
    responses((status = 202, description = "It is being ended", body = Run), Always, OfOne, OfBody, OfState)
)]
async fn terminate(State(runs): State<Runs>, Id(id): Id, _: NoQuery, body: JsonBody<RunTerminate>) -> Answer {
    let RunTerminate { attempt, fence, by } = body.value;
    Ok(json(202, &runs.terminate(&id, attempt, fence, by)?))
}

/// Forget a run
///
/// Its end is kept elsewhere. One that has not ended is ended.
#[utoipa::path(
    delete, path = "/runs/{id}", operation_id = "run_delete", tag = "runs",
    params(
        ("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa"),
        ("attempt" = u64, Query, description = "Which attempt", maximum = 9223372036854775807_u64),
        ("fence" = u64, Query, description = "The claim of whoever asks", maximum = 9223372036854775807_u64),
    ),
    responses((status = 204, description = "It is forgotten"), Always, OfOne, OfState)
)]
async fn forget(State(runs): State<Runs>, Id(id): Id, query: Query) -> Answer {
    query.only(&["attempt", "fence"])?;
    let (attempt, fence) = claim(&query)?;
    runs.forget(&id, attempt, fence)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Bar a run
///
/// For whoever takes over a job of which this worker knows nothing. 204 means that the attempt was not begun here, and
/// will not be under this claim or an older one; 409, that it was begun.
#[utoipa::path(
    post, path = "/runs/{id}/bar", operation_id = "run_bar", tag = "runs",
    params(
        ("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa"),
        ("attempt" = u64, Query, description = "Which attempt", maximum = 9223372036854775807_u64),
        ("fence" = u64, Query, description = "The claim of whoever asks", maximum = 9223372036854775807_u64),
    ),
    responses((status = 204, description = "It was not begun, and will not be"), Always, OfOne, OfState)
)]
async fn bar(State(runs): State<Runs>, Id(id): Id, query: Query) -> Answer {
    query.only(&["attempt", "fence"])?;
    let (attempt, fence) = claim(&query)?;
    runs.bar(&id, attempt, fence)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn claim(query: &Query) -> Result<(i64, i64), Problem> {
    let number = |name: &str| {
        let missing = || InvalidValue::new(name, "", "it must be given");
        Ok::<_, InvalidValue>(query.number(name, i64::MAX as u64)?.ok_or_else(missing)? as i64)
    };
    Ok((number("attempt")?, number("fence")?))
}

/// Follow a run
///
/// Its events after a number, one JSON object (RunEvent) a line, until its end. Whoever is cut off goes on after the last
/// one that they have.
#[utoipa::path(
    get, path = "/runs/{id}/output", operation_id = "run_follow", tag = "runs",
    params(
        ("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa"),
        ("attempt" = u64, Query, description = "Which attempt", maximum = 9223372036854775807_u64),
        ("fence" = u64, Query, description = "The claim of whoever asks", maximum = 9223372036854775807_u64),
        ("after" = Option<u64>, Query, description = "The last event that is known", maximum = 9223372036854775807_u64),
    ),
    responses(
        (status = 200, description = "Lines", content_type = "application/x-ndjson", body = String),
        Always, OfOne, OfState
    )
)]
async fn follow(State(runs): State<Runs>, Id(id): Id, query: Query) -> Answer {
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
