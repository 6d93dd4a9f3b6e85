//! A reader that fails past a number of bytes: a file's size as listed says nothing about what will be read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

pub(super) struct Capped<R> {
    reader: R,
    left: u64,
}

impl<R> Capped<R> {
    pub(super) fn new(reader: R, max_bytes: u64) -> Self {
        Self { reader, left: max_bytes }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Capped<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        match self.left.checked_sub(read) {
            Some(left) => {
                self.left = left;
                Poll::Ready(Ok(()))
            }
            None => {
                // A read that fails must look as if nothing was read.
                buf.set_filled(before);
                Poll::Ready(Err(io::Error::other("the artifacts are larger than the job's disk limit")))
            }
        }
    }
}
