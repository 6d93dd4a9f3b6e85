//! Our own stdout and stderr, for what a sandbox has written. A terminal is only shown what draws.

use super::live::{Sink, sink};
use crate::exit::Failure;
use std::io::{Write, stderr, stdout};

pub(crate) struct Streams {
    stdout: Sink,
    stderr: Sink,
}

impl Streams {
    pub(crate) fn open() -> Result<Self, Failure> {
        Ok(Self { stdout: sink(stdout())?, stderr: sink(stderr())? })
    }

    pub(crate) fn out(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        put(&mut self.stdout, bytes)
    }

    pub(crate) fn err(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        put(&mut self.stderr, bytes)
    }
}

fn put(stream: &mut Sink, bytes: &[u8]) -> Result<(), Failure> {
    let written = stream.write_all(bytes).and_then(|()| stream.flush());
    written.map_err(|error| Failure::new(format!("the output could not all be written: {error}")))
}
