//! Reading what may block for ever (standard input, a named pipe) without blocking the job's own clock.
//!
//! A thread reads and hands over; it is only started when somebody wants to read, and nobody waits for it at
//! the end: it goes with the process.

use cofferdam_backend::Reader;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

const READ_BYTES: usize = 64 << 10;

/// Reads that may wait to be taken. More would only take input away from whoever reads it after us.
const READS_MAX: usize = 1;

/// A reader fed by a thread that reads `source`.
pub(crate) fn threaded(mut source: impl Read + Send + 'static) -> io::Result<Reader> {
    let (sender, receiver) = mpsc::channel(READS_MAX);
    let read_on = move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => return,
                Ok(n) => Ok(buffer[..n].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if sender.blocking_send(read).is_err() || failed {
                return;
            }
        }
    };
    std::thread::Builder::new().name("input".to_owned()).spawn(read_on)?;
    Ok(Box::new(Threaded { receiver, current: Vec::new(), taken: 0 }))
}

struct Threaded {
    receiver: mpsc::Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    taken: usize,
}

impl AsyncRead for Threaded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.taken == self.current.len() {
            match ready!(self.receiver.poll_recv(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(read) => {
                    self.current = read?;
                    self.taken = 0;
                }
            }
        }
        let rest = &self.current[self.taken..];
        let n = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..n]);
        self.taken += n;
        Poll::Ready(Ok(()))
    }
}

/// A plain file of the host. Reading it takes no longer than the disk does, so no thread is worth it.
pub(crate) struct PlainFile(pub(crate) std::fs::File);

impl AsyncRead for PlainFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n = self.0.read(buf.initialize_unfilled())?;
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn everything_comes_through_in_order() {
        let bytes: Vec<u8> = (0..300_000u32).map(|n| n as u8).collect();
        let mut read = Vec::new();
        threaded(io::Cursor::new(bytes.clone())).unwrap().read_to_end(&mut read).await.unwrap();
        assert_eq!(read, bytes);
    }

    #[tokio::test]
    async fn an_error_is_passed_on() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let error = threaded(Broken).unwrap().read_u8().await.unwrap_err();
        assert_eq!(error.to_string(), "broken");
    }
}
