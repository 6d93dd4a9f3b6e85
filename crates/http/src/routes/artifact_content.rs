//! `/v1/artifacts/{id}/upload` and `/v1/artifacts/{id}/content`: bytes, in pieces both ways.
//!
//! What is served may be anything, made by anyone. So a browser is told to keep it as a file and to believe nothing
//! that it says of itself.

use crate::answer::{Answer, Problem, json};
use crate::auth::Caller;
use crate::disposition::attachment;
use crate::document::refusals::{Always, OfOne, OfPart, OfState, OfUpload};
use crate::path::Id;
use crate::query::Query;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use cofferdam_api::{Artifact, ErrorCode};
use cofferdam_artifacts::{Part, Reading, Wanted, part_of};
use cofferdam_control::{Control, ControlError, Download, artifact_view};
use cofferdam_policy::{Action, Permit};
use cofferdam_store::{ArtifactRecord, ArtifactState};
use futures_util::{Stream, StreamExt};
use std::time::Duration;
use tokio::time::timeout;

/// Whoever sends nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);

/// Types that a browser would run, or show as a page. They are served as bytes of no kind.
const ACTIVE: [&str; 6] = ["html", "xml", "svg", "script", "pdf", "multipart"];

const ANY_TYPE: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Upload an artifact's bytes
///
/// To the address that announcing it answered with, as it is; no key is needed, and none is looked at.
#[utoipa::path(
    put, path = "/artifacts/{id}/upload", operation_id = "artifact_upload", tag = "artifacts",
    security(()),
    params(
        ("id" = String, Path, description = "The artifact's id", example = "art-aaaaaaaaaaaaaaaa"),
        ("expires" = u64, Query, description = "As signed"),
        ("size" = u64, Query, description = "As signed"),
        ("by" = String, Query, description = "As signed"),
        ("signature" = String, Query, description = "Of all others, the method and the id"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "As many bytes as announced"),
    responses((status = 200, description = "They are kept", body = Artifact), OfUpload)
)]
pub(crate) async fn upload(State(control): State<Control>, Id(id): Id, request: Request) -> Answer {
    let link = request.uri().query().unwrap_or_default();
    let (permit, record) = control.follow_link("PUT", &id, link).await?;
    check_length(request.headers(), &record)?;
    let mut upload = control.begin_upload(&permit, record).await?;
    let mut body = request.into_body().into_data_stream();
    loop {
        let piece = timeout(SILENCE, body.next()).await.map_err(|_| cut("nothing came for a minute"))?;
        match piece {
            Some(Ok(bytes)) => upload.write(&bytes).await?,
            Some(Err(_)) => return Err(cut("the body was cut off")),
            None => break,
        }
    }
    Ok(json(200, &artifact_view(upload.finish().await?)))
}

fn cut(why: &str) -> Problem {
    Problem::new(ErrorCode::Malformed, why, "send the bytes again")
}

/// Said at once where the client says how much it is about to send.
fn check_length(headers: &HeaderMap, record: &ArtifactRecord) -> Result<(), Problem> {
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match length {
        Some(length) if length > record.size_bytes as u64 => {
            let text = format!("{length} bytes are more than the {} that were announced", record.size_bytes);
            Err(ControlError::TooLarge { text }.into())
        }
        _ => Ok(()),
    }
}

/// Read an artifact's bytes
///
/// Whole or in part, with a key or by a signed address. They come as a file to be saved, whatever they are.
#[utoipa::path(
    get, path = "/artifacts/{id}/content", operation_id = "artifact_content", tag = "artifacts",
    params(
        ("id" = String, Path, description = "The artifact's id", example = "art-aaaaaaaaaaaaaaaa"),
        ("Range" = Option<String>, Header, description = "One range of bytes"),
        ("If-Range" = Option<String>, Header, description = "An `ETag`: the range is served if it is still that"),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag`: nothing is served if it is still that"),
    ),
    responses(
        (status = 200, description = "All bytes", content_type = "*/*", body = Vec<u8>),
        (status = 206, description = "The part that was asked for", content_type = "*/*", body = Vec<u8>),
        (status = 304, description = "It is still that"),
        Always, OfOne, OfState, OfPart,
    )
)]
pub(crate) async fn download(State(control): State<Control>, Id(id): Id, request: Request) -> Answer {
    let (mut parts, _) = request.into_parts();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let (permit, record): (Permit, ArtifactRecord) = if query.is_empty() {
        let caller = Caller::from_request_parts(&mut parts, &control).await?;
        let permit = caller.permit(&control, Action::ArtifactGet).await?;
        let record = control.get_artifact(&permit, &id).await?;
        (permit, record)
    } else if query.contains("signature=") {
        control.follow_link(parts.method.as_str(), &id, &query).await?
    } else {
        // Anybody may hear that there are no such parameters.
        Query::from_request_parts(&mut parts, &control).await?.only(&[])?;
        return Err(cut("the query cannot be read"));
    };
    if record.state != ArtifactState::Ready {
        let text = format!("the artifact is {}", record.state.as_str());
        return Err(ControlError::Conflict { text }.into());
    }
    let (size, etag) = (record.size_bytes.max(0) as u64, etag(&record));
    if has_tag(&parts.headers, &header::IF_NONE_MATCH, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response());
    }
    let range = parts.headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    // A part of what it was then: if it is something else now, all of that.
    let is_same = parts.headers.get(header::IF_RANGE).is_none_or(|value| value == etag);
    let wanted = part_of(range.filter(|_| is_same && parts.method == Method::GET), size);
    let (status, part) = match wanted {
        Wanted::Whole => (StatusCode::OK, 0..size),
        Wanted::Part(Part { first, last }) => (StatusCode::PARTIAL_CONTENT, first..last + 1),
        Wanted::None => return Ok(unsatisfiable(size)),
    };
    let mut response = Response::builder().status(status);
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {}-{}/{size}", part.start, part.end - 1);
        response = response.header(header::CONTENT_RANGE, range);
    }
    let length = part.end - part.start;
    let headers = headers(&record, etag);
    let body = match parts.method == Method::HEAD {
        true => Body::empty(),
        false => {
            let Download { reading, .. } = control.read_artifact(&permit, record, part).await?;
            first_then_rest(reading).await?
        }
    };
    let response = response.header(header::CONTENT_LENGTH, length).body(body);
    let mut response = response.map_err(|_| cut("the answer cannot be written"))?;
    response.headers_mut().extend(headers);
    Ok(response)
}

fn etag(record: &ArtifactRecord) -> HeaderValue {
    let text = format!("\"{}\"", record.sha256.as_deref().unwrap_or_default());
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Whether a list of tags has this one. A weak tag is as good here: the same bytes are meant.
fn has_tag(headers: &HeaderMap, name: &HeaderName, etag: &HeaderValue) -> bool {
    let (Some(list), Ok(etag)) = (headers.get(name).and_then(|value| value.to_str().ok()), etag.to_str())
    else {
        return false;
    };
    list.split(',').map(|tag| tag.trim().trim_start_matches("W/")).any(|tag| tag == "*" || tag == etag)
}

pub(crate) fn unsatisfiable(size: u64) -> axum::response::Response {
    let text = format!("there are only {size} bytes");
    let problem = Problem::new(ErrorCode::RangeNotSatisfiable, text, "ask for a part that is there");
    let mut response = problem.into_response();
    if let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    response
}

fn headers(record: &ArtifactRecord, etag: HeaderValue) -> HeaderMap {
    let essence = record.content_type.to_ascii_lowercase();
    let is_active = ACTIVE.iter().any(|word| essence.contains(word));
    let kind = HeaderValue::from_str(&record.content_type).ok().filter(|_| !is_active);
    let plain = HeaderValue::from_static;
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, kind.unwrap_or(ANY_TYPE)),
        (header::CONTENT_DISPOSITION, attachment(&record.name)),
        (header::X_CONTENT_TYPE_OPTIONS, plain("nosniff")),
        (header::CONTENT_SECURITY_POLICY, plain("sandbox; default-src 'none'")),
        (header::X_FRAME_OPTIONS, plain("DENY")),
        (HeaderName::from_static("cross-origin-resource-policy"), plain("same-origin")),
        (header::REFERRER_POLICY, plain("no-referrer")),
        (header::CACHE_CONTROL, plain("private, no-store")),
        (header::ACCEPT_RANGES, plain("bytes")),
        (header::ETAG, etag),
    ])
}

/// The first piece is opened before anything is said, so that what is missing or damaged is an answer of its own.
/// What is found later can only cut the answer off, short of its announced length.
async fn first_then_rest(mut reading: Reading) -> Result<Body, Problem> {
    let Some(first) = reading.next().await.map_err(ControlError::from)? else { return Ok(Body::empty()) };
    let first = futures_util::stream::iter([Ok(first)]);
    Ok(Body::from_stream(first.chain(rest(reading))))
}

fn rest(reading: Reading) -> impl Stream<Item = std::io::Result<axum::body::Bytes>> {
    futures_util::stream::unfold(Some(reading), |reading| async move {
        let mut reading = reading?;
        match reading.next().await {
            Ok(None) => None,
            Ok(Some(bytes)) => Some((Ok(bytes), Some(reading))),
            Err(error) => Some((Err(error.into()), None)),
        }
    })
}
