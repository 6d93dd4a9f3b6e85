//! Searching the files of a session.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::document::refusals::{Always, OfOne, OfState};
use crate::path::Id;
use crate::query::Query;
use axum::extract::State;
use cofferdam_api::FileMatches;
use cofferdam_control::{Control, FileSearch};
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(search))
}

/// So many are found where it is not said.
const FOUND: u64 = 100;
const MAX_FOUND: u64 = 1000;

/// Search files
///
/// By name, by content, or by both, in a folder and those below it. It takes ten seconds at most: `truncated` says
/// whether there may be more. Links are not followed, and what is no text has no lines.
#[utoipa::path(
    get, path = "/sessions/{id}/files/search", operation_id = "file_search", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = Option<String>, Query, description = "The folder; /workspace unless given", example = "/workspace"),
        ("name" = Option<String>, Query, description = "A pattern with `*`, `?`, `[…]` and `**`, of the last name, or of the path below the folder if it has a slash", example = "*.py"),
        ("content" = Option<String>, Query, description = "A regular expression that a line has to match", example = "def main"),
        ("ignore_case" = Option<bool>, Query, description = "Whether large and small letters are the same"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many; 100 unless given"),
    ),
    responses((status = 200, description = "What was found", body = FileMatches), Always, OfOne, OfState)
)]
async fn search(State(control): State<Control>, caller: Caller, Id(id): Id, query: Query) -> Answer {
    query.only(&["path", "name", "content", "ignore_case", "limit"])?;
    let search = FileSearch {
        name: query.get("name").map(str::to_owned),
        content: query.get("content").map(str::to_owned),
        ignores_case: query.flag("ignore_case")?.unwrap_or(false),
        limit: query.count("limit", MAX_FOUND)?.unwrap_or(FOUND) as usize,
    };
    let permit = caller.permit(&control, Action::FileRead).await?;
    let path = query.get("path").unwrap_or("/workspace");
    Ok(json(200, &control.search_files(&permit, &id, path, search).await?))
}
