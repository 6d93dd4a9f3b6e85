//! `/runs/{id}/inputs` and `/runs/{id}/outputs`: the artifacts of a run, brought and fetched by its owner in pieces.

use super::{Runs, claim};
use crate::answer::{Answer, Problem};
use crate::body::Body as JsonBody;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::path::NumberedId;
use crate::query::{NoQuery, Query};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use cofferdam_api::{ErrorCode, RunOutputKept, RunOutputVerdict};
use cofferdam_control::Piece;
use futures_util::{Stream, StreamExt};
use std::io;
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Runs> {
    OpenApiRouter::new().routes(routes!(bring)).routes(routes!(fetch, settle))
}

/// Bring an artifact that a run asks for
///
/// Once: whoever is cut off in the middle has ended the run.
#[utoipa::path(
    put, path = "/runs/{id}/inputs/{number}", operation_id = "run_input", tag = "runs",
    params(
        ("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa"),
        ("number" = u64, Path, description = "As in the event that asked for it"),
        ("attempt" = u64, Query, description = "Which attempt", maximum = 9223372036854775807_u64),
        ("fence" = u64, Query, description = "The claim of whoever brings it", maximum = 9223372036854775807_u64),
        ("refused" = Option<String>, Query, pattern = "^[^\\u0000]*$", description = "Why there is nothing to bring; then the body is not looked at"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The artifact"),
    responses((status = 204, description = "The run has all of it"), Always, OfOne, OfBody, OfState)
)]
async fn bring(
    State(runs): State<Runs>,
    NumberedId(id, number): NumberedId,
    query: Query,
    request: Request,
) -> Answer {
    query.only(&["attempt", "fence", "refused"])?;
    let (attempt, fence) = claim(&query)?;
    let run = runs.desk(&id, attempt, fence)?.take_input(number).ok_or_else(not_asked)?;
    if let Some(why) = query.get("refused") {
        run.send(Piece::Failed(why.to_owned())).await.map_err(|_| gone())?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let mut body = request.into_body().into_data_stream();
    while let Some(piece) = body.next().await {
        match piece {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(bytes) => run.send(Piece::Bytes(bytes.into())).await.map_err(|_| gone())?,
            Err(_) => {
                return Err(Problem::new(ErrorCode::Malformed, "the body was cut off", "run the job again"));
            }
        }
    }
    run.send(Piece::End).await.map_err(|_| gone())?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Fetch an artifact that a run leaves
///
/// Once. The answer is cut off where the file could not be read to its end.
#[utoipa::path(
    get, path = "/runs/{id}/outputs/{number}", operation_id = "run_output", tag = "runs",
    params(
        ("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa"),
        ("number" = u64, Path, description = "As in the event that told of it"),
        ("attempt" = u64, Query, description = "Which attempt", maximum = 9223372036854775807_u64),
        ("fence" = u64, Query, description = "The claim of whoever fetches it", maximum = 9223372036854775807_u64),
    ),
    responses(
        (status = 200, description = "The artifact", content_type = "application/octet-stream", body = Vec<u8>),
        Always, OfOne, OfState
    )
)]
async fn fetch(State(runs): State<Runs>, NumberedId(id, number): NumberedId, query: Query) -> Answer {
    query.only(&["attempt", "fence"])?;
    let (attempt, fence) = claim(&query)?;
    let pieces = runs.desk(&id, attempt, fence)?.take_output(number).ok_or_else(not_asked)?;
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, Body::from_stream(bytes_of(pieces))).into_response())
}

/// Say what became of an artifact that a run leaves
///
/// The run waits for it, and goes on with the next.
#[utoipa::path(
    post, path = "/runs/{id}/outputs/{number}", operation_id = "run_output_settle", tag = "runs",
    params(
        ("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa"),
        ("number" = u64, Path, description = "As in the event that told of it"),
    ),
    request_body(content = RunOutputKept, content_type = "application/json"),
    responses((status = 204, description = "The run has heard it"), Always, OfOne, OfBody, OfState)
)]
async fn settle(
    State(runs): State<Runs>,
    NumberedId(id, number): NumberedId,
    _: NoQuery,
    body: JsonBody<RunOutputKept>,
) -> Answer {
    let RunOutputKept { attempt, fence, verdict } = body.value;
    let verdict = match verdict {
        RunOutputVerdict::Kept { size_bytes } => Ok(size_bytes),
        RunOutputVerdict::Refused { why } => Err(why),
    };
    match runs.desk(&id, attempt, fence)?.settle_output(number, verdict) {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(not_asked()),
    }
}

fn not_asked() -> Problem {
    let message = "the run waits for no such artifact";
    Problem::new(ErrorCode::WrongState, message, "it was never asked for, or somebody was here before")
}

fn gone() -> Problem {
    Problem::new(ErrorCode::WrongState, "the run does not read it any more", "look at how the run ended")
}

/// What ends without the last word ends with an error, so that nobody takes it for the whole.
fn bytes_of(pieces: mpsc::Receiver<Piece>) -> impl Stream<Item = io::Result<Bytes>> {
    futures_util::stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        match pieces.recv().await {
            Some(Piece::Bytes(bytes)) => Some((Ok(bytes.into()), Some(pieces))),
            Some(Piece::End) => None,
            Some(Piece::Failed(why)) => Some((Err(io::Error::other(why)), None)),
            None => Some((Err(io::ErrorKind::UnexpectedEof.into()), None)),
        }
    })
}
