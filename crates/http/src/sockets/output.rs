//! What goes to the client: the process's output from a number on, answers, and a word now and then to see that it is
//! there.

use super::{Attachment, End, Out, PING, put, text};
use axum::body::Bytes;
use axum::extract::ws::Message;
use cofferdam_api::{FromProcess, OutputFrame, close_code};
use cofferdam_control::{ProcessTold, Stream};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// How long one look at a process waits for news.
const LOOK: Duration = Duration::from_secs(10);

/// Until the process's end; nothing where the client is gone.
pub(super) async fn send(
    attachment: &Attachment,
    out: &mut Out,
    answers: &mut mpsc::Receiver<FromProcess>,
) -> Option<End> {
    let Attachment { control, permit, session, number, .. } = attachment;
    let mut after = attachment.after;
    let mut pings = interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut first = true;
    loop {
        let time = if first { Duration::ZERO } else { LOOK };
        tokio::select! {
            biased;
            Some(answer) = answers.recv() => put(out, text(&answer)).await?,
            _ = pings.tick() => put(out, Message::Ping(Bytes::new())).await?,
            told = control.follow_process(permit, session, *number, after, time) => {
                let told = match told {
                    Ok(told) => told,
                    Err(error) => return Some(End::of(error)),
                };
                if std::mem::take(&mut first) {
                    put(out, text(&FromProcess::Attached { process: told.process.clone() })).await?;
                }
                after = pass(out, &told, after).await?;
                if told.process.outcome.is_some() {
                    let message = text(&FromProcess::Exit { process: told.process });
                    return Some(End { message, close: close_code::ENDED, reason: "the process has ended" });
                }
            }
        }
    }
}

/// Sends what was told, and says up to where the client now knows.
async fn pass(out: &mut Out, told: &ProcessTold, after: u64) -> Option<u64> {
    if told.has_gap {
        let seq = told.pieces.first().map_or(told.process.last_seq + 1, |piece| piece.seq);
        put(out, text(&FromProcess::Truncated { seq })).await?;
    }
    let mut last = if told.has_gap { told.process.last_seq.max(after) } else { after };
    for piece in &told.pieces {
        let is_stderr = piece.stream == Stream::Stderr;
        let frame = OutputFrame { seq: piece.seq, is_stderr, bytes: piece.bytes.clone() };
        put(out, Message::Binary(frame.encode().into())).await?;
        last = piece.seq;
    }
    Some(last)
}
