//! Processes of a session that are started by themselves: terminals, servers, long commands.

use crate::answer::{Answer, Problem, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::last_event::last_event_id;
use crate::path::{Id, IdAndName};
use crate::query::{NoQuery, Query};
use crate::stream::event;
use crate::while_valid::while_valid;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{
    ErrorCode, ErrorData, OutputData, ProcessList, ProcessRequest, ProcessView, SignalRequest, StreamEvent,
    TerminalSize, TruncatedData,
};
use cofferdam_control::{Control, ControlError, ProcessPiece, ProcessTold, Stream};
use cofferdam_policy::{Action, Permit};
use std::convert::Infallible;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new()
        .routes(routes!(list, start))
        .routes(routes!(get))
        .routes(routes!(follow))
        .routes(routes!(input))
        .routes(routes!(signal))
        .routes(routes!(resize))
}

/// How long one look at a process waits for news.
const LOOK: Duration = Duration::from_secs(10);

/// The longest that one request waits for a process's end.
const MAX_WAIT_MS: u64 = 60_000;

/// The number in a path; anything else is nobody's.
pub(super) fn number(text: &str) -> Result<u64, Problem> {
    let is_plain = !text.is_empty() && text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain).ok_or_else(|| ControlError::NotFound { what: "process" }.into())
}

/// Start a process
///
/// With pipes, or with a terminal of its own. It runs until it ends, its time is over, or the session is.
#[utoipa::path(
    post, path = "/sessions/{id}/processes", operation_id = "process_start", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    request_body(content = ProcessRequest, content_type = "application/json"),
    responses((status = 201, description = "It runs", body = ProcessView), Always, OfBody, OfOne, OfState)
)]
async fn start(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    body: Body<ProcessRequest>,
) -> Answer {
    let permit = caller.permit(&control, Action::ProcessStart).await?;
    Ok(json(201, &control.start_process(&permit, &id, body.value).await?))
}

/// List a session's processes
///
/// Those that were started by themselves, also after their end.
#[utoipa::path(
    get, path = "/sessions/{id}/processes", operation_id = "process_list", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    responses((status = 200, description = "All that are known", body = ProcessList), Always, OfOne, OfState)
)]
async fn list(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::ProcessGet).await?;
    Ok(json(200, &ProcessList { processes: control.list_processes(&permit, &id).await? }))
}

/// Show a process
///
/// With `wait_ms`, once it has ended, or after that time as it is then.
#[utoipa::path(
    get, path = "/sessions/{id}/processes/{number}", operation_id = "process_get", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("number" = String, Path, description = "The process's number", example = "1"),
        ("wait_ms" = Option<u64>, Query, minimum = 0, maximum = 60_000,
         description = "How long to wait for its end"),
    ),
    responses((status = 200, description = "How it stands", body = ProcessView), Always, OfOne, OfState)
)]
async fn get(
    State(control): State<Control>,
    caller: Caller,
    IdAndName(id, text): IdAndName,
    query: Query,
) -> Answer {
    query.only(&["wait_ms"])?;
    let time = Duration::from_millis(query.number("wait_ms", MAX_WAIT_MS)?.unwrap_or(0));
    let number = number(&text)?;
    let permit = caller.permit(&control, Action::ProcessGet).await?;
    Ok(json(200, &control.wait_process(&permit, &id, number, time).await?))
}

/// Follow a process
///
/// Server-sent events: `stdout` and `stderr` (OutputData), `truncated` where output was dropped before it was seen,
/// `exit` (ProcessView) at the end. The last mebibyte is kept: whoever was cut off sends the last id and goes on from
/// there.
#[utoipa::path(
    get, path = "/sessions/{id}/processes/{number}/output", operation_id = "process_output", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("number" = String, Path, description = "The process's number", example = "1"),
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,18}$",
         description = "The id of the last event that was seen"),
        ("follow" = Option<bool>, Query,
         description = "With `false`, the stream ends after what there is now; `true` unless given"),
    ),
    responses(
        (status = 200, description = "The events, until the process's end", content_type = "text/event-stream",
         body = StreamEvent),
        Always, OfOne, OfState,
    )
)]
async fn follow(
    State(control): State<Control>,
    caller: Caller,
    IdAndName(id, text): IdAndName,
    query: Query,
    headers: HeaderMap,
) -> Answer {
    query.only(&["follow"])?;
    let waits = query.flag("follow")?.unwrap_or(true);
    let number = number(&text)?;
    let permit = caller.permit(&control, Action::ProcessGet).await?;
    let after = last_event_id(&headers)?.map_or(0, |seq| seq.unsigned_abs());
    // What is not there is an answer of its own, and no stream.
    let first = control.follow_process(&permit, &id, number, after, Duration::ZERO).await?;
    let asked = control.clone();
    let follower =
        Follower { control, permit, session: id, number, after, waits, first: Some(first), is_over: false };
    let events = while_valid(asked, &headers, follower.stream());
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

struct Follower {
    control: Control,
    permit: Permit,
    session: String,
    number: u64,
    after: u64,
    waits: bool,
    first: Option<ProcessTold>,
    is_over: bool,
}

impl Follower {
    fn stream(self) -> impl futures_util::stream::Stream<Item = Result<Event, Infallible>> + Send + 'static {
        let events = futures_util::stream::unfold(self, |mut follower| async move {
            let events: Vec<Result<Event, Infallible>> = follower.next().await?.into_iter().map(Ok).collect();
            Some((futures_util::stream::iter(events), follower))
        });
        futures_util::StreamExt::flatten(events)
    }

    async fn next(&mut self) -> Option<Vec<Event>> {
        if self.is_over {
            return None;
        }
        let time = if self.waits { LOOK } else { Duration::ZERO };
        let told = match self.first.take() {
            Some(told) => Ok(told),
            None => {
                let Self { control, permit, session, number, after, .. } = &*self;
                control.follow_process(permit, session, *number, *after, time).await
            }
        };
        let told = match told {
            Ok(told) => told,
            Err(error) => {
                self.is_over = true;
                let Problem { code, message, .. } = Problem::from(error);
                return Some(vec![event("error", None, &ErrorData { code, message })]);
            }
        };
        let mut events = Vec::new();
        let seq = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX);
        if told.has_gap {
            let first = told.pieces.first().map_or(self.after, |piece| piece.seq - 1);
            let lost = TruncatedData {
                seq: seq(first),
                stream: "all".to_owned(),
                reason: Some("dropped".to_owned()),
            };
            events.push(event("truncated", Some(seq(first)), &lost));
        }
        for ProcessPiece { seq: at, stream, bytes } in &told.pieces {
            self.after = *at;
            let name = if *stream == Stream::Stdout { "stdout" } else { "stderr" };
            let is_text = std::str::from_utf8(bytes).is_ok();
            let base64 = (!is_text).then(|| STANDARD.encode(bytes));
            let text = String::from_utf8_lossy(bytes).into_owned();
            events.push(event(name, Some(seq(*at)), &OutputData { seq: seq(*at), text, base64 }));
        }
        if told.process.outcome.is_some() {
            self.is_over = true;
            events.push(event("exit", Some(seq(told.process.last_seq)), &told.process));
        } else if !self.waits && told.pieces.is_empty() {
            self.is_over = true;
        }
        Some(events)
    }
}

/// Write to a process
///
/// The body is what it reads, as it is. With `close=true` nothing comes after it.
#[utoipa::path(
    post, path = "/sessions/{id}/processes/{number}/input", operation_id = "process_input", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("number" = String, Path, description = "The process's number", example = "1"),
        ("close" = Option<bool>, Query, description = "Whether its input ends with this"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 204, description = "It was passed on"), Always, OfBody, OfOne, OfState)
)]
async fn input(
    State(control): State<Control>,
    caller: Caller,
    IdAndName(id, text): IdAndName,
    query: Query,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Answer {
    query.only(&["close"])?;
    let is_last = query.flag("close")?.unwrap_or(false);
    let number = number(&text)?;
    let permit = caller.permit(&control, Action::ProcessWrite).await?;
    let bytes = body.map_err(|_| {
        Problem::new(
            ErrorCode::TooLarge,
            "the body is too large, or was cut off",
            "send at most 16 MiB at once",
        )
    })?;
    control.write_process(&permit, &id, number, &bytes, is_last).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Send a signal
///
/// To the process and its group. One that has ended stays as it is.
#[utoipa::path(
    post, path = "/sessions/{id}/processes/{number}/signal", operation_id = "process_signal", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("number" = String, Path, description = "The process's number", example = "1"),
    ),
    request_body(content = SignalRequest, content_type = "application/json"),
    responses((status = 204, description = "It was sent"), Always, OfBody, OfOne, OfState)
)]
async fn signal(
    State(control): State<Control>,
    caller: Caller,
    IdAndName(id, text): IdAndName,
    _: NoQuery,
    body: Body<SignalRequest>,
) -> Answer {
    let number = number(&text)?;
    let permit = caller.permit(&control, Action::ProcessWrite).await?;
    control.signal_process(&permit, &id, number, body.value.signal).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Resize a process's terminal
#[utoipa::path(
    post, path = "/sessions/{id}/processes/{number}/resize", operation_id = "process_resize", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("number" = String, Path, description = "The process's number", example = "1"),
    ),
    request_body(content = TerminalSize, content_type = "application/json"),
    responses((status = 204, description = "It has that size"), Always, OfBody, OfOne, OfState)
)]
async fn resize(
    State(control): State<Control>,
    caller: Caller,
    IdAndName(id, text): IdAndName,
    _: NoQuery,
    body: Body<TerminalSize>,
) -> Answer {
    let number = number(&text)?;
    let permit = caller.permit(&control, Action::ProcessWrite).await?;
    control.resize_process(&permit, &id, number, body.value).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
