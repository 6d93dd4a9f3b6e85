//! The bytes of a request, on their way to whoever takes them, in large pieces.
//!
//! A connection has them in pieces of some kibibytes, and who takes them is another task. To wake that one, and be woken
//! by it, takes longer than such a piece is worth. So pieces are gathered by the task that serves the connection. No byte
//! is copied for that.

use axum::body::{Body, Bytes};
use cofferdam_control::FileReader;
use futures_util::StreamExt;
use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Whoever sends nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);

/// Handed on at once: what is written to a file at once. As much again waits to be taken.
const ENOUGH_BYTES: usize = 512 << 10;

/// Also of the smallest pieces, each of which may hold on to a buffer of a connection.
const MOST_PIECES: usize = 32;

/// The bytes of a body, as they come, and what has to go on for them to come: see [`while_it_comes`]. A body that is cut
/// off, or is silent for too long, is an error.
pub(super) fn content_of(body: Body) -> (FileReader, impl Future<Output = ()> + Send) {
    // One is taken apart, one waits, and one is gathered.
    let (to, from) = mpsc::channel(1);
    let content = Content { from, pieces: VecDeque::new(), has_all: false };
    (Box::new(content), gather(body, to, SILENCE))
}

/// What becomes of the bytes. What is not taken by then does not come any more.
pub(super) async fn while_it_comes<T>(
    coming: impl Future<Output = ()>,
    taking: impl Future<Output = T>,
) -> T {
    let mut taking = pin!(taking);
    tokio::select! {
        taken = &mut taking => return taken,
        () = coming => {}
    }
    taking.await
}

enum Arrived {
    Pieces(Vec<Bytes>),
    /// Without it, the rest is missing.
    All,
    Broken(io::Error),
}

async fn gather(body: Body, to: mpsc::Sender<Arrived>, silence: Duration) {
    let mut body = body.into_data_stream();
    let mut end = None;
    while end.is_none() {
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        while end.is_none() && bytes < ENOUGH_BYTES && pieces.len() < MOST_PIECES {
            match timeout(silence, body.next()).await {
                Ok(Some(Ok(piece))) => {
                    bytes += piece.len();
                    pieces.push(piece);
                }
                Ok(Some(Err(error))) => end = Some(Arrived::Broken(io::Error::other(error))),
                Ok(None) => end = Some(Arrived::All),
                Err(_) => end = Some(Arrived::Broken(io::ErrorKind::TimedOut.into())),
            }
        }
        if to.send(Arrived::Pieces(pieces)).await.is_err() {
            // Nobody takes it any more.
            return;
        }
    }
    if let Some(end) = end {
        let _ = to.send(end).await;
    }
}

struct Content {
    from: mpsc::Receiver<Arrived>,
    pieces: VecDeque<Bytes>,
    has_all: bool,
}

impl Content {
    /// As much as there is room for. Whether it was anything.
    fn take(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let before = buffer.remaining();
        while let Some(piece) = self.pieces.front_mut() {
            let most = piece.len().min(buffer.remaining());
            buffer.put_slice(&piece.split_to(most));
            if !piece.is_empty() {
                break;
            }
            self.pieces.pop_front();
        }
        buffer.remaining() < before
    }
}

impl AsyncRead for Content {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.take(buffer) && !self.has_all && buffer.remaining() > 0 {
            match ready!(self.from.poll_recv(context)) {
                Some(Arrived::Pieces(pieces)) => self.pieces = pieces.into(),
                Some(Arrived::All) => self.has_all = true,
                Some(Arrived::Broken(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use tokio::io::AsyncReadExt;

    fn body(pieces: Vec<Result<Bytes, io::Error>>) -> Body {
        Body::from_stream(stream::iter(pieces))
    }

    fn piece(bytes: usize) -> Bytes {
        (0..bytes).map(|at| (at % 251) as u8).collect()
    }

    /// What arrives, and how that ended.
    async fn read(body: Body) -> (Vec<u8>, io::Result<usize>) {
        let (mut content, coming) = content_of(body);
        let mut found = Vec::new();
        let ended = while_it_comes(coming, content.read_to_end(&mut found)).await;
        (found, ended)
    }

    #[tokio::test]
    async fn every_byte_arrives_in_its_order() {
        for sizes in [vec![], vec![0], vec![1, 0, 7], vec![40_000; 100], vec![3 * ENOUGH_BYTES, 5]] {
            let pieces: Vec<_> = sizes.into_iter().map(piece).collect();
            let (found, ended) = read(body(pieces.iter().cloned().map(Ok).collect())).await;
            let sent = pieces.concat();
            assert_eq!((ended.unwrap(), found == sent), (sent.len(), true));
        }
    }

    #[tokio::test]
    async fn many_pieces_are_handed_on_at_once_and_not_too_many() {
        for (bytes, expected) in [(32 << 10, 16), (1, MOST_PIECES), (2 * ENOUGH_BYTES, 1)] {
            let (to, mut from) = mpsc::channel(1);
            let body = body((0..100).map(|_| Ok(piece(bytes))).collect());
            let first = async move {
                match from.recv().await {
                    Some(Arrived::Pieces(pieces)) => pieces.len(),
                    _ => 0,
                }
            };
            assert_eq!(while_it_comes(gather(body, to, SILENCE), first).await, expected, "{bytes}");
        }
    }

    #[tokio::test]
    async fn what_breaks_off_is_an_error_behind_what_there_was() {
        let pieces = vec![Ok(piece(9)), Err(io::ErrorKind::ConnectionReset.into())];
        let (found, ended) = read(body(pieces)).await;
        assert_eq!((ended.is_err(), found.len()), (true, 9));
    }

    #[tokio::test]
    async fn where_nobody_brings_the_rest_it_is_not_the_end() {
        let (mut content, coming) = content_of(body(vec![Ok(piece(9))]));
        drop(coming);
        let error = content.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn silence_is_an_error_behind_what_there_was() {
        let (to, mut from) = mpsc::channel(3);
        let pieces = stream::iter([Ok::<_, io::Error>(piece(9))]);
        gather(Body::from_stream(pieces.chain(stream::pending())), to, Duration::from_millis(1)).await;
        assert!(matches!(from.recv().await, Some(Arrived::Pieces(pieces)) if pieces.len() == 1));
        let error = match from.recv().await {
            Some(Arrived::Broken(error)) => Some(error.kind()),
            _ => None,
        };
        assert_eq!(error, Some(io::ErrorKind::TimedOut));
    }
}
