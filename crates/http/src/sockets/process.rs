//! Somebody who is connected to a process: output goes one way, input the other.

use super::{Credential, MAX_ANSWERS, cut_off, input, output};
use crate::listen::Place;
use axum::extract::ws::WebSocket;
use cofferdam_control::Control;
use cofferdam_policy::{Permit, Principal};
use futures_util::StreamExt;
use tokio::sync::mpsc;

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

impl Attachment {
    /// Until the process's end, or the client's, or that of the right to be here.
    pub(crate) async fn converse(self, socket: WebSocket) {
        let (mut out, mut input) = socket.split();
        let (answers, mut queue) = mpsc::channel(MAX_ANSWERS);
        let end = tokio::select! {
            end = output::send(&self, &mut out, &mut queue) => end,
            end = input::receive(&self, &mut input, answers) => end,
            end = cut_off(&self.control, &self.credential) => Some(end),
        };
        if let Some(end) = end {
            end.tell(out, input).await;
        }
        drop(self.place);
    }
}
