//! `/v1/workers`, for operators, and `/internal/workers/{id}`, for workers.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfQuery};
use crate::document::{InternalRoot, internal_openapi_json};
use crate::path::Id;
use crate::query::NoQuery;
use crate::service::require_token;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use cofferdam_api::{WorkerHeartbeat, WorkerHeartbeatAnswer, WorkerList};
use cofferdam_control::{Control, ServiceTokens};
use cofferdam_policy::Action;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list))
}

/// What only workers may call. It is no part of the API, and has a document of its own.
pub(crate) fn internal_routes(tokens: ServiceTokens) -> Router<Control> {
    Router::from(guarded()).layer(from_fn_with_state(tokens, require_token)).merge(Router::from(open()))
}

pub(crate) fn internal_document() -> utoipa::openapi::OpenApi {
    let routes = guarded().merge(open());
    OpenApiRouter::with_openapi(InternalRoot::openapi()).nest("/internal", routes).into_openapi()
}

fn guarded() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(heartbeat))
}

fn open() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(own_document))
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

/// This document
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "internal_document", tag = "workers", security(()),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object), OfQuery)
)]
async fn own_document(_: NoQuery) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], internal_openapi_json()).into_response()
}

/// Say that a worker is there
///
/// The first time registers it. One that was not heard of for twice as long as it was told to wait is out.
#[utoipa::path(
    put, path = "/workers/{id}", operation_id = "worker_heartbeat", tag = "workers",
    params(("id" = String, Path, description = "The worker's id, new at each start", example = "wrk-aaaaaaaaaaaaaaaa")),
    request_body(content = WorkerHeartbeat, content_type = "application/json"),
    responses((status = 200, description = "It is noted", body = WorkerHeartbeatAnswer), Always, OfOne, OfBody)
)]
async fn heartbeat(
    State(control): State<Control>,
    Id(id): Id,
    _: NoQuery,
    body: Body<WorkerHeartbeat>,
) -> Answer {
    Ok(json(200, &control.worker_heartbeat(&id, body.value).await?))
}
