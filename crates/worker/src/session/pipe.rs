//! Bytes from one task to another, with an end that is said: a writer that goes away cuts them off, and its reader
//! hears so.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// Pieces on their way. Each has at most as many bytes as whoever writes puts into one.
const PIECES: usize = 4;

enum Piece {
    Bytes(Vec<u8>),
    Failed(io::Error),
    End,
}

pub(super) struct PipeWriter(mpsc::Sender<Piece>);

/// Whoever reads is gone.
#[derive(Debug)]
pub(super) struct Unread;

pub(super) struct PipeReader {
    pieces: mpsc::Receiver<Piece>,
    bytes: Vec<u8>,
    start: usize,
    is_over: bool,
}

pub(super) fn pipe() -> (PipeWriter, PipeReader) {
    let (sender, pieces) = mpsc::channel(PIECES);
    (PipeWriter(sender), PipeReader { pieces, bytes: Vec::new(), start: 0, is_over: false })
}

impl PipeWriter {
    pub(super) async fn send(&self, bytes: Vec<u8>) -> Result<(), Unread> {
        self.0.send(Piece::Bytes(bytes)).await.map_err(|_| Unread)
    }

    pub(super) fn send_blocking(&self, bytes: Vec<u8>) -> Result<(), Unread> {
        self.0.blocking_send(Piece::Bytes(bytes)).map_err(|_| Unread)
    }

    pub(super) async fn finish(self, end: io::Result<()>) {
        let piece = end.map_or_else(Piece::Failed, |()| Piece::End);
        // A reader that is gone does not want to know.
        let _ = self.0.send(piece).await;
    }

    pub(super) fn finish_blocking(self) {
        let _ = self.0.blocking_send(Piece::End);
    }
}

impl AsyncRead for PipeReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.start == this.bytes.len() {
            if this.is_over {
                return Poll::Ready(Ok(()));
            }
            match ready!(this.pieces.poll_recv(context)) {
                Some(Piece::Bytes(bytes)) => (this.bytes, this.start) = (bytes, 0),
                Some(Piece::End) => this.is_over = true,
                Some(Piece::Failed(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        let rest = &this.bytes[this.start..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        this.start += count;
        Poll::Ready(Ok(()))
    }
}
