//! One call to a session on a worker elsewhere, in frames.

use crate::backoff::Backoff;
use crate::call::{CallError, Peer};
use cofferdam_api::frame::{self, Frame, Frames};
use cofferdam_api::{PlaceAnswer, PlaceCall, SessionCall};
use cofferdam_control::{FileReader, FileWriter, Hold, Piece, PieceReader, Placed, SessionFailure};
use reqwest::{Body, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// A worker that is asked something small answers sooner than this.
const PATIENCE: Duration = Duration::from_secs(30);

/// The next piece of something large comes sooner than this.
const SILENCE: Duration = Duration::from_secs(60);

/// Read at once.
const PIECE_BYTES: usize = 64 << 10;

/// A worker that cannot even be reached is not tried for long.
const TRIES: u32 = 3;

/// A call whose answer is a word.
pub(super) async fn ask<T: DeserializeOwned>(
    peer: &Peer,
    at: &Placed,
    call: SessionCall,
    wait: Duration,
) -> Result<T, SessionFailure> {
    let (value, _) = timed(PATIENCE + wait, open(peer, at, call, None)).await?;
    read(value)
}

/// The same, with content. It takes as long as whoever has the content takes.
pub(super) async fn send<T: DeserializeOwned>(
    peer: &Peer,
    at: &Placed,
    call: SessionCall,
    content: FileReader,
) -> Result<T, SessionFailure> {
    let (value, _) = open(peer, at, call, Some(content)).await?;
    read(value)
}

/// A call whose answer has content: the word before it, and a reader that knows a whole from one that was cut off.
pub(super) async fn fetch<T: DeserializeOwned>(
    peer: &Peer,
    at: &Placed,
    call: SessionCall,
) -> Result<(T, FileReader), SessionFailure> {
    let (value, answer) = timed(PATIENCE, open(peer, at, call, None)).await?;
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(pass_on(answer, sender));
    Ok((read(value)?, Box::new(PieceReader::new(pieces))))
}

/// A call whose answer has content, which is written somewhere: the word after it.
pub(super) async fn fetch_into<T: DeserializeOwned>(
    peer: &Peer,
    at: &Placed,
    call: SessionCall,
    mut to: FileWriter,
) -> Result<T, SessionFailure> {
    let (_, mut answer) = timed(PATIENCE, open(peer, at, call, None)).await?;
    loop {
        match answer.next().await.map_err(|why| broken(&why))? {
            Frame::Content(bytes) => {
                to.write_all(&bytes).await.map_err(|error| broken(&error.to_string()))?
            }
            Frame::Word(bytes) => {
                let value = answered(&bytes)?;
                // Only what has its end was sent to it.
                return match answer.next().await.map_err(|why| broken(&why))? {
                    Frame::End => {
                        to.shutdown().await.map_err(|error| broken(&error.to_string()))?;
                        read(value)
                    }
                    _ => Err(broken("the worker said something after its last word")),
                };
            }
            Frame::End => return Err(broken("the worker left out its last word")),
        }
    }
}

/// Has a session stand still for as long as what is returned is kept, and the connection with it.
pub(super) async fn hold(peer: &Peer, at: &Placed) -> Result<Hold, SessionFailure> {
    let (_, mut answer) = timed(PATIENCE, open(peer, at, SessionCall::Hold, None)).await?;
    let reading = tokio::spawn(async move { while let Ok(Frame::Content(_)) = answer.next().await {} });
    Ok(Hold::of(Reading(reading)))
}

/// Reads for as long as it is kept.
struct Reading(tokio::task::JoinHandle<()>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn pass_on(mut answer: Answer, sender: mpsc::Sender<Piece>) {
    loop {
        let (piece, is_last) = match answer.next().await {
            Ok(Frame::Content(bytes)) => (Piece::Bytes(bytes), false),
            Ok(Frame::Word(bytes)) => match answered(&bytes) {
                Ok(_) => (Piece::End, true),
                Err(failure) => (Piece::Failed(failure.message), true),
            },
            Ok(Frame::End) => (Piece::Failed("the worker left out its last word".to_owned()), true),
            Err(why) => (Piece::Failed(why), true),
        };
        if sender.send(piece).await.is_err() || is_last {
            return;
        }
    }
}

async fn timed<T>(
    time: Duration,
    work: impl Future<Output = Result<T, SessionFailure>>,
) -> Result<T, SessionFailure> {
    let late = |_| Err(unreachable("the session's worker did not answer in time"));
    tokio::time::timeout(time, work).await.unwrap_or_else(late)
}

/// Makes the call, and reads the first word of its answer.
async fn open(
    peer: &Peer,
    at: &Placed,
    call: SessionCall,
    mut content: Option<FileReader>,
) -> Result<(Value, Answer), SessionFailure> {
    if !peer.breaker.allows(Instant::now()) {
        return Err(unreachable(&format!("{} has failed too often just now", peer.url)));
    }
    let path = format!("/sessions/{}/calls", at.id);
    let call = PlaceCall { generation: at.generation, call };
    let head = serde_json::to_vec(&call).ok().and_then(|bytes| frame::word(&bytes));
    let head = head.ok_or_else(|| SessionFailure::new("invalid", "request: it is too large"))?;
    let has_content = content.is_some();
    let (mut backoff, mut tries) = (Backoff::default(), 0);
    let response = loop {
        let body = match content.take() {
            Some(content) => Body::wrap_stream(framed(head.clone(), content)),
            None => Body::from([head.as_slice(), &frame::end()].concat()),
        };
        let sent = peer.exchange(&path, body).await;
        peer.note(&sent);
        tries += 1;
        match sent {
            Ok(response) => break response,
            // Nobody has read it, so it may be sent again, if it is still here.
            Err(CallError::Unreached(..)) if !has_content && tries < TRIES => backoff.pause().await,
            Err(error) => return Err(failure(error)),
        }
    };
    let mut answer = Answer { response, frames: Frames::default() };
    match answer.next().await.map_err(|why| broken(&why))? {
        Frame::Word(bytes) => Ok((answered(&bytes)?, answer)),
        Frame::Content(_) | Frame::End => Err(broken("the worker answered without a word")),
    }
}

/// A call and its content, as they are read.
fn framed(head: Vec<u8>, content: FileReader) -> impl futures_util::Stream<Item = io::Result<Vec<u8>>> {
    let state = (Some(head), Some(content));
    futures_util::stream::unfold(state, |(head, content)| async move {
        if let Some(head) = head {
            return Some((Ok(head), (None, content)));
        }
        let mut content = content?;
        let mut piece = vec![0; PIECE_BYTES];
        Some(match content.read(&mut piece).await {
            Ok(0) => (Ok(frame::end()), (None, None)),
            Ok(read) => (Ok(frame::content(&piece[..read])), (None, Some(content))),
            // Without an end it is no whole one, and the worker knows.
            Err(error) => (Err(error), (None, None)),
        })
    })
}

/// The frames of an answer.
struct Answer {
    response: Response,
    frames: Frames,
}

impl Answer {
    async fn next(&mut self) -> Result<Frame, String> {
        loop {
            if let Some(frame) = self.frames.next_frame()? {
                return Ok(frame);
            }
            match tokio::time::timeout(SILENCE, self.response.chunk()).await {
                Ok(Ok(Some(bytes))) => self.frames.push(&bytes),
                Ok(Ok(None)) => return Err("the worker's answer was cut off".to_owned()),
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => return Err("the worker says nothing any more".to_owned()),
            }
        }
    }
}

fn answered(bytes: &[u8]) -> Result<Value, SessionFailure> {
    match serde_json::from_slice(bytes).map_err(|error| broken(&error.to_string()))? {
        PlaceAnswer::Done { value } => Ok(value),
        PlaceAnswer::Failed { code, message } => Err(SessionFailure::new(code, message)),
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, SessionFailure> {
    serde_json::from_value(value).map_err(|error| broken(&error.to_string()))
}

pub(super) fn unreachable(why: &str) -> SessionFailure {
    SessionFailure::new("worker_unreachable", why)
}

fn broken(why: &str) -> SessionFailure {
    unreachable(&format!("the session's worker did not answer as it should: {why}"))
}

/// What a call that was not answered means for the session.
pub(super) fn failure(error: CallError) -> SessionFailure {
    match error {
        CallError::Refused { failure: Some(code), said, .. } => SessionFailure::new(code, said),
        // A worker of an older kind does not know the call.
        CallError::Refused { status: 400, said, .. } => SessionFailure::new("unsupported", said),
        CallError::Refused { status: 404, said, .. } => SessionFailure::new("session_gone", said),
        CallError::Refused { status: 409, said, .. } => SessionFailure::new("session_stale", said),
        CallError::Refused { status: 422, said, .. } => SessionFailure::new("invalid", said),
        error => unreachable(&error.to_string()),
    }
}
