//! Seqpacket socket pairs that carry messages and descriptors. Usable after clone: nothing allocates.

use crate::sys::{Errno, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The most descriptors that one message carries.
///
/// An image may have 127 layers, and each comes as one.
pub const MAX_FDS: usize = 132;

/// The largest message: well above the longest argument that the kernel takes (128 KiB), and below the
/// socket's default buffer, which bounds a packet.
pub const MAX_MESSAGE: usize = 160 << 10;

/// Space for the control part of a message, aligned as the kernel wants it.
#[repr(C, align(8))]
struct ControlBuffer([u8; 16 + MAX_FDS * 4]);

const CONTROL_BYTES: usize = size_of::<ControlBuffer>();
const _: () = assert!(CONTROL_BYTES >= 16 + MAX_FDS * 4);

pub fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel fills both numbers when it succeeds.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } < 0 {
        return Err(Errno::last());
    }
    // SAFETY: both were just made for us.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Sends one message with at most `MAX_FDS` descriptors.
pub fn send(socket: RawFd, bytes: &[u8], fds: &[RawFd]) -> Result<()> {
    if fds.len() > MAX_FDS {
        return Err(Errno(libc::E2BIG));
    }
    let mut part = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if !fds.is_empty() {
        let data_bytes = size_of_val(fds) as u32;
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: pure arithmetic.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(data_bytes) } as usize;
        // SAFETY: the buffer is aligned and holds one header with MAX_FDS descriptors, and at most that many
        // are copied, as checked above.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(data_bytes) as usize;
            std::ptr::copy_nonoverlapping(fds.as_ptr().cast(), libc::CMSG_DATA(header), data_bytes as usize);
        }
    }
    loop {
        // SAFETY: message points to buffers that live across the call.
        if unsafe { libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL) } >= 0 {
            return Ok(());
        }
        match Errno::last() {
            Errno(libc::EINTR) => {}
            errno => return Err(errno),
        }
    }
}

/// Descriptors that came with a message; those that are not taken are closed.
#[derive(Debug)]
pub struct Fds {
    fds: [Option<OwnedFd>; MAX_FDS],
}

impl Default for Fds {
    fn default() -> Self {
        Self { fds: [const { None }; MAX_FDS] }
    }
}

impl Fds {
    pub fn take(&mut self, index: usize) -> Option<OwnedFd> {
        self.fds.get_mut(index)?.take()
    }

    pub(crate) fn raw(&self, index: usize) -> Option<RawFd> {
        self.fds.get(index)?.as_ref().map(AsRawFd::as_raw_fd)
    }

    pub fn count(&self) -> usize {
        self.fds.iter().flatten().count()
    }
}

/// Receives one message. A length of 0 means that the other side is gone.
pub fn receive(socket: RawFd, buffer: &mut [u8]) -> Result<(usize, Fds)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES;
    // SAFETY: message points to buffers that live across the call.
    let n = unsafe { libc::recvmsg(socket, &mut message, libc::MSG_CMSG_CLOEXEC) };
    if n < 0 {
        return Err(Errno::last());
    }
    let mut fds = Fds::default();
    let mut count = 0;
    // SAFETY: the kernel has filled the control buffer; the macros stay within its length, and each descriptor
    // in it is new and ours.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for i in 0..bytes / size_of::<RawFd>() {
                    let fd = OwnedFd::from_raw_fd(data.add(i).read_unaligned());
                    if count < MAX_FDS {
                        fds.fds[count] = Some(fd);
                        count += 1;
                    }
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
    }
    if message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(Errno(libc::EMSGSIZE));
    }
    Ok((n as usize, fds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    #[test]
    fn messages_keep_their_bounds_and_carry_descriptors() {
        let (a, b) = pair().unwrap();
        let (reader, writer) = sys::pipe().unwrap();
        send(a.as_raw_fd(), b"first", &[writer.as_raw_fd()]).unwrap();
        send(a.as_raw_fd(), b"second", &[]).unwrap();
        drop(writer);
        let mut buffer = [0; 64];
        let (n, mut fds) = receive(b.as_raw_fd(), &mut buffer).unwrap();
        assert_eq!((&buffer[..n], fds.count()), (&b"first"[..], 1));
        let passed = fds.take(0).unwrap();
        sys::write(passed.as_raw_fd(), b"x").unwrap();
        assert_eq!(sys::read(reader.as_raw_fd(), &mut buffer), Ok(1));
        let (n, fds) = receive(b.as_raw_fd(), &mut buffer).unwrap();
        assert_eq!((&buffer[..n], fds.count()), (&b"second"[..], 0));
        drop(a);
        assert_eq!(receive(b.as_raw_fd(), &mut buffer).unwrap().0, 0);
    }

    #[test]
    fn a_message_larger_than_the_buffer_is_an_error() {
        let (a, b) = pair().unwrap();
        send(a.as_raw_fd(), &[0; 100], &[]).unwrap();
        assert_eq!(receive(b.as_raw_fd(), &mut [0; 10]).unwrap_err(), Errno(libc::EMSGSIZE));
    }

    #[test]
    fn the_largest_message_goes_through() {
        let (a, b) = pair().unwrap();
        let large = vec![7u8; MAX_MESSAGE];
        send(a.as_raw_fd(), &large, &[]).unwrap();
        let mut buffer = vec![0; MAX_MESSAGE];
        assert_eq!(receive(b.as_raw_fd(), &mut buffer).unwrap().0, MAX_MESSAGE);
        assert_eq!(buffer, large);
    }
}
