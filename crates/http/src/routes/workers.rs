//! `/v1/workers`, for operators, and `/internal/workers/{id}`, for workers.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::query::Query;
use crate::service::require_token;
use axum::Router;
use axum::extract::{Path, State};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, put};
use cofferdam_api::{WorkerHeartbeat, WorkerList};
use cofferdam_control::{Control, ServiceTokens};
use cofferdam_policy::Action;

pub(crate) fn routes() -> Router<Control> {
    Router::new().route("/workers", get(list))
}

/// What only workers may call.
pub(crate) fn internal_routes(tokens: ServiceTokens) -> Router<Control> {
    Router::new().route("/workers/{id}", put(heartbeat)).layer(from_fn_with_state(tokens, require_token))
}

async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&[])?;
    let permit = caller.permit(&control, Action::WorkerList).await?;
    Ok(json(200, &WorkerList { workers: control.list_workers(&permit) }))
}

async fn heartbeat(
    State(control): State<Control>,
    Path(id): Path<String>,
    body: Body<WorkerHeartbeat>,
) -> Answer {
    Ok(json(200, &control.worker_heartbeat(&id, body.value).await?))
}
