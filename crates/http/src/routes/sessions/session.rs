//! Sessions themselves.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::cursor::{page, read_cursor};
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::idempotency::idempotency_key;
use crate::path::Id;
use crate::query::{NoQuery, Query};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use cofferdam_api::{Session, SessionExtend, SessionList, SessionRequest};
use cofferdam_control::{Control, hash, session_view};
use cofferdam_core::{InvalidValue, SessionState};
use cofferdam_policy::Action;
use cofferdam_store::SessionFilter;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(show, remove)).routes(routes!(extend))
}

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

/// Make a session
///
/// A sandbox that stays until its deadline, and runs steps that share files, processes and interpreters. It is ready, and
/// on the disk, when this answers.
#[utoipa::path(
    post, path = "/sessions", operation_id = "session_create", tag = "sessions",
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is one session; with another body it is a 409"),
    ),
    request_body(content = SessionRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "It is ready", body = Session, links(
            ("show" = (operation_id = "session_get", parameters(("id" = "$response.body#/id")))),
            ("step" = (operation_id = "step_create", parameters(("id" = "$response.body#/id")))),
            ("delete" = (operation_id = "session_delete", parameters(("id" = "$response.body#/id")))),
        )),
        Always, OfBody, OfOne, OfState,
    )
)]
async fn create(
    State(control): State<Control>,
    caller: Caller,
    _: NoQuery,
    headers: HeaderMap,
    body: Body<SessionRequest>,
) -> Answer {
    let name = idempotency_key(&headers)?.map(|name| (name, hash(&body.bytes)));
    let agent = body.value.agent.clone();
    let permit = control.permit(&caller.0, Action::SessionCreate, &caller.0.tenant, agent.as_deref()).await?;
    if body.value.secrets.as_ref().is_some_and(|secrets| !secrets.is_empty()) {
        caller.permit(&control, Action::SecretUse).await?;
    }
    let session = control.create_session(&permit, body.value, name).await?;
    Ok(json(201, &session_view(session)))
}

/// Show a session
///
/// Also one that has ended, with its cause.
#[utoipa::path(
    get, path = "/sessions/{id}", operation_id = "session_get", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    responses((status = 200, description = "The session", body = Session), Always, OfOne)
)]
async fn show(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::SessionGet).await?;
    Ok(json(200, &session_view(control.get_session(&permit, &id).await?)))
}

/// List sessions
///
/// The newest first.
#[utoipa::path(
    get, path = "/sessions", operation_id = "session_list", tag = "sessions",
    params(
        ("state" = Option<SessionState>, Query, description = "Only those in this state"),
        ("task_id" = Option<String>, Query, description = "Only those of this task", pattern = "^[^\\u0000]*$"),
        ("agent" = Option<String>, Query, description = "Only those of this agent", pattern = "^[^\\u0000]*$"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "A page of sessions", body = SessionList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["state", "task_id", "agent", "limit", "cursor"])?;
    let permit = caller.permit(&control, Action::SessionList).await?;
    let state = query.get("state").map(|text| {
        let fix = || format!("it must be one of {}", SessionState::ALL.map(SessionState::as_str).join(", "));
        SessionState::from_name(text).ok_or_else(|| InvalidValue::new("state", text, fix()))
    });
    let limit = query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as usize;
    let filter = SessionFilter {
        state: state.transpose()?,
        task_id: query.get("task_id").map(str::to_owned),
        agent: query.get("agent").map(str::to_owned),
        limit: limit as i64 + 1,
        before: query.get("cursor").map(read_cursor).transpose()?,
    };
    let found = control.list_sessions(&permit, &filter).await?;
    let (sessions, next_cursor) = page(found, limit, |session| (session.created_at_ms, &session.id));
    Ok(json(200, &SessionList { sessions: sessions.into_iter().map(session_view).collect(), next_cursor }))
}

/// Put a session's deadline off
///
/// To so long from now, or to a time. A deadline that is further off already stays: nothing makes it come sooner.
#[utoipa::path(
    post, path = "/sessions/{id}/extend", operation_id = "session_extend", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    request_body(content = SessionExtend, content_type = "application/json"),
    responses((status = 200, description = "The session", body = Session), Always, OfBody, OfOne, OfState)
)]
async fn extend(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    body: Body<SessionExtend>,
) -> Answer {
    let permit = caller.permit(&control, Action::SessionExtend).await?;
    Ok(json(200, &session_view(control.extend_session(&permit, &id, &body.value).await?)))
}

/// Delete a session
///
/// Everything that runs in it ends at once, and what its steps were and wrote is removed. That it was there stays, as
/// ended, until it is deleted once more.
#[utoipa::path(
    delete, path = "/sessions/{id}", operation_id = "session_delete", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    responses((status = 204, description = "It is gone"), Always, OfOne)
)]
async fn remove(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::SessionDelete).await?;
    control.delete_session(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
