//! Folders of a session as archives, up and down.

use super::content::{content_of, while_it_comes};
use crate::answer::{Answer, Problem, json};
use crate::auth::Caller;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::path::Id;
use crate::query::Query;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse;
use cofferdam_api::{ArchiveWritten, ErrorCode};
use cofferdam_control::{ArchiveKind, Control};
use cofferdam_core::InvalidValue;
use cofferdam_policy::Action;
use tokio_util::io::ReaderStream;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(read, write))
}

fn kind(query: &Query) -> Result<ArchiveKind, InvalidValue> {
    match query.get("format") {
        None | Some("tar") => Ok(ArchiveKind::Tar),
        Some("zip") => Ok(ArchiveKind::Zip),
        Some(other) => Err(InvalidValue::new("format", other, "it must be tar or zip")),
    }
}

fn path(query: &Query) -> Result<&str, InvalidValue> {
    query.get("path").ok_or_else(|| InvalidValue::new("path", "", "name a folder, such as /workspace/src"))
}

/// Read a folder as an archive
///
/// Everything in it, with modes, links as links; pipes and sockets are left out. It is made while it is sent, so its
/// length is not known beforehand, and one that cannot be finished is cut off without its end mark.
#[utoipa::path(
    get, path = "/sessions/{id}/archive", operation_id = "archive_read", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = String, Query, description = "The folder", example = "/workspace/src"),
        ("format" = Option<String>, Query, description = "`tar` or `zip`; `tar` unless given", pattern = "^(tar|zip)$", example = "tar"),
    ),
    responses(
        (status = 200, description = "The archive",
         content(
            (Vec<u8> = "application/x-tar"),
            (Vec<u8> = "application/zip"),
         )),
        Always, OfOne, OfState,
    )
)]
async fn read(State(control): State<Control>, caller: Caller, Id(id): Id, query: Query) -> Answer {
    query.only(&["path", "format"])?;
    let (kind, path) = (kind(&query)?, path(&query)?);
    let permit = caller.permit(&control, Action::FileRead).await?;
    let reader = control.read_archive(&permit, &id, path, kind).await?;
    let plain = HeaderValue::from_static;
    let (media, name) = match kind {
        ArchiveKind::Tar => ("application/x-tar", "attachment; filename=\"folder.tar\""),
        ArchiveKind::Zip => ("application/zip", "attachment; filename=\"folder.zip\""),
    };
    let response = Response::builder()
        .header(header::CONTENT_TYPE, plain(media))
        .header(header::CONTENT_DISPOSITION, plain(name))
        .header(header::X_CONTENT_TYPE_OPTIONS, plain("nosniff"))
        .header(header::CACHE_CONTROL, plain("private, no-store"))
        .body(Body::from_stream(ReaderStream::with_capacity(reader, 64 << 10)));
    let unreadable =
        |_| Problem::new(ErrorCode::Unavailable, "the folder cannot be read", "try again in a moment");
    Ok(response.map_err(unreadable)?.into_response())
}

/// Unpack an archive into a folder
///
/// The folder is made if it is not there. Modes are kept without set-user and set-group bits, and everything belongs to
/// the sandbox's user. Devices, links that lead out and names that do are refused, with the entry's name. An archive
/// that is refused or cut off changes nothing.
#[utoipa::path(
    put, path = "/sessions/{id}/archive", operation_id = "archive_write", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = String, Query, description = "The folder", example = "/workspace/src"),
        ("format" = Option<String>, Query, description = "`tar` or `zip`; `tar` unless given", pattern = "^(tar|zip)$", example = "tar"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The archive"),
    responses((status = 200, description = "All of it is there", body = ArchiveWritten), Always, OfBody, OfOne, OfState)
)]
async fn write(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    query: Query,
    request: Request,
) -> Answer {
    query.only(&["path", "format"])?;
    let (kind, path) = (kind(&query)?, path(&query)?);
    let permit = caller.permit(&control, Action::FileWrite).await?;
    let (content, coming) = content_of(request.into_body());
    let writing = control.write_archive(&permit, &id, path, kind, content);
    Ok(json(200, &while_it_comes(coming, writing).await?))
}
