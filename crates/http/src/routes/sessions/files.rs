//! The files of a session. A path that is not absolute is one of /workspace; no link is followed.

use super::content::{content_of, while_it_comes};
use crate::answer::{Answer, Problem, json};
use crate::auth::Caller;
use crate::body::Body as Json;
use crate::document::refusals::{Always, OfBody, OfOne, OfPart, OfState};
use crate::path::Id;
use crate::query::{NoQuery, Query};
use crate::routes::artifact_content::unsatisfiable;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use cofferdam_api::{ErrorCode, FileInfo, FileList, FolderRequest, MoveRequest};
use cofferdam_artifacts::{Part, Wanted, part_of};
use cofferdam_control::{Control, FILE_MODE};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Action, Permit};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new()
        .routes(routes!(read, write, remove))
        .routes(routes!(list))
        .routes(routes!(stat))
        .routes(routes!(make_folder))
        .routes(routes!(rename))
}

/// So many are listed where it is not said.
const LISTED: u64 = 1000;
const MAX_LISTED: u64 = 10_000;
const MAX_DEPTH: u64 = 64;

/// Read at once, by a thread that waits for the disk: less is not worth the way there.
const PIECE_BYTES: usize = 256 << 10;

fn path(query: &Query) -> Result<&str, InvalidValue> {
    query.get("path").ok_or_else(|| InvalidValue::new("path", "", "name a path, such as /workspace/a.txt"))
}

/// Read a file
///
/// Whole or in part. It comes as bytes of no kind: whoever asks knows what it is.
#[utoipa::path(
    get, path = "/sessions/{id}/files", operation_id = "file_read", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = String, Query, description = "The file", example = "/workspace/a.txt"),
        ("Range" = Option<String>, Header, description = "One range of bytes"),
    ),
    responses(
        (status = 200, description = "All bytes", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 206, description = "The part that was asked for", content_type = "application/octet-stream", body = Vec<u8>),
        Always, OfOne, OfState, OfPart,
    )
)]
async fn read(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    query: Query,
    headers: HeaderMap,
) -> Answer {
    query.only(&["path"])?;
    let permit = caller.permit(&control, Action::FileRead).await?;
    served(&control, &permit, &id, path(&query)?, &headers).await
}

/// A file's bytes, or the part of them that the headers ask for.
pub(super) async fn served(
    control: &Control,
    permit: &Permit,
    id: &str,
    path: &str,
    headers: &HeaderMap,
) -> Answer {
    let range = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let first_of = |size| match part_of(range, size) {
        Wanted::Part(Part { first, .. }) => first,
        Wanted::Whole | Wanted::None => 0,
    };
    let (info, reader) = control.read_file(permit, id, path, first_of).await?;
    let size = info.size_bytes;
    let (status, first, length) = match part_of(range, size) {
        Wanted::Whole => (StatusCode::OK, 0, size),
        Wanted::Part(Part { first, last }) => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
        Wanted::None => return Ok(unsatisfiable(size)),
    };
    let plain = HeaderValue::from_static;
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, plain("application/octet-stream"))
        .header(header::CONTENT_DISPOSITION, plain("attachment"))
        .header(header::X_CONTENT_TYPE_OPTIONS, plain("nosniff"))
        .header(header::CACHE_CONTROL, plain("private, no-store"))
        .header(header::ACCEPT_RANGES, plain("bytes"))
        .header(header::CONTENT_LENGTH, length);
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {first}-{}/{size}", first + length - 1);
        response = response.header(header::CONTENT_RANGE, range);
    }
    // A file that grows meanwhile is cut where it ended; one that shrinks cuts the answer off.
    let body = Body::from_stream(ReaderStream::with_capacity(reader.take(length), PIECE_BYTES));
    Ok(response.body(body).map_err(|_| unreadable())?.into_response())
}

fn unreadable() -> Problem {
    Problem::new(ErrorCode::Unavailable, "the file cannot be read", "try again in a moment")
}

/// Write a file
///
/// Its folders are made. Until all of it is there, the file that was there is: an upload that is cut off changes nothing.
#[utoipa::path(
    put, path = "/sessions/{id}/files", operation_id = "file_write", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = String, Query, description = "The file", example = "/workspace/a.txt"),
        ("mode" = Option<String>, Query, description = "Its permission bits, in octal; 644 unless given", pattern = "^[0-7]{3,4}$", example = "644"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The file's bytes"),
    responses((status = 200, description = "It is there", body = FileInfo), Always, OfBody, OfOne, OfState)
)]
async fn write(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    query: Query,
    request: Request,
) -> Answer {
    query.only(&["path", "mode"])?;
    let mode = query.get("mode").map(read_mode).transpose()?.unwrap_or(FILE_MODE);
    let path = path(&query)?;
    let permit = caller.permit(&control, Action::FileWrite).await?;
    let (content, coming) = content_of(request.into_body());
    while_it_comes(coming, control.write_file(&permit, &id, path, mode, content)).await?;
    Ok(json(200, &control.stat_file(&permit, &id, path).await?))
}

fn read_mode(text: &str) -> Result<u32, InvalidValue> {
    let is_plain = (3..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    let mode = u32::from_str_radix(text, 8).ok().filter(|_| is_plain);
    // Bits beyond these would let it run as somebody else.
    mode.map(|mode| mode & 0o777)
        .ok_or_else(|| InvalidValue::new("mode", text, "write it in octal, such as 644"))
}

/// Remove a file
///
/// Or a folder: an empty one, or with `recursive=true` everything in it as well.
#[utoipa::path(
    delete, path = "/sessions/{id}/files", operation_id = "file_remove", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = String, Query, description = "The file or folder", example = "/workspace/a.txt"),
        ("recursive" = Option<bool>, Query, description = "Also what is in a folder"),
    ),
    responses((status = 204, description = "It is gone"), Always, OfOne, OfState)
)]
async fn remove(State(control): State<Control>, caller: Caller, Id(id): Id, query: Query) -> Answer {
    query.only(&["path", "recursive"])?;
    let all = query.flag("recursive")?.unwrap_or(false);
    let permit = caller.permit(&control, Action::FileWrite).await?;
    control.remove_file(&permit, &id, path(&query)?, all).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// List a folder
#[utoipa::path(
    get, path = "/sessions/{id}/files/list", operation_id = "file_list", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = Option<String>, Query, description = "The folder; /workspace unless given", example = "/workspace"),
        ("depth" = Option<u64>, Query, minimum = 1, maximum = 64, description = "How many levels; 1 unless given"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 10000, description = "How many; 1000 unless given"),
    ),
    responses((status = 200, description = "What is in it", body = FileList), Always, OfOne, OfState)
)]
async fn list(State(control): State<Control>, caller: Caller, Id(id): Id, query: Query) -> Answer {
    query.only(&["path", "depth", "limit"])?;
    let depth = query.count("depth", MAX_DEPTH)?.unwrap_or(1) as usize;
    let limit = query.count("limit", MAX_LISTED)?.unwrap_or(LISTED) as usize;
    let permit = caller.permit(&control, Action::FileRead).await?;
    let path = query.get("path").unwrap_or("/workspace");
    Ok(json(200, &control.list_files(&permit, &id, path, depth, limit).await?))
}

/// Look at a file
///
/// What it is, and how large. What is not there is a 404.
#[utoipa::path(
    get, path = "/sessions/{id}/files/stat", operation_id = "file_stat", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = String, Query, description = "The file or folder", example = "/workspace/a.txt"),
    ),
    responses((status = 200, description = "What it is", body = FileInfo), Always, OfOne, OfState)
)]
async fn stat(State(control): State<Control>, caller: Caller, Id(id): Id, query: Query) -> Answer {
    query.only(&["path"])?;
    let permit = caller.permit(&control, Action::FileRead).await?;
    Ok(json(200, &control.stat_file(&permit, &id, path(&query)?).await?))
}

/// Make a folder
///
/// And those above it. One that is there stays as it is.
#[utoipa::path(
    post, path = "/sessions/{id}/files/mkdir", operation_id = "file_mkdir", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    request_body(content = FolderRequest, content_type = "application/json"),
    responses((status = 204, description = "It is there"), Always, OfBody, OfOne, OfState)
)]
async fn make_folder(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    body: Json<FolderRequest>,
) -> Answer {
    let permit = caller.permit(&control, Action::FileWrite).await?;
    control.make_folder(&permit, &id, &body.value.path).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Move a file or a folder
///
/// A file that has the new name already is replaced, at once.
#[utoipa::path(
    post, path = "/sessions/{id}/files/move", operation_id = "file_move", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    request_body(content = MoveRequest, content_type = "application/json"),
    responses((status = 204, description = "It has its new name"), Always, OfBody, OfOne, OfState)
)]
async fn rename(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    body: Json<MoveRequest>,
) -> Answer {
    let permit = caller.permit(&control, Action::FileWrite).await?;
    control.move_file(&permit, &id, &body.value.from, &body.value.to).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
