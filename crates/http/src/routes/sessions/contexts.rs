//! The contexts of a session.

use crate::answer::Answer;
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::path::IdAndName;
use crate::query::NoQuery;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cofferdam_api::ContextRestart;
use cofferdam_control::Control;
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(restart))
}

/// Restart a context
///
/// Its interpreter ends, with everything that was set in it, and the step that it runs is cancelled. The next step has a
/// new one, and its result says so.
#[utoipa::path(
    post, path = "/sessions/{id}/contexts/{name}/restart", operation_id = "context_restart", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("name" = String, Path, description = "The context's name", example = "default"),
    ),
    request_body(content = ContextRestart, content_type = "application/json"),
    responses((status = 204, description = "It will be a new one"), Always, OfBody, OfOne, OfState)
)]
async fn restart(
    State(control): State<Control>,
    caller: Caller,
    IdAndName(id, name): IdAndName,
    _: NoQuery,
    body: Body<ContextRestart>,
) -> Answer {
    let permit = caller.permit(&control, Action::ContextRestart).await?;
    control.restart_context(&permit, &id, &name, &body.value).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
