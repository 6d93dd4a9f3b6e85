//! One file's part of a stream, which whoever writes the file may own.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// A stream that is read by one after the other.
pub(super) struct Shared<R>(Arc<Mutex<R>>);

impl<R> Shared<R> {
    pub(super) fn new(from: R) -> Self {
        Self(Arc::new(Mutex::new(from)))
    }

    /// The next so many bytes of it.
    pub(super) fn part(&self, left: u64) -> Part<R> {
        Part { from: Arc::clone(&self.0), left }
    }
}

/// Ends after its bytes, and with an error where they do not all come.
pub(super) struct Part<R> {
    from: Arc<Mutex<R>>,
    left: u64,
}

impl<R: AsyncRead + Unpin> AsyncRead for Part<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 || buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.remaining());
        let mut room = ReadBuf::new(buf.initialize_unfilled_to(most));
        let polled = {
            let mut from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
            Pin::new(&mut *from).poll_read(cx, &mut room)
        };
        ready!(polled)?;
        let read = room.filled().len();
        if read == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        buf.advance(read);
        self.left -= read as u64;
        Poll::Ready(Ok(()))
    }
}
