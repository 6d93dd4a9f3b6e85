//! A connection to a process: a WebSocket, over the same kind of connection as everything else.

use crate::{Client, ClientError, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{FromProcess, OutputFrame, ToProcess};
use futures_util::{SinkExt, StreamExt};
use reqwest::header::{HeaderName, SEC_WEBSOCKET_ACCEPT};
use reqwest::{Response, StatusCode, Upgraded};
use std::time::Duration;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

/// More than the largest message of a server: a piece of output is 32 KiB, a description less than a mebibyte.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// A server says something every twenty seconds; one that is silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);

/// What is heard from a process.
#[derive(Debug, Clone, PartialEq)]
pub enum AttachedEvent {
    Output(OutputFrame),
    Said(FromProcess),
}

/// A connection to a process. Dropping it changes nothing for the process.
#[derive(Debug)]
pub struct Attached {
    socket: WebSocketStream<Upgraded>,
    url: String,
}

impl Attached {
    pub(crate) async fn open(client: &Client, session: &str, number: u64, from_seq: u64) -> Result<Self> {
        let number = number.to_string();
        let path = ["v1", "sessions", session, "processes", &number, "ws"];
        let drawn: [u8; 16] =
            crate::retry::random().map_err(|error| ClientError::Setup(error.to_string()))?;
        let key = STANDARD.encode(drawn);
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", &key),
        ];
        let query = [("from_seq", from_seq.to_string())];
        let response = client.upgrade(&path, &query, &headers).await?;
        let url = response.url().path().to_owned();
        let strange = |what: String| ClientError::Strange { url: url.clone(), what };
        check(&response, &key).map_err(strange)?;
        let upgraded = response.upgrade().await.map_err(|error| strange(error.to_string()))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        Ok(Self { socket, url })
    }

    /// The next event; none when the connection is closed in order. Dropping this between two calls loses nothing.
    pub async fn next(&mut self) -> Result<Option<AttachedEvent>> {
        loop {
            let message = match tokio::time::timeout(SILENCE, self.socket.next()).await {
                Err(_) => return Err(self.strange("nothing came for too long")),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(self.strange(&error.to_string())),
                Ok(Some(Ok(message))) => message,
            };
            match message {
                Message::Binary(bytes) => {
                    let frame = OutputFrame::decode(&bytes).map_err(|what| self.strange(&what))?;
                    return Ok(Some(AttachedEvent::Output(frame)));
                }
                Message::Text(text) => match serde_json::from_str(&text) {
                    Ok(said) => return Ok(Some(AttachedEvent::Said(said))),
                    // One of a kind that is not known is of the future.
                    Err(_) => continue,
                },
                Message::Close(_) => return Ok(None),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    pub async fn send(&mut self, message: &ToProcess) -> Result<()> {
        let text = serde_json::to_string(message).map_err(|error| self.strange(&error.to_string()))?;
        self.put(Message::Text(text.into())).await
    }

    /// What the process reads, as it is.
    pub async fn input(&mut self, bytes: &[u8]) -> Result<()> {
        self.put(Message::Binary(Bytes::copy_from_slice(bytes))).await
    }

    async fn put(&mut self, message: Message) -> Result<()> {
        self.socket.send(message).await.map_err(|error| self.strange(&error.to_string()))
    }

    fn strange(&self, what: &str) -> ClientError {
        ClientError::Strange { url: self.url.clone(), what: what.to_owned() }
    }
}

/// Whether the server really speaks WebSocket from here on.
fn check(response: &Response, key: &str) -> std::result::Result<(), String> {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("status {} in the place of a WebSocket", response.status()));
    }
    let accept: HeaderName = SEC_WEBSOCKET_ACCEPT;
    let said = response.headers().get(accept).and_then(|value| value.to_str().ok());
    match said == Some(&derive_accept_key(key.as_bytes())) {
        true => Ok(()),
        false => Err("the handshake was answered by something else".to_owned()),
    }
}
