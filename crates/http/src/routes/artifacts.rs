//! `/v1/artifacts`: records.

use super::artifact_content::{__path_download, __path_upload, download, upload};
use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::{Body, body_or_default};
use crate::cursor::{page, read_cursor};
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::idempotency::idempotency_key;
use crate::path::Id;
use crate::query::{NoQuery, Query};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use cofferdam_api::{
    Artifact, ArtifactCreated, ArtifactList, ArtifactRequest, FinalizeRequest, LinkRequest, SignedUrl,
};
use cofferdam_control::{Control, artifact_view, hash};
use cofferdam_policy::Action;
use cofferdam_store::ArtifactFilter;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, remove))
        .routes(routes!(finalize))
        .routes(routes!(link))
        .routes(routes!(upload))
        .routes(routes!(download))
        .routes(routes!(list_of_job))
}

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

/// Announce an artifact
///
/// The answer has a signed address to which its bytes are then sent with `PUT`, without a key. They count against the
/// quota from now on.
#[utoipa::path(
    post, path = "/artifacts", operation_id = "artifact_create", tag = "artifacts",
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is one artifact; with another body it is a 409"),
    ),
    request_body(content = ArtifactRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "It awaits its bytes", body = ArtifactCreated), Always, OfOne, OfBody, OfState,
    )
)]
async fn create(
    State(control): State<Control>,
    caller: Caller,
    _: NoQuery,
    headers: HeaderMap,
    body: Body<ArtifactRequest>,
) -> Answer {
    let name = idempotency_key(&headers)?.map(|name| (name, hash(&body.bytes)));
    let permit = caller.permit(&control, Action::ArtifactCreate).await?;
    let (record, upload) = control.create_artifact(&permit, body.value, name).await?;
    Ok(json(201, &ArtifactCreated { artifact: artifact_view(record), upload }))
}

/// Finalise an upload
///
/// Checks the hash of what came, and makes it readable. Doing it again changes nothing.
#[utoipa::path(
    post, path = "/artifacts/{id}/finalize", operation_id = "artifact_finalize", tag = "artifacts",
    params(("id" = String, Path, description = "The artifact's id", example = "art-aaaaaaaaaaaaaaaa")),
    request_body(content = Option<FinalizeRequest>, content_type = "application/json"),
    responses((status = 200, description = "It is ready", body = Artifact), Always, OfOne, OfBody, OfState)
)]
async fn finalize(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    request: Request,
) -> Answer {
    let permit = caller.permit(&control, Action::ArtifactCreate).await?;
    let body: FinalizeRequest = body_or_default(request).await?;
    let record = control.finalize_artifact(&permit, &id, body.sha256.as_deref()).await?;
    Ok(json(200, &artifact_view(record)))
}

/// Make a signed address
///
/// Whoever has it can read the artifact until its time is over, or the key that made it is taken back.
#[utoipa::path(
    post, path = "/artifacts/{id}/url", operation_id = "artifact_link", tag = "artifacts",
    params(("id" = String, Path, description = "The artifact's id", example = "art-aaaaaaaaaaaaaaaa")),
    request_body(content = Option<LinkRequest>, content_type = "application/json"),
    responses((status = 201, description = "The address", body = SignedUrl), Always, OfOne, OfBody, OfState)
)]
async fn link(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    request: Request,
) -> Answer {
    let permit = caller.permit(&control, Action::ArtifactLink).await?;
    let body: LinkRequest = body_or_default(request).await?;
    Ok(json(201, &control.link_artifact(&permit, &id, &body).await?))
}

/// Show an artifact
#[utoipa::path(
    get, path = "/artifacts/{id}", operation_id = "artifact_get", tag = "artifacts",
    params(("id" = String, Path, description = "The artifact's id", example = "art-aaaaaaaaaaaaaaaa")),
    responses((status = 200, description = "The artifact", body = Artifact), Always, OfOne)
)]
async fn show(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::ArtifactGet).await?;
    Ok(json(200, &artifact_view(control.get_artifact(&permit, &id).await?)))
}

/// Delete an artifact
///
/// Its key is gone when this answers, and with it the meaning of its bytes.
#[utoipa::path(
    delete, path = "/artifacts/{id}", operation_id = "artifact_delete", tag = "artifacts",
    params(("id" = String, Path, description = "The artifact's id", example = "art-aaaaaaaaaaaaaaaa")),
    responses((status = 204, description = "It is gone"), Always, OfOne)
)]
async fn remove(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::ArtifactDelete).await?;
    control.delete_artifact(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// List artifacts
///
/// The newest first.
#[utoipa::path(
    get, path = "/artifacts", operation_id = "artifact_list", tag = "artifacts",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "A page of artifacts", body = ArtifactList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    listed(&control, &caller, &query, ArtifactFilter::default()).await
}

/// List what a job has left
///
/// The newest first.
#[utoipa::path(
    get, path = "/jobs/{id}/artifacts", operation_id = "job_artifacts", tag = "artifacts",
    params(
        ("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "A page of artifacts", body = ArtifactList), Always, OfOne)
)]
async fn list_of_job(State(control): State<Control>, caller: Caller, Id(id): Id, query: Query) -> Answer {
    listed(&control, &caller, &query, ArtifactFilter { job: Some(id), ..ArtifactFilter::default() }).await
}

pub(crate) async fn listed(control: &Control, caller: &Caller, query: &Query, of: ArtifactFilter) -> Answer {
    query.only(&["limit", "cursor"])?;
    let permit = caller.permit(control, Action::ArtifactList).await?;
    let limit = query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as i64;
    let before = query.get("cursor").map(read_cursor).transpose()?;
    let filter = ArtifactFilter { limit: limit + 1, before, ..of };
    let records = control.list_artifacts(&permit, &filter).await?;
    let (records, next_cursor) = page(records, limit as usize, |record| (record.created_at_ms, &record.id));
    Ok(json(200, &ArtifactList { artifacts: records.into_iter().map(artifact_view).collect(), next_cursor }))
}
