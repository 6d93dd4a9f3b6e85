//! Somebody who is connected to what changes in a folder. Everything goes to the client: what comes from it is refused,
//! and the connection goes on.

use super::input::{Came, came};
use super::{Credential, End, MAX_ANSWERS, Out, PING, close_of, cut_off, put, text};
use crate::listen::Place;
use crate::watching::Follower;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket};
use cofferdam_api::{ErrorCode, WatchEvent, close_code};
use cofferdam_control::Control;
use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

pub(crate) struct Watching {
    pub(crate) control: Control,
    pub(crate) credential: Credential,
    pub(crate) follower: Follower,
    pub(crate) place: Option<Place>,
}

impl Watching {
    /// Until the folder's end, or the client's, or that of the right to be here.
    pub(crate) async fn converse(self, socket: WebSocket) {
        let Self { control, credential, mut follower, place } = self;
        let (mut out, mut input) = socket.split();
        let (answers, mut queue) = mpsc::channel(MAX_ANSWERS);
        let end = tokio::select! {
            end = send(&mut follower, &mut out, &mut queue) => end,
            end = receive(&mut input, answers) => end,
            end = cut_off(&control, &credential) => Some(end),
        };
        if let Some(end) = end {
            end.tell(out, input).await;
        }
        drop(place);
    }
}

/// Until the last event; nothing where the client is gone.
async fn send(
    follower: &mut Follower,
    out: &mut Out,
    answers: &mut mpsc::Receiver<WatchEvent>,
) -> Option<End> {
    let mut pings = interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            Some(answer) = answers.recv() => put(out, text(&answer)).await?,
            _ = pings.tick() => put(out, Message::Ping(Bytes::new())).await?,
            events = follower.next() => {
                for event in events? {
                    let close = match &event {
                        WatchEvent::Gone(_) => Some((close_code::ENDED, "the folder is gone")),
                        WatchEvent::Error { code, .. } => Some((close_of(*code), "see the last message")),
                        _ => None,
                    };
                    if let Some((close, reason)) = close {
                        return Some(End { message: text(&event), close, reason });
                    }
                    put(out, text(&event)).await?;
                }
            }
        }
    }
}

/// Until the client leaves (nothing), or sends what ends the connection.
async fn receive(input: &mut SplitStream<WebSocket>, answers: mpsc::Sender<WatchEvent>) -> Option<End> {
    loop {
        match came(input).await {
            Came::Message(_) => {
                let message = "a watch takes no messages; close the connection to end it".to_owned();
                let answer = WatchEvent::Error { code: ErrorCode::Invalid, message, is_last: false };
                answers.send(answer).await.ok()?;
            }
            Came::Nothing => return None,
            Came::Unreadable(end) => return Some(end),
        }
    }
}
