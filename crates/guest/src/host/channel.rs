//! The two ends of a channel as tokio's traits.

use super::connection::Sender;
use crate::protocol::{CHUNK, Kind, WINDOW, credit, frame};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[derive(Debug, Default)]
struct Inbox {
    pieces: VecDeque<Vec<u8>>,
    /// How much of the first one is taken.
    offset: usize,
    bytes: usize,
    ended: bool,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Outbox {
    credit: usize,
    closed: bool,
    waker: Option<Waker>,
}

/// What both sides of a channel share with the connection.
#[derive(Debug)]
pub(super) struct Channel {
    number: u32,
    inbox: Mutex<Inbox>,
    outbox: Mutex<Outbox>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Channel {
    pub(super) fn new(number: u32) -> Arc<Self> {
        let outbox = Outbox { credit: WINDOW as usize, closed: false, waker: None };
        Arc::new(Self { number, inbox: Mutex::default(), outbox: Mutex::new(outbox) })
    }

    /// Bytes from inside. More than was ever allowed is a helper that is not ours any more: they are dropped.
    pub(super) fn receive(&self, content: Vec<u8>) {
        let mut inbox = lock(&self.inbox);
        if inbox.ended || inbox.bytes + content.len() > WINDOW as usize {
            return;
        }
        inbox.bytes += content.len();
        inbox.pieces.push_back(content);
        if let Some(waker) = inbox.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn end(&self) {
        let mut inbox = lock(&self.inbox);
        inbox.ended = true;
        if let Some(waker) = inbox.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn add_credit(&self, bytes: u32) {
        let mut outbox = lock(&self.outbox);
        outbox.credit = (outbox.credit + bytes as usize).min(WINDOW as usize);
        if let Some(waker) = outbox.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn close(&self) {
        let mut outbox = lock(&self.outbox);
        outbox.closed = true;
        if let Some(waker) = outbox.waker.take() {
            waker.wake();
        }
    }
}

/// Reads what comes from inside.
#[derive(Debug)]
pub(super) struct ChannelReader {
    channel: Arc<Channel>,
    sender: Sender,
    /// Consumed and not yet handed back.
    owed: u32,
}

impl ChannelReader {
    pub(super) fn new(channel: &Arc<Channel>, sender: &Sender) -> Self {
        Self { channel: Arc::clone(channel), sender: sender.clone(), owed: 0 }
    }
}

impl AsyncRead for ChannelReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut taken = 0;
        let ended = {
            let channel = Arc::clone(&self.channel);
            let mut inbox = lock(&channel.inbox);
            while buffer.remaining() > 0 {
                let offset = inbox.offset;
                let Some(piece) = inbox.pieces.front() else { break };
                let rest = &piece[offset..];
                let count = rest.len().min(buffer.remaining());
                buffer.put_slice(&rest[..count]);
                taken += count;
                if count == rest.len() {
                    inbox.pieces.pop_front();
                    inbox.offset = 0;
                } else {
                    inbox.offset += count;
                }
            }
            inbox.bytes -= taken;
            if taken == 0 && !inbox.ended && buffer.remaining() > 0 {
                inbox.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            inbox.ended && inbox.pieces.is_empty()
        };
        self.owed += taken as u32;
        if !ended && self.owed >= WINDOW / 4 {
            self.sender.send(credit(self.channel.number, self.owed));
            self.owed = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for ChannelReader {
    fn drop(&mut self) {
        if !lock(&self.channel.inbox).ended {
            self.sender.send(frame(Kind::Close, self.channel.number, &[]));
        }
        self.sender.forget(self.channel.number);
    }
}

/// Writes to what is inside.
#[derive(Debug)]
pub(super) struct ChannelWriter {
    channel: Arc<Channel>,
    sender: Sender,
    ended: bool,
}

impl ChannelWriter {
    pub(super) fn new(channel: &Arc<Channel>, sender: &Sender) -> Self {
        Self { channel: Arc::clone(channel), sender: sender.clone(), ended: false }
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.sender.send(frame(Kind::Eof, self.channel.number, &[]));
        }
    }
}

impl AsyncWrite for ChannelWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut outbox = lock(&self.channel.outbox);
        if outbox.closed || self.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = bytes.len().min(outbox.credit).min(CHUNK);
        if count == 0 && !bytes.is_empty() {
            outbox.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        outbox.credit -= count;
        self.sender.send(frame(Kind::Data, self.channel.number, &bytes[..count]));
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end();
        Poll::Ready(Ok(()))
    }
}

impl Drop for ChannelWriter {
    fn drop(&mut self) {
        self.end();
        self.sender.forget(self.channel.number);
    }
}

/// Both directions of a connection to a port.
#[derive(Debug)]
pub(super) struct Duplex {
    pub(super) reader: ChannelReader,
    pub(super) writer: ChannelWriter,
}

impl AsyncRead for Duplex {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(context, buffer)
    }
}

impl AsyncWrite for Duplex {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}
