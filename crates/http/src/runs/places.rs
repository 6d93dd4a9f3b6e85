//! `/sessions`: what control asks of the worker that has a session. Start, step and terminate, and one call for
//! everything else, in [`super::calls`].

use super::Runs;
use crate::answer::{Answer, json};
use crate::body::Body as JsonBody;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::path::Id;
use crate::query::{NoQuery, Query};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use cofferdam_api::{PlaceStart, PlaceStarted, PlaceStep, Run};
use cofferdam_core::InvalidValue;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Runs> {
    OpenApiRouter::new()
        .routes(routes!(start))
        .routes(routes!(terminate))
        .routes(routes!(step))
        .merge(super::calls::routes())
}

/// Start a session
///
/// The same session and generation are started once, however often they are sent. 503 means that nothing was made.
#[utoipa::path(
    post, path = "/sessions", operation_id = "place_start", tag = "sessions",
    request_body(content = PlaceStart, content_type = "application/json"),
    responses(
        (status = 201, description = "Its sandbox is made", body = PlaceStarted),
        (status = 200, description = "It was made before", body = PlaceStarted),
        Always, OfBody, OfState
    )
)]
async fn start(State(runs): State<Runs>, _: NoQuery, body: JsonBody<PlaceStart>) -> Answer {
    let (started, is_new) = runs.start_session(body.value).await?;
    Ok(json(if is_new { 201 } else { 200 }, &started))
}

/// Terminate a session
///
/// This placement, and every older one: nothing of it runs any more, and none is started late. One that is not here
/// has ended.
#[utoipa::path(
    delete, path = "/sessions/{id}", operation_id = "place_terminate", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("generation" = u64, Query, description = "Of the placement", maximum = 9223372036854775807_u64),
    ),
    responses((status = 204, description = "It is gone"), Always, OfOne)
)]
async fn terminate(State(runs): State<Runs>, Id(id): Id, query: Query) -> Answer {
    query.only(&["generation"])?;
    let missing = || InvalidValue::new("generation", "", "it must be given");
    let generation = query.number("generation", i64::MAX as u64)?.ok_or_else(missing)? as i64;
    runs.terminate_session(&id, generation).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Run a step of a session
///
/// The same step is begun once, however often it is sent. From then on it is a run: what it writes to stdout and stderr,
/// what it shows and how it ends are the events of `GET /runs/{id}/output`, its lease and its end are asked for as a
/// job's. The run's id is the session's id, a dash and the number; its attempt is the generation, its fence is 1. One
/// whose lease is over is interrupted, so that its interpreter keeps its state.
#[utoipa::path(
    post, path = "/sessions/{id}/steps", operation_id = "place_step", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    request_body(content = PlaceStep, content_type = "application/json"),
    responses(
        (status = 201, description = "It is begun", body = Run),
        (status = 200, description = "It was begun before", body = Run),
        Always, OfOne, OfBody, OfState
    )
)]
async fn step(
    State(runs): State<Runs>,
    headers: HeaderMap,
    Id(id): Id,
    _: NoQuery,
    body: JsonBody<PlaceStep>,
) -> Answer {
    let traceparent = headers.get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (run, is_new) = runs.start_step(&id, body.value, traceparent)?;
    Ok(json(if is_new { 201 } else { 200 }, &run))
}
