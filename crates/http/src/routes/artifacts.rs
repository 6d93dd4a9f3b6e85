//! `/v1/artifacts`: records.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::{Body, body_or_default};
use crate::cursor::{page, read_cursor};
use crate::query::Query;
use crate::routes::jobs::idempotency_key;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post, put};
use cofferdam_api::{ArtifactCreated, ArtifactList, ArtifactRequest, FinalizeRequest, LinkRequest};
use cofferdam_control::{Control, artifact_view, hash};
use cofferdam_policy::Action;
use cofferdam_store::ArtifactFilter;

pub(crate) fn routes() -> Router<Control> {
    Router::new()
        .route("/artifacts", get(list).post(create))
        .route("/artifacts/{id}", get(show).delete(remove))
        .route("/artifacts/{id}/finalize", post(finalize))
        .route("/artifacts/{id}/url", post(link))
        .route("/artifacts/{id}/upload", put(super::artifact_content::upload))
        .route("/artifacts/{id}/content", get(super::artifact_content::download))
        .route("/jobs/{id}/artifacts", get(list_of_job))
}

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

async fn create(
    State(control): State<Control>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
    body: Body<ArtifactRequest>,
) -> Answer {
    query.only(&[])?;
    let name = idempotency_key(&headers)?.map(|name| (name, hash(&body.bytes)));
    let permit = caller.permit(&control, Action::ArtifactCreate).await?;
    let (record, upload) = control.create_artifact(&permit, body.value, name).await?;
    Ok(json(201, &ArtifactCreated { artifact: artifact_view(record), upload }))
}

async fn finalize(
    State(control): State<Control>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let permit = caller.permit(&control, Action::ArtifactCreate).await?;
    let body: FinalizeRequest = body_or_default(request).await?;
    let record = control.finalize_artifact(&permit, &id, body.sha256.as_deref()).await?;
    Ok(json(200, &artifact_view(record)))
}

async fn link(
    State(control): State<Control>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let permit = caller.permit(&control, Action::ArtifactLink).await?;
    let body: LinkRequest = body_or_default(request).await?;
    Ok(json(201, &control.link_artifact(&permit, &id, &body).await?))
}

async fn show(State(control): State<Control>, caller: Caller, Path(id): Path<String>) -> Answer {
    let permit = caller.permit(&control, Action::ArtifactGet).await?;
    Ok(json(200, &artifact_view(control.get_artifact(&permit, &id).await?)))
}

async fn remove(State(control): State<Control>, caller: Caller, Path(id): Path<String>) -> Answer {
    let permit = caller.permit(&control, Action::ArtifactDelete).await?;
    control.delete_artifact(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["job_id", "limit", "cursor"])?;
    let job = query.get("job_id").map(str::to_owned);
    listed(&control, &caller, &query, job).await
}

async fn list_of_job(
    State(control): State<Control>,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Answer {
    query.only(&["limit", "cursor"])?;
    listed(&control, &caller, &query, Some(id)).await
}

async fn listed(control: &Control, caller: &Caller, query: &Query, job: Option<String>) -> Answer {
    let permit = caller.permit(control, Action::ArtifactList).await?;
    let limit = query.number("limit", MAX_PAGE)?.unwrap_or(PAGE).max(1) as i64;
    let before = query.get("cursor").map(read_cursor).transpose()?;
    let filter = ArtifactFilter { job, limit: limit + 1, before };
    let records = control.list_artifacts(&permit, &filter).await?;
    let (records, next_cursor) = page(records, limit as usize, |record| (record.created_at_ms, &record.id));
    Ok(json(200, &ArtifactList { artifacts: records.into_iter().map(artifact_view).collect(), next_cursor }))
}
