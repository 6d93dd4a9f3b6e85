//! What is kept of a session's files.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body as Json;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::path::Id;
use crate::query::{NoQuery, Query};
use crate::routes::artifacts::listed;
use axum::extract::State;
use cofferdam_api::{Artifact, ArtifactList, SessionArtifactRequest};
use cofferdam_control::{Control, artifact_view};
use cofferdam_policy::Action;
use cofferdam_store::ArtifactFilter;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list, create))
}

/// List what is kept of a session
///
/// What its steps have left in the artifacts folder, and files that somebody had kept; the newest first, also after the
/// session's end.
#[utoipa::path(
    get, path = "/sessions/{id}/artifacts", operation_id = "session_artifacts", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "A page of artifacts", body = ArtifactList), Always, OfOne)
)]
async fn list(State(control): State<Control>, caller: Caller, Id(id): Id, query: Query) -> Answer {
    let of = ArtifactFilter { session: Some(id), ..ArtifactFilter::default() };
    listed(&control, &caller, &query, of).await
}

/// Keep a file of a session as an artifact
///
/// As it is now. It outlives the session, as everything that is kept does.
#[utoipa::path(
    post, path = "/sessions/{id}/artifacts", operation_id = "session_artifact_create", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    request_body(content = SessionArtifactRequest, content_type = "application/json"),
    responses((status = 201, description = "It is kept", body = Artifact), Always, OfBody, OfOne, OfState)
)]
async fn create(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    body: Json<SessionArtifactRequest>,
) -> Answer {
    let permit = caller.permit(&control, Action::ArtifactCreate).await?;
    Ok(json(201, &artifact_view(control.create_session_artifact(&permit, &id, &body.value).await?)))
}
