//! Sessions that stand still, and what is made of their files.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::idempotency::idempotency_key;
use crate::path::Id;
use crate::query::NoQuery;
use axum::extract::State;
use axum::http::HeaderMap;
use cofferdam_api::{PauseKind, Session, SessionFork, SessionForks, SessionPause, Snapshot, SnapshotRequest};
use cofferdam_control::{
    Control, KEPT, NOT_KEPT, PauseMode, hash, resumed_view, session_view, snapshot_view,
};
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new()
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(fork))
        .routes(routes!(snapshot))
}

/// Pause a session
///
/// `freeze` stops everything in it, which stays where it is, and keeps its place on the worker. `archive` keeps its
/// files, encrypted under a key of their own, ends everything else and frees its place. Steps that run or wait are in
/// the way. Where it cannot be done, the session is as it was.
#[utoipa::path(
    post, path = "/sessions/{id}/pause", operation_id = "session_pause", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is done once, and answered alike; with another body, or before the first has ended, it is a 409"),
    ),
    request_body(content = SessionPause, content_type = "application/json"),
    responses(
        (status = 200, description = "It is paused; `pause` says what is kept", body = Session),
        Always, OfBody, OfOne, OfState,
    )
)]
async fn pause(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    headers: HeaderMap,
    body: Body<SessionPause>,
) -> Answer {
    let name = idempotency_key(&headers)?.map(|name| (name, hash(&body.bytes)));
    let permit = caller.permit(&control, Action::SessionPause).await?;
    let mode = match body.value.mode {
        PauseKind::Freeze => PauseMode::Freeze,
        PauseKind::Archive => PauseMode::Archive,
    };
    Ok(json(200, &session_view(control.pause_session(&permit, &id, mode, name).await?)))
}

/// Resume a session
///
/// One that is frozen goes on. One that is archived gets a new sandbox, wherever there is room, and its files; its
/// processes and interpreters are gone. Where it cannot be done, it is paused as before.
#[utoipa::path(
    post, path = "/sessions/{id}/resume", operation_id = "session_resume", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is done once, and answered alike; with another body, or before the first has ended, it is a 409"),
    ),
    responses(
        (status = 200, description = "It is ready; `pause` says what came through", body = Session),
        Always, OfOne, OfState,
    )
)]
async fn resume(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    headers: HeaderMap,
) -> Answer {
    let name = idempotency_key(&headers)?.map(|name| (name, hash(b"")));
    let permit = caller.permit(&control, Action::SessionResume).await?;
    let (session, from) = control.resume_session(&permit, &id, name).await?;
    Ok(json(200, &resumed_view(session, from)))
}

/// Fork a session
///
/// Makes children that have its files, and what it was made with. It stands still while they are copied, and goes on.
/// Either all are made, or none. Its secrets are the children's only if whoever asks has made it.
#[utoipa::path(
    post, path = "/sessions/{id}/fork", operation_id = "session_fork", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is done once, and answered alike; with another body, or before the first has ended, it is a 409"),
    ),
    request_body(content = SessionFork, content_type = "application/json"),
    responses(
        (status = 201, description = "They are ready", body = SessionForks),
        Always, OfBody, OfOne, OfState,
    )
)]
async fn fork(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    headers: HeaderMap,
    body: Body<SessionFork>,
) -> Answer {
    let name = idempotency_key(&headers)?.map(|name| (name, hash(&body.bytes)));
    let permit = caller.permit(&control, Action::SessionFork).await?;
    let forked = control.fork_session(&permit, &id, body.value.count, name).await?;
    let mut not_kept: Vec<String> = NOT_KEPT.map(str::to_owned).to_vec();
    if forked.is_without_secrets {
        not_kept.push("secrets".to_owned());
    }
    let sessions = forked.children.into_iter().map(session_view).collect();
    Ok(json(201, &SessionForks { sessions, kept: KEPT.map(str::to_owned).to_vec(), not_kept }))
}

/// Make a snapshot of a session
///
/// Keeps its files under a name, encrypted under a key of their own. They do not change. It stands still while they are
/// read, and goes on. Sessions are made from it with `snapshot`.
#[utoipa::path(
    post, path = "/sessions/{id}/snapshots", operation_id = "snapshot_create", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is done once, and answered alike; with another body, or before the first has ended, it is a 409"),
    ),
    request_body(content = SnapshotRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "It is kept", body = Snapshot, links(
            ("delete" = (operation_id = "snapshot_delete", parameters(("id" = "$response.body#/id")))),
        )),
        Always, OfBody, OfOne, OfState,
    )
)]
async fn snapshot(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    headers: HeaderMap,
    body: Body<SnapshotRequest>,
) -> Answer {
    let name = idempotency_key(&headers)?.map(|name| (name, hash(&body.bytes)));
    let permit = caller.permit(&control, Action::SnapshotCreate).await?;
    Ok(json(201, &snapshot_view(control.create_snapshot(&permit, &id, &body.value.name, name).await?)))
}
