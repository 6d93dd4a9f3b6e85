//! The first process of a sandbox, made while there is nothing else to do: behind every wall already, it has looked at
//! them, and it waits for what to execute.
//!
//! There is one, and it is there before any program runs, so that nobody inside sees it, stops it or ends it. Every later
//! process is made when it is asked for, the same way. Whatever is wrong with it, it ends, and that way is taken.

use super::launch::{self, Launch, Launched, Said};
use crate::facts::Facts;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The most that is read of what it saw; a list of mounts is a few pages.
const MOST_SAID: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Spare {
    launched: Launched,
    said: Vec<u8>,
    /// What it saw, when it has said so.
    seen: Option<Box<Facts>>,
}

impl Spare {
    /// Makes one, which looks at its walls at once. One that cannot be made is none.
    pub(super) fn make() -> Option<Self> {
        let launched = launch::begin().ok()?;
        let spare = Self { launched, said: Vec::new(), seen: None };
        match spare.launched.look() {
            Ok(()) => Some(spare),
            Err(_) => {
                spare.end();
                None
            }
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.launched.pid
    }

    /// Its socket, while it is looking.
    pub(super) fn looking(&self) -> Option<BorrowedFd<'_>> {
        self.seen.is_none().then(|| self.launched.socket.as_fd())
    }

    pub(super) fn seen(&self) -> Option<&Facts> {
        self.seen.as_deref()
    }

    /// Takes what it has to say; `false` if it is of no use.
    pub(super) fn listen(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        match recv(&self.launched.socket, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return false,
            Ok((_, read)) => self.said.extend_from_slice(&buffer[..read]),
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Err(_) => return false,
        }
        if self.said.last() != Some(&b'\n') {
            return self.said.len() <= MOST_SAID;
        }
        match launch::said(&std::mem::take(&mut self.said)) {
            Some(Said::Seen(seen)) if !seen.changed_it() => {
                self.seen = Some(seen);
                true
            }
            _ => false,
        }
    }

    /// Becomes the process that is asked for, unless it is gone.
    pub(super) fn execute(self, launch: &Launch, streams: &[OwnedFd; 3]) -> Option<Launched> {
        match self.launched.execute(launch, streams) {
            Ok(()) => Some(self.launched),
            Err(_) => {
                self.end();
                None
            }
        }
    }

    /// It is reaped as any other that nobody knows.
    pub(super) fn end(self) {
        let _ = kill(self.pid(), Signal::SIGKILL);
    }
}
