//! Bytes on their way from one task to another, in pieces: whoever reads them knows a whole from one that was cut off.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// One piece. Without the last word the rest is missing.
#[derive(Debug)]
pub enum Piece {
    Bytes(Vec<u8>),
    End,
    Failed(String),
}

/// Reads what comes in pieces.
#[derive(Debug)]
pub struct PieceReader {
    pieces: mpsc::Receiver<Piece>,
    rest: Vec<u8>,
    at: usize,
    is_over: bool,
}

impl PieceReader {
    pub fn new(pieces: mpsc::Receiver<Piece>) -> Self {
        Self { pieces, rest: Vec::new(), at: 0, is_over: false }
    }
}

impl AsyncRead for PieceReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.at == self.rest.len() {
            if self.is_over {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.pieces.poll_recv(context)) {
                Some(Piece::Bytes(bytes)) => (self.rest, self.at) = (bytes, 0),
                Some(Piece::End) => self.is_over = true,
                Some(Piece::Failed(why)) => return Poll::Ready(Err(io::Error::other(why))),
                None => {
                    let why = "it was cut off on its way";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)));
                }
            }
        }
        let count = (self.rest.len() - self.at).min(buffer.remaining());
        let from = self.at;
        buffer.put_slice(&self.rest[from..from + count]);
        self.at += count;
        Poll::Ready(Ok(()))
    }
}
