//! Signed addresses of single files of a session.

use super::content::{content_of, while_it_comes};
use super::files::served;
use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body as Json;
use crate::document::refusals::{Always, OfBody, OfOne, OfPart, OfState, OfUpload};
use crate::path::Id;
use crate::query::NoQuery;
use axum::extract::{Request, State};
use axum::http::header;
use cofferdam_api::{FileInfo, FileLinkRequest, SignedUrl};
use cofferdam_control::{Control, ControlError, FILE_MODE, FileReader};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(link)).routes(routes!(read, write))
}

/// Make a signed address of a file
///
/// Whoever has it can read the file, or upload it, until its time is over, the key that made it is taken back, or the
/// session has ended. An upload has at most `size_bytes`.
#[utoipa::path(
    post, path = "/sessions/{id}/files/url", operation_id = "file_link", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    request_body(content = FileLinkRequest, content_type = "application/json"),
    responses((status = 201, description = "The address", body = SignedUrl), Always, OfBody, OfOne, OfState)
)]
async fn link(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    body: Json<FileLinkRequest>,
) -> Answer {
    let action = Control::file_link_action(body.value.method.as_deref())?;
    let permit = caller.permit(&control, action).await?;
    Ok(json(201, &control.link_file(&permit, &id, &body.value).await?))
}

/// Read a file by a signed address
///
/// As it was answered with; no key is needed, and none is looked at. Whole or in part.
#[utoipa::path(
    get, path = "/sessions/{id}/files/signed", operation_id = "file_read_signed", tag = "sessions",
    security(()),
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = String, Query, description = "As signed"),
        ("expires" = u64, Query, description = "As signed"),
        ("size" = u64, Query, description = "As signed"),
        ("by" = String, Query, description = "As signed"),
        ("signature" = String, Query, description = "Of all others, the method and the id"),
        ("Range" = Option<String>, Header, description = "One range of bytes"),
    ),
    responses(
        (status = 200, description = "All bytes", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 206, description = "The part that was asked for", content_type = "application/octet-stream", body = Vec<u8>),
        OfUpload, OfPart,
    )
)]
async fn read(State(control): State<Control>, Id(id): Id, request: Request) -> Answer {
    let query = request.uri().query().unwrap_or_default();
    let link = control.follow_file_link(request.method().as_str(), &id, query).await?;
    served(&control, &link.permit, &id, &link.path, request.headers()).await
}

/// Upload a file by a signed address
///
/// As it was answered with; no key is needed, and none is looked at. Until all of it is there, the file that was there
/// is.
#[utoipa::path(
    put, path = "/sessions/{id}/files/signed", operation_id = "file_write_signed", tag = "sessions",
    security(()),
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = String, Query, description = "As signed"),
        ("expires" = u64, Query, description = "As signed"),
        ("size" = u64, Query, description = "As signed"),
        ("by" = String, Query, description = "As signed"),
        ("signature" = String, Query, description = "Of all others, the method and the id"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The file's bytes"),
    responses((status = 200, description = "It is there", body = FileInfo), OfUpload)
)]
async fn write(State(control): State<Control>, Id(id): Id, request: Request) -> Answer {
    let link = control.follow_file_link("PUT", &id, request.uri().query().unwrap_or_default()).await?;
    let most = link.size_bytes;
    let too_large = || ControlError::TooLarge { text: format!("the address is for at most {most} bytes") };
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(too_large().into());
    }
    let (content, coming) = content_of(request.into_body());
    let content = Box::new(Bounded { content, left: most });
    let writing = control.write_file(&link.permit, &id, &link.path, FILE_MODE, content);
    while_it_comes(coming, writing).await?;
    Ok(json(200, &control.stat_file(&link.permit, &id, &link.path).await?))
}

/// Bytes up to a number. One more is an error, so that what is too long is not taken for whole.
struct Bounded {
    content: FileReader,
    left: u64,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.content).poll_read(context, buffer))?;
        let read = (buffer.filled().len() - before) as u64;
        Poll::Ready(match self.left.checked_sub(read) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(io::ErrorKind::FileTooLarge.into()),
        })
    }
}
