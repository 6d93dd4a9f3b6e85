//! What comes from the client: each message is done before the next is read. One that cannot be done is answered, and
//! the connection goes on.

use super::{Attachment, End};
use crate::answer::Problem;
use axum::body::Bytes;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use cofferdam_api::{ErrorCode, FromProcess, TerminalSize, ToProcess, close_code};
use cofferdam_control::Result;
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Action, Permit};
use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// Every ping is answered; whoever answers none for so long is gone.
const SILENCE: Duration = Duration::from_secs(70);

/// A session that is written to is in use; so often is enough to know.
const TOUCH: Duration = Duration::from_secs(1);

/// Until the client leaves (nothing), or sends what ends the connection.
pub(super) async fn receive(
    attachment: &Attachment,
    input: &mut SplitStream<WebSocket>,
    answers: mpsc::Sender<FromProcess>,
) -> Option<End> {
    let mut writer = Writer { attachment, permit: None, touched: None };
    loop {
        let done = match came(input).await {
            Came::Message(Said::Bytes(bytes)) => writer.write(&bytes, false).await,
            Came::Message(Said::Text(text)) => match ToProcess::read(&text) {
                Ok(message) => writer.take(message).await,
                Err(why) => Err(InvalidValue::new("message", shown(&text), why).into()),
            },
            Came::Nothing => return None,
            Came::Unreadable(end) => return Some(end),
        };
        if let Err(error) = done {
            let Problem { code, message, .. } = Problem::from(error);
            answers.send(FromProcess::Error { code, message, is_last: false }).await.ok()?;
        }
    }
}

pub(super) enum Said {
    Bytes(Bytes),
    Text(Utf8Bytes),
}

/// What came next of a client.
pub(super) enum Came {
    Message(Said),
    /// It has left, or nobody knows of it any more.
    Nothing,
    Unreadable(End),
}

/// Waits for the next message of a client.
pub(super) async fn came(input: &mut SplitStream<WebSocket>) -> Came {
    loop {
        let Ok(Some(next)) = timeout(SILENCE, input.next()).await else { return Came::Nothing };
        return match next {
            Ok(Message::Binary(bytes)) => Came::Message(Said::Bytes(bytes)),
            Ok(Message::Text(text)) => Came::Message(Said::Text(text)),
            Ok(Message::Ping(_) | Message::Pong(_)) => continue,
            Ok(Message::Close(_)) => Came::Nothing,
            Err(error) => Came::Unreadable(unreadable(&error.to_string())),
        };
    }
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

/// A frame that is none, or a connection that broke. Of the second nobody is left to hear.
fn unreadable(error: &str) -> End {
    if error.contains("Space limit exceeded") {
        let why = format!("a message is at most {} bytes; send it in parts", super::MAX_MESSAGE_BYTES);
        return End::new(ErrorCode::TooLarge, why, close_code::TOO_LARGE);
    }
    End::new(ErrorCode::Malformed, format!("what came cannot be read: {error}"), close_code::UNREADABLE)
}

struct Writer<'a> {
    attachment: &'a Attachment,
    /// Asked for once something is written: who only looks needs none.
    permit: Option<Permit>,
    touched: Option<Instant>,
}

impl Writer<'_> {
    async fn take(&mut self, message: ToProcess) -> Result<()> {
        let permit = self.permit().await?;
        let Attachment { control, session, number, .. } = self.attachment;
        match message {
            ToProcess::Input { text } => self.write(text.as_bytes(), false).await,
            ToProcess::CloseInput {} => self.write(&[], true).await,
            ToProcess::Resize { rows, columns } => {
                control.resize_process(&permit, session, *number, TerminalSize { rows, columns }).await
            }
            ToProcess::Signal { signal } => control.signal_process(&permit, session, *number, signal).await,
        }
    }

    async fn write(&mut self, bytes: &[u8], is_last: bool) -> Result<()> {
        let permit = self.permit().await?;
        let Attachment { control, session, number, .. } = self.attachment;
        if self.touched.is_none_or(|at| at.elapsed() >= TOUCH) {
            self.touched = Some(Instant::now());
            control.touch_session(&permit, session).await?;
        }
        control.write_process(&permit, session, *number, bytes, is_last).await
    }

    async fn permit(&mut self) -> Result<Permit> {
        if let Some(permit) = &self.permit {
            return Ok(permit.clone());
        }
        let Attachment { control, principal, .. } = self.attachment;
        let permit = control.permit(principal, Action::ProcessWrite, &principal.tenant, None).await?;
        self.permit = Some(permit.clone());
        Ok(permit)
    }
}
