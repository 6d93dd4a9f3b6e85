//! `/v1/workers`, for operators, and `/internal/workers/{id}`, for workers.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::Always;
use crate::path::Id;
use crate::query::NoQuery;
use crate::service::require_token;
use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::routing::put;
use cofferdam_api::{WorkerHeartbeat, WorkerList};
use cofferdam_control::{Control, ServiceTokens};
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list))
}

/// What only workers may call. It is no part of the API, and not in its document.
pub(crate) fn internal_routes(tokens: ServiceTokens) -> Router<Control> {
    Router::new().route("/workers/{id}", put(heartbeat)).layer(from_fn_with_state(tokens, require_token))
}

/// List workers
///
/// For operators: what runs jobs, how much of it there is, and when each was last heard of.
#[utoipa::path(
    get, path = "/workers", operation_id = "worker_list", tag = "workers",
    responses((status = 200, description = "All workers that the server knows", body = WorkerList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::WorkerList).await?;
    Ok(json(200, &WorkerList { workers: control.list_workers(&permit) }))
}

async fn heartbeat(
    State(control): State<Control>,
    Id(id): Id,
    _: NoQuery,
    body: Body<WorkerHeartbeat>,
) -> Answer {
    Ok(json(200, &control.worker_heartbeat(&id, body.value).await?))
}
