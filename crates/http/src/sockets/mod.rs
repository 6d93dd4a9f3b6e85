//! Connections to a process, or to what changes in a folder: who may have one, and how each ends. What goes over them
//! goes both ways, and neither waits for the other.
//!
//! Nothing grows with what a client does or leaves: what it is told is taken from what the worker keeps as fast as the
//! client reads it, what was dropped meanwhile is told, and input is passed on before more of it is read.

mod entry;
mod input;
mod output;
mod process;
mod watch;

pub(crate) use entry::{upgrade, who};
pub(crate) use process::Attachment;
pub(crate) use watch::Watching;

use crate::answer::Problem;
use crate::while_valid::{LOOK, is_known};
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use cofferdam_api::{ErrorCode, FromProcess, close_code};
use cofferdam_artifacts::Ticket;
use cofferdam_control::{Control, ControlError};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use std::time::Duration;
use tokio::time::timeout;

/// The largest message of a client. What is pasted comes in several.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// What a connection holds of what was not sent yet.
const MAX_UNSENT_BYTES: usize = 512 << 10;

/// More often than anything on the way forgets a connection that is silent.
const PING: Duration = Duration::from_secs(20);

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

type Out = SplitSink<WebSocket, Message>;

/// Why a connection ends, if the client has not left by itself.
struct End {
    /// The last message.
    message: Message,
    close: u16,
    reason: &'static str,
}

impl End {
    fn new(code: ErrorCode, message: impl Into<String>, close: u16) -> Self {
        let message = text(&FromProcess::Error { code, message: message.into(), is_last: true });
        Self { message, close, reason: "see the last message" }
    }

    fn of(error: ControlError) -> Self {
        let Problem { code, message, .. } = Problem::from(error);
        Self::new(code, message, close_of(code))
    }

    /// Says it, and closes.
    async fn tell(self, mut out: Out, mut input: SplitStream<WebSocket>) {
        let Self { message, close, reason } = self;
        let close = CloseFrame { code: close, reason: reason.into() };
        let _ = timeout(LAST_WORDS, async {
            out.send(message).await?;
            out.send(Message::Close(Some(close))).await?;
            // The other side closes in turn; nobody is cut off before it has read everything.
            while let Some(Ok(_)) = input.next().await {}
            Ok::<_, axum::Error>(())
        })
        .await;
    }
}

fn close_of(code: ErrorCode) -> u16 {
    if code == ErrorCode::Denied { close_code::REFUSED } else { close_code::FAILED }
}

fn text(message: &impl Serialize) -> Message {
    Message::Text(serde_json::to_string(message).unwrap_or_default().into())
}

async fn put(out: &mut Out, message: Message) -> Option<()> {
    timeout(SEND_MAX, out.send(message)).await.ok()?.ok()
}

/// Waits until nobody may be connected any more: the server stops, or the key, token or ticket is not valid.
async fn cut_off(control: &Control, credential: &Credential) -> End {
    tokio::select! {
        end = right_ends(control, credential) => end,
        () = control.stopped() => {
            let why = "the server is about to stop; connect again, from the next number";
            End::new(ErrorCode::Unavailable, why, close_code::GOING)
        }
    }
}

/// Waits until whoever came by a key, token or ticket may not be here any more.
async fn right_ends(control: &Control, credential: &Credential) -> End {
    let began = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(LOOK).await;
        let is_valid = match credential {
            Credential::Secret(secret) => is_known(control, secret.as_deref()).await,
            Credential::Ticket(ticket) => {
                let is_in_time = ticket.by.starts_with("key-") || began.elapsed() < TICKET_OF_TOKEN;
                // While the store is away nobody knows; it is asked again.
                is_in_time && control.is_ticket_valid(ticket).await.unwrap_or(true)
            }
        };
        if !is_valid {
            let why = "the key, token or ticket is not valid any more";
            return End::new(ErrorCode::Unauthenticated, why, close_code::REFUSED);
        }
    }
}
