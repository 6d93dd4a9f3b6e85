//! Descriptors as async streams.

use cofferdam_backend::{Reader, Writer};
use cofferdam_linux::socket::{self, Fds};
use cofferdam_linux::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::unix::pipe;

/// The host's end of a pipe that a process writes to.
pub(crate) fn pipe_reader(fd: OwnedFd) -> io::Result<Reader> {
    sys::set_nonblocking(fd.as_fd())?;
    Ok(Box::new(pipe::Receiver::from_owned_fd_unchecked(fd)?))
}

/// The host's end of a pipe that a process reads from.
pub(crate) fn pipe_writer(fd: OwnedFd) -> io::Result<Writer> {
    sys::set_nonblocking(fd.as_fd())?;
    Ok(Box::new(pipe::Sender::from_owned_fd_unchecked(fd)?))
}

/// A terminal's master side: one descriptor to read, one to write, one for its size.
pub(crate) struct Terminal {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) control: OwnedFd,
}

impl Terminal {
    pub(crate) fn new(master: OwnedFd) -> io::Result<Self> {
        sys::set_nonblocking(master.as_fd())?;
        let reader = pipe::Receiver::from_owned_fd_unchecked(master.try_clone()?)?;
        let writer = pipe::Sender::from_owned_fd_unchecked(master.try_clone()?)?;
        Ok(Self { reader: Box::new(UntilHangUp(reader)), writer: Box::new(writer), control: master })
    }
}

/// Reads a terminal until the last process that had it open is gone, which the kernel calls an error.
struct UntilHangUp(pipe::Receiver);

impl AsyncRead for UntilHangUp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.0).poll_read(cx, buf)) {
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Poll::Ready(Ok(())),
            other => Poll::Ready(other),
        }
    }
}

/// A socket that carries whole messages and descriptors.
///
/// Only what can be read is watched for: else the kernel would wake this process whenever the other side has read
/// something, in the middle of the other side's work.
pub(crate) struct Packets(AsyncFd<OwnedFd>);

impl Packets {
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        sys::set_nonblocking(socket.as_fd())?;
        #[expect(
            deprecated,
            reason = "sound for a descriptor that is owned and never replaced; the other is unsafe"
        )]
        Ok(Self(AsyncFd::with_interest(socket, Interest::READABLE)?))
    }

    pub(crate) fn send(&self, message: &[u8], fds: &[RawFd]) -> sys::Result<()> {
        socket::send(self.0.as_raw_fd(), message, fds)
    }

    /// Takes a message that is there already.
    pub(crate) fn receive_now(&self, buffer: &mut [u8]) -> sys::Result<(usize, Fds)> {
        socket::receive(self.0.as_raw_fd(), buffer)
    }

    /// Waits for one message; a length of 0 is the other side's end.
    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Fds)> {
        let mut receive = |socket: &OwnedFd| match socket::receive(socket.as_raw_fd(), buffer) {
            // The other side ended with something unread. That is said once, before what it had sent.
            Err(sys::Errno(libc::ECONNRESET)) => Ok(socket::receive(socket.as_raw_fd(), buffer)?),
            other => Ok(other?),
        };
        self.0.async_io(Interest::READABLE, &mut receive).await
    }
}
