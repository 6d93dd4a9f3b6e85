//! Signals that ask us to end. From the moment they are listened to, they no longer end us by themselves.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) const SIGHUP: i32 = 1;
pub(crate) const SIGINT: i32 = 2;
pub(crate) const SIGPIPE: i32 = 13;
pub(crate) const SIGTERM: i32 = 15;

pub(crate) struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Must be called inside the async runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> i32 {
        tokio::select! {
            Some(()) = self.hangup.recv() => SIGHUP,
            Some(()) = self.interrupt.recv() => SIGINT,
            Some(()) = self.terminate.recv() => SIGTERM,
            else => std::future::pending().await,
        }
    }
}

/// The name of one that can end a job.
pub(crate) fn name(signal: i32) -> &'static str {
    match signal {
        SIGHUP => "SIGHUP",
        SIGINT => "SIGINT",
        SIGPIPE => "SIGPIPE",
        SIGTERM => "SIGTERM",
        _ => "a signal",
    }
}
