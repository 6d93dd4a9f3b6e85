//! The output of a program that has ended, in a session that goes on.
//!
//! What it left behind may still hold its streams: a server that it has started, say. What the program itself wrote is
//! in the pipes by now, and is taken. From then on the streams are read and dropped, so that whoever holds them is
//! neither stopped by a full pipe nor killed by a closed one.

use crate::job::Streams;
use crate::output::LiveOutput;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A stream that has nothing for so long has nothing of the dead program's.
const SILENT: Duration = Duration::from_millis(2);

/// Whoever writes on and on is not waited for.
const ALL: Duration = Duration::from_millis(200);

/// What is known of the output, once the program has ended.
pub(super) struct Settled {
    /// How many streams went past their limit.
    pub(super) dropped: u64,
    pub(super) error: Option<String>,
}

pub(super) async fn settle(mut streams: Streams, live: &mut dyn LiveOutput) -> Settled {
    let last = Instant::now() + ALL;
    let is_held = loop {
        match timeout_at(last.min(Instant::now() + SILENT), streams.next(live)).await {
            Ok(true) => {}
            Ok(false) => break false,
            Err(_) => break true,
        }
    };
    let (dropped, error) = streams.verdict();
    if is_held {
        tokio::spawn(streams.discard());
    }
    Settled { dropped, error }
}
