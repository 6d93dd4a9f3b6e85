//! `POST /sessions/{id}/calls`: everything that is asked of a session besides start, step and terminate. One call a
//! request, in frames: a word that says what is asked, and content where that has any; back comes a word, content where
//! the answer has any and then a last word, and the end. Content passes through: nothing is kept here.

use super::Runs;
use crate::answer::{Answer, Problem};
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::path::Id;
use crate::query::NoQuery;
use axum::body::{Body, BodyDataStream};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::frame::{self, Frame, Frames};
use cofferdam_api::{
    ErrorCode, PlaceAnswer, PlaceCall, ProcessNews, ProcessNewsPiece, SavedNews, SessionCall, WatchNews,
};
use cofferdam_control::{
    ArchiveKind, FileReader, FileSearch, Hold, Piece, PieceReader, Placed, ProcessPiece, ProcessTold,
    SavedFiles, SecretFile, SessionFailure, SessionWorker, Stream, WatchTold,
};
use cofferdam_core::{GuestPath, InvalidValue, SessionId};
use futures_util::StreamExt;
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Files on their way out of the sandbox, at most.
const BETWEEN: usize = 256 << 10;

/// Nobody is waited with for longer than this.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// How often whoever holds a session hears something, so that one who is gone is known.
const KEEP: Duration = Duration::from_secs(1);

/// As much as a process is given at once, or a secret has.
const MAX_SMALL: u64 = 1 << 20;

pub(super) fn routes() -> OpenApiRouter<Runs> {
    OpenApiRouter::new().routes(routes!(calls))
}

/// Ask something of a session
///
/// One call: files, processes, what is frozen, saved and restored, secrets. The body and the answer are frames: a byte
/// for the kind, four for the length (big-endian), and as many bytes. Kind 1 is a word, in JSON, of at most 16 MiB; 2 is
/// content, of at most 1 MiB; 3 is the end, without which a stream was cut off. The body is a `PlaceCall` as a word,
/// content where the call has any, and the end. The answer is a `PlaceAnswer` as a word; where content belongs to it,
/// that and another `PlaceAnswer`; and the end.
#[utoipa::path(
    post, path = "/sessions/{id}/calls", operation_id = "place_call", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "Frames"),
    responses(
        (status = 200, description = "Frames", content_type = "application/octet-stream", body = Vec<u8>),
        Always, OfOne, OfBody, OfState
    )
)]
async fn calls(State(runs): State<Runs>, Id(id): Id, _: NoQuery, request: Request) -> Answer {
    let mut asked = Asked { body: request.into_body().into_data_stream(), frames: Frames::default() };
    let PlaceCall { generation, call } = asked.head().await?;
    runs.check_session(&id, generation)?;
    let at = Placed { id: SessionId::parse("id", &id)?, generation };
    // In a task of its own, so that a call that changes something is not cut off with whoever asked.
    let answered = tokio::spawn(async move {
        let (sender, pieces) = mpsc::channel(1);
        let passing = tokio::spawn(asked.pass_on(sender));
        let answered = match runs.session_worker() {
            Ok(sessions) => answer(&runs, sessions, &at, call, PieceReader::new(pieces)).await,
            Err(_) => Err(SessionFailure::new("unsupported", "this worker has no sessions")),
        };
        // Whoever still sends would not read an answer.
        let _ = passing.await;
        answered
    });
    let gone =
        |error: tokio::task::JoinError| Problem::new(ErrorCode::Internal, error.to_string(), "ask again");
    let body = match answered.await.map_err(gone)? {
        Ok(Answered::Value(value)) => Body::from([said(done(value)), frame::end()].concat()),
        Ok(Answered::Stream(stream)) => Body::from_stream(stream.into_frames()),
        Err(failure) => Body::from([said(failed(failure)), frame::end()].concat()),
    };
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// A call on its way in.
struct Asked {
    body: BodyDataStream,
    frames: Frames,
}

impl Asked {
    async fn next(&mut self) -> Result<Frame, String> {
        loop {
            if let Some(frame) = self.frames.next_frame()? {
                return Ok(frame);
            }
            match self.body.next().await {
                Some(Ok(bytes)) => self.frames.push(&bytes),
                Some(Err(error)) => return Err(error.to_string()),
                None => return Err("the body was cut off".to_owned()),
            }
        }
    }

    async fn head(&mut self) -> Result<PlaceCall, Problem> {
        let malformed = |why: String| Problem::new(ErrorCode::Malformed, why, "send frames, a call first");
        match self.next().await.map_err(malformed)? {
            Frame::Word(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))
            }
            Frame::Content(_) | Frame::End => Err(malformed("the first frame is no word".to_owned())),
        }
    }

    /// Passes content on to whoever reads it. What nobody reads is read all the same, up to its end.
    async fn pass_on(mut self, sender: mpsc::Sender<Piece>) {
        loop {
            let (piece, is_last) = match self.next().await {
                Ok(Frame::Content(bytes)) => (Piece::Bytes(bytes), false),
                Ok(Frame::End) => (Piece::End, true),
                Ok(Frame::Word(_)) => (Piece::Failed("there is a word among the content".to_owned()), true),
                Err(why) => (Piece::Failed(why), true),
            };
            let _ = sender.send(piece).await;
            if is_last {
                return;
            }
        }
    }
}

type Tail = Pin<Box<dyn Future<Output = Result<Value, SessionFailure>> + Send>>;

enum Answered {
    Value(Value),
    Stream(Streamed),
}

/// An answer with content, and what is said after it.
struct Streamed {
    head: Value,
    content: FileReader,
    tail: Tail,
}

impl Streamed {
    fn into_frames(self) -> impl futures_util::Stream<Item = io::Result<Vec<u8>>> {
        let head = said(done(self.head));
        let first = futures_util::stream::once(async move { Ok(head) });
        let rest = futures_util::stream::unfold(Some((self.content, self.tail)), |state| async move {
            let (mut content, tail) = state?;
            let mut piece = vec![0; PIECE_BYTES];
            match content.read(&mut piece).await {
                Ok(0) => {
                    let last = tail.await.map_or_else(failed, done);
                    Some((Ok([said(last), frame::end()].concat()), None))
                }
                Ok(read) => Some((Ok(frame::content(&piece[..read])), Some((content, tail)))),
                Err(error) => {
                    let failure = SessionFailure::new("sandbox_failed", error.to_string());
                    Some((Ok([said(failed(failure)), frame::end()].concat()), None))
                }
            }
        });
        first.chain(rest)
    }
}

fn done(value: Value) -> PlaceAnswer {
    PlaceAnswer::Done { value }
}

fn failed(failure: SessionFailure) -> PlaceAnswer {
    PlaceAnswer::Failed { code: failure.code, message: failure.message }
}

fn said(answer: PlaceAnswer) -> Vec<u8> {
    let bytes = serde_json::to_vec(&answer).unwrap_or_default();
    frame::word(&bytes).unwrap_or_else(|| {
        let failure = SessionFailure::new("too_large", "the answer is too large; ask for less");
        frame::word(&serde_json::to_vec(&failed(failure)).unwrap_or_default()).unwrap_or_default()
    })
}

fn value(value: impl Serialize) -> Result<Answered, SessionFailure> {
    let value = serde_json::to_value(value);
    value.map(Answered::Value).map_err(|error| SessionFailure::new("unreadable", error.to_string()))
}

fn nothing_more() -> Tail {
    Box::pin(async { Ok(Value::Null) })
}

fn path(text: &str) -> Result<GuestPath, SessionFailure> {
    GuestPath::parse("path", text).map_err(invalid)
}

fn kind(text: &str) -> Result<ArchiveKind, SessionFailure> {
    match text {
        "tar" => Ok(ArchiveKind::Tar),
        "zip" => Ok(ArchiveKind::Zip),
        _ => Err(invalid(InvalidValue::new("kind", text, "it must be tar or zip"))),
    }
}

fn invalid(error: InvalidValue) -> SessionFailure {
    SessionFailure::new("invalid", error.to_string())
}

fn wait(time_ms: u64) -> Duration {
    Duration::from_millis(time_ms).min(MAX_WAIT)
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What comes with a call, where that is never much.
async fn small(content: PieceReader) -> Result<Vec<u8>, SessionFailure> {
    let mut bytes = Vec::new();
    let read = content.take(MAX_SMALL + 1).read_to_end(&mut bytes).await;
    read.map_err(|error| SessionFailure::new("cut_off", error.to_string()))?;
    match bytes.len() as u64 > MAX_SMALL {
        true => {
            Err(SessionFailure::new("invalid", format!("content: it may have at most {MAX_SMALL} bytes")))
        }
        false => Ok(bytes),
    }
}

async fn answer(
    runs: &Runs,
    sessions: &dyn SessionWorker,
    at: &Placed,
    call: SessionCall,
    content: PieceReader,
) -> Result<Answered, SessionFailure> {
    match call {
        SessionCall::RestartContext { language, context } => {
            value(sessions.restart_context(&at.id, at.generation, &language, &context).await?)
        }
        SessionCall::StatFile { path: at_path } => value(sessions.stat_file(at, &path(&at_path)?).await?),
        SessionCall::ReadFile { path: from, first } => {
            let (info, content) = sessions.read_file_from(at, &path(&from)?, first).await?;
            let Answered::Value(head) = value(info)? else { return value(()) };
            Ok(Answered::Stream(Streamed { head, content, tail: nothing_more() }))
        }
        SessionCall::ReadArchive { path: from, kind: wanted } => {
            let content = sessions.read_archive(at, &path(&from)?, kind(&wanted)?).await?;
            Ok(Answered::Stream(Streamed { head: Value::Null, content, tail: nothing_more() }))
        }
        SessionCall::WriteArchive { path: to, kind: sent } => {
            value(sessions.write_archive(at, &path(&to)?, kind(&sent)?, Box::new(content)).await?)
        }
        SessionCall::SearchFiles { path: within, name, content, ignores_case, limit } => {
            let search = FileSearch { name, content, ignores_case, limit: count(limit) };
            value(sessions.search_files(at, &path(&within)?, search).await?)
        }
        SessionCall::WatchFiles { path: watched, after, time_ms } => {
            let told = sessions.watch_files(at, &path(&watched)?, after, wait(time_ms)).await?;
            let WatchTold { changes, has_gap, last_seq, is_over } = told;
            value(WatchNews { changes, has_gap, last_seq, is_over })
        }
        SessionCall::WriteFile { path: to, mode } => {
            value(sessions.write_file(at, &path(&to)?, mode, Box::new(content)).await?)
        }
        SessionCall::ListFiles { path: within, depth, limit } => {
            value(sessions.list_files(at, &path(&within)?, count(depth), count(limit)).await?)
        }
        SessionCall::MakeFolder { path: made } => value(sessions.make_folder(at, &path(&made)?).await?),
        SessionCall::MoveFile { from, to } => {
            value(sessions.move_file(at, &path(&from)?, &path(&to)?).await?)
        }
        SessionCall::RemoveFile { path: removed, all } => {
            value(sessions.remove_file(at, &path(&removed)?, all).await?)
        }
        SessionCall::StartProcess { request } => value(sessions.start_process(at, request).await?),
        SessionCall::ListProcesses => value(sessions.list_processes(at).await?),
        SessionCall::ProcessOutput { number, after, time_ms } => {
            value(news(sessions.process_output(at, number, after, wait(time_ms)).await?))
        }
        SessionCall::WriteProcess { number, is_last } => {
            let bytes = small(content).await?;
            value(sessions.write_process(at, number, &bytes, is_last).await?)
        }
        SessionCall::SignalProcess { number, signal } => {
            value(sessions.signal_process(at, number, signal).await?)
        }
        SessionCall::ResizeProcess { number, size } => {
            value(sessions.resize_process(at, number, size).await?)
        }
        SessionCall::Freeze => value(sessions.freeze(at).await?),
        SessionCall::Thaw => value(sessions.thaw(at).await?),
        SessionCall::Hold => {
            let content =
                Box::new(Kept { hold: sessions.hold(at).await?, every: tokio::time::interval(KEEP) });
            Ok(Answered::Stream(Streamed { head: Value::Null, content, tail: nothing_more() }))
        }
        SessionCall::Save { most } => Ok(Answered::Stream(save(runs.clone(), at.clone(), most))),
        SessionCall::Restore => value(sessions.restore(at, Box::new(content)).await?),
        SessionCall::Copy { from, from_generation } => {
            let id = SessionId::parse("from", &from).map_err(invalid)?;
            let from = Placed { id, generation: from_generation };
            value(sessions.copy(&from, at).await?)
        }
        SessionCall::GiveSecret { path: to } => {
            let path = path(&to)?;
            let bytes = zeroize::Zeroizing::new(small(content).await?);
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| SessionFailure::new("invalid", "a secret is text"))?;
            let value_of = zeroize::Zeroizing::new(text.to_owned());
            value(sessions.give_secrets(at, vec![SecretFile { path, value: value_of }]).await?)
        }
    }
}

/// A byte now and then, for as long as somebody reads: then the session goes on.
struct Kept {
    #[allow(dead_code)] // held, not read
    hold: Hold,
    every: tokio::time::Interval,
}

impl AsyncRead for Kept {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.every.poll_tick(context).map(|_| {
            buffer.put_slice(&[0]);
            Ok(())
        })
    }
}

/// Has files saved while they are sent. Whoever goes away ends it.
fn save(runs: Runs, at: Placed, most: u64) -> Streamed {
    let (content, writer) = tokio::io::duplex(BETWEEN);
    let saving = tokio::spawn(async move {
        match runs.session_worker() {
            Ok(sessions) => sessions.save(&at, Box::new(writer), most).await,
            Err(_) => Err(SessionFailure::new("unsupported", "this worker has no sessions")),
        }
    });
    let tail = async move {
        let saved =
            saving.await.map_err(|error| SessionFailure::new("sandbox_failed", error.to_string()))??;
        let SavedFiles { entries, bytes, skipped } = saved;
        serde_json::to_value(SavedNews { entries, bytes, skipped })
            .map_err(|error| SessionFailure::new("unreadable", error.to_string()))
    };
    Streamed { head: Value::Null, content: Box::new(content), tail: Box::pin(tail) }
}

fn news(told: ProcessTold) -> ProcessNews {
    let ProcessTold { pieces, has_gap, process } = told;
    let piece = |ProcessPiece { seq, stream, bytes }: ProcessPiece| ProcessNewsPiece {
        seq,
        is_stderr: stream == Stream::Stderr,
        base64: STANDARD.encode(bytes),
    };
    ProcessNews { pieces: pieces.into_iter().map(piece).collect(), has_gap, process }
}
