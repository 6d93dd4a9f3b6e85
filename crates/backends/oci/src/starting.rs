//! A container on its way: the helper is spoken to as soon as it is there, while the runtime that has started it is still
//! about to end. Whether the runtime was content is asked before anybody gets the sandbox.

use crate::backend::blocking;
use cofferdam_backend::{BackendError, Result};
use cofferdam_guest::host::Connection;
use rustix::fs::{Gid, OFlags, Uid};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

/// The most of a helper's last words that is kept.
const LAST_WORDS: u64 = 2048;

/// Our ends of a helper's stdin, stdout and stderr.
pub(crate) struct Streams {
    input: pipe::Sender,
    output: pipe::Receiver,
    words: OwnedFd,
}

impl Streams {
    /// With the helper's ends, which belong to `owner` where it is given.
    pub(crate) fn make(owner: Option<u32>) -> Result<(Self, [OwnedFd; 3])> {
        Self::try_make(owner)
            .map_err(|error| BackendError::failed("making the streams of the container", error))
    }

    fn try_make(owner: Option<u32>) -> io::Result<(Self, [OwnedFd; 3])> {
        let (input, our_input) = rustix::pipe::pipe()?;
        let (our_output, output) = rustix::pipe::pipe()?;
        let (words, errors) = rustix::pipe::pipe()?;
        for fd in [&our_input, &our_output, &words] {
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
            rustix::fs::fcntl_setfl(fd, rustix::fs::fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        let theirs = [input, output, errors];
        if let Some(owner) = owner {
            for fd in &theirs {
                rustix::fs::fchown(fd, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?;
            }
        }
        let input = pipe::Sender::from_owned_fd(our_input)?;
        let output = pipe::Receiver::from_owned_fd(our_output)?;
        Ok((Self { input, output, words }, theirs))
    }
}

/// A container whose helper is there.
pub(crate) struct Starting {
    pub(crate) connection: Connection,
    pub(crate) end: End,
}

/// The end of the runtime that starts it.
pub(crate) struct End {
    running: Option<JoinHandle<Result<()>>>,
    words: OwnedFd,
}

/// Runs the runtime and waits for the helper, or for whichever of the two fails first.
pub(crate) async fn start(
    run: impl FnOnce() -> io::Result<()> + Send + 'static,
    Streams { input, output, words }: Streams,
    lost_after: Duration,
) -> Result<Starting> {
    let mut end = End { running: Some(tokio::spawn(blocking(STEP, run))), words };
    let mut opening = pin!(Connection::open(output, input, lost_after));
    let opened = tokio::select! {
        opened = &mut opening => opened,
        ended = end.wait() => match ended {
            Ok(()) => opening.await,
            Err(error) => return Err(error),
        },
    };
    match opened {
        Ok(connection) => Ok(Starting { connection, end }),
        Err(error) => {
            // A helper that ended may have been ended by a runtime that failed.
            end.wait().await?;
            Err(end.explain(error))
        }
    }
}

const STEP: &str = "starting the container";

impl End {
    /// Waits for it, once: whoever asks again hears of no error.
    pub(crate) async fn wait(&mut self) -> Result<()> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let ended =
            running.await.unwrap_or_else(|error| Err(BackendError::failed(STEP, io::Error::other(error))));
        self.running = None;
        ended.map_err(|error| self.explain(error))
    }

    /// By what came out of stderr so far, if anything did.
    fn explain(&self, error: BackendError) -> BackendError {
        let mut bytes = Vec::new();
        if let Ok(words) = self.words.try_clone() {
            let _ = File::from(words).take(LAST_WORDS).read_to_end(&mut bytes);
        }
        match String::from_utf8_lossy(&bytes).trim() {
            "" => error,
            words => BackendError::failed("starting the helper in the container", io::Error::other(words)),
        }
    }
}
