//! A connection to a process, after its upgrade: output goes one way, input the other, and neither waits for the other.
//!
//! Nothing grows with what a client does or leaves: output is taken from what the worker keeps as fast as the client
//! reads it, what was dropped meanwhile is told, and input is passed on before more of it is read.

mod input;
mod output;

use crate::answer::Problem;
use crate::listen::Place;
use crate::while_valid::{LOOK, is_known};
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use cofferdam_api::{ErrorCode, FromProcess, close_code};
use cofferdam_artifacts::Ticket;
use cofferdam_control::{Control, ControlError};
use cofferdam_policy::{Permit, Principal};
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The largest message of a client. What is pasted comes in several.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// What a connection holds of what was not sent yet.
pub(crate) const MAX_UNSENT_BYTES: usize = 512 << 10;

/// Answers that wait to be sent. Who sends more than it reads is not read from.
const MAX_ANSWERS: usize = 8;

/// A client that takes nothing for so long is gone.
const SEND_MAX: Duration = Duration::from_secs(30);

/// The last words have so long.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A token's end is not known to the tickets that were made with it; what they open ends after this time.
const TICKET_OF_TOKEN: Duration = Duration::from_secs(900);

/// By what somebody came.
pub(crate) enum Credential {
    Secret(Option<String>),
    Ticket(Box<Ticket>),
}

/// Somebody who is connected to a process.
pub(crate) struct Attachment {
    pub(crate) control: Control,
    pub(crate) principal: Principal,
    /// To look.
    pub(crate) permit: Permit,
    pub(crate) credential: Credential,
    pub(crate) session: String,
    pub(crate) number: u64,
    /// The last number that was seen.
    pub(crate) after: u64,
    pub(crate) place: Option<Place>,
}

/// Why a connection ends, if the client has not left by itself.
struct End {
    message: FromProcess,
    close: u16,
}

impl End {
    fn new(code: ErrorCode, message: impl Into<String>, close: u16) -> Self {
        Self { message: FromProcess::Error { code, message: message.into(), is_last: true }, close }
    }

    fn of(error: ControlError) -> Self {
        let Problem { code, message, .. } = Problem::from(error);
        let close = if code == ErrorCode::Denied { close_code::REFUSED } else { close_code::FAILED };
        Self::new(code, message, close)
    }
}

fn text(message: &FromProcess) -> Message {
    Message::Text(serde_json::to_string(message).unwrap_or_default().into())
}

impl Attachment {
    /// Until the process's end, or the client's, or that of the right to be here.
    pub(crate) async fn converse(self, socket: WebSocket) {
        let (mut out, mut input) = socket.split();
        let (answers, mut queue) = mpsc::channel(MAX_ANSWERS);
        let end = tokio::select! {
            end = output::send(&self, &mut out, &mut queue) => end,
            end = input::receive(&self, &mut input, answers) => end,
            end = self.right_ends() => Some(end),
            () = self.control.stopped() => {
                let why = "the server is about to stop; connect again, from the next number";
                Some(End::new(ErrorCode::Unavailable, why, close_code::GOING))
            }
        };
        let Some(End { message, close }) = end else { return };
        let reason = match &message {
            FromProcess::Exit { .. } => "the process has ended",
            _ => "see the last message",
        };
        let close = CloseFrame { code: close, reason: reason.into() };
        let _ = timeout(LAST_WORDS, async {
            out.send(text(&message)).await?;
            out.send(Message::Close(Some(close))).await?;
            // The other side closes in turn; nobody is cut off before it has read everything.
            while let Some(Ok(_)) = input.next().await {}
            Ok::<_, axum::Error>(())
        })
        .await;
        drop(self.place);
    }

    /// Waits until whoever came by a key, token or ticket may not be here any more.
    async fn right_ends(&self) -> End {
        let began = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let is_valid = match &self.credential {
                Credential::Secret(secret) => is_known(&self.control, secret.as_deref()).await,
                Credential::Ticket(ticket) => {
                    let is_in_time = ticket.by.starts_with("key-") || began.elapsed() < TICKET_OF_TOKEN;
                    // While the store is away nobody knows; it is asked again.
                    is_in_time && self.control.is_ticket_valid(ticket).await.unwrap_or(true)
                }
            };
            if !is_valid {
                let why = "the key, token or ticket is not valid any more";
                return End::new(ErrorCode::Unauthenticated, why, close_code::REFUSED);
            }
        }
    }
}
