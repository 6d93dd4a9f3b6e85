//! `/v1/snapshots`: files of sessions under names.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::cursor::{page, read_cursor};
use crate::document::refusals::{Always, OfOne};
use crate::path::Id;
use crate::query::{NoQuery, Query};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cofferdam_api::SnapshotList;
use cofferdam_control::{Control, snapshot_view};
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(remove))
}

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

/// List snapshots
///
/// The newest first.
#[utoipa::path(
    get, path = "/snapshots", operation_id = "snapshot_list", tag = "sessions",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "A page of snapshots", body = SnapshotList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["limit", "cursor"])?;
    let permit = caller.permit(&control, Action::SnapshotList).await?;
    let limit = query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as usize;
    let before = query.get("cursor").map(read_cursor).transpose()?;
    let found = control.list_snapshots(&permit, before, limit as i64 + 1).await?;
    let (snapshots, next_cursor) = page(found, limit, |snapshot| (snapshot.created_at_ms, &snapshot.id));
    let snapshots = snapshots.into_iter().map(snapshot_view).collect();
    Ok(json(200, &SnapshotList { snapshots, next_cursor }))
}

/// Delete a snapshot
///
/// Its key goes first, and then its bytes. Sessions that were made from it have their files.
#[utoipa::path(
    delete, path = "/snapshots/{id}", operation_id = "snapshot_delete", tag = "sessions",
    params(("id" = String, Path, description = "The snapshot's id, or its name", example = "snp-aaaaaaaaaaaaaaaa")),
    responses((status = 204, description = "It is gone"), Always, OfOne)
)]
async fn remove(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::SnapshotDelete).await?;
    control.delete_snapshot(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
