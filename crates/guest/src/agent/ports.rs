//! Ports on the sandbox's loopback. Nothing here waits: a guest that never accepts holds up nobody.

use super::Out;
use super::channels::Channels;
use crate::protocol::{Answer, Event, FIRST_ACCEPTED, Failure, Step};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with, sockopt,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// A connection that is being made.
#[derive(Debug)]
struct Connecting {
    number: u32,
    fd: OwnedFd,
    port: u16,
    /// Where else to try.
    then: Option<IpAddr>,
}

#[derive(Debug, Default)]
pub(super) struct Ports {
    connecting: BTreeMap<u32, Connecting>,
    listeners: BTreeMap<u32, OwnedFd>,
    accepted: u32,
}

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

fn failure(errno: Errno) -> Failure {
    Failure { step: Step::Port, errno: errno.raw_os_error() }
}

fn stream_socket(address: IpAddr) -> Result<OwnedFd, Errno> {
    let family = match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    socket_with(family, SocketType::STREAM, FLAGS, None)
}

impl Ports {
    pub(super) fn connecting(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        self.connecting.iter().map(|(channel, connecting)| (*channel, connecting.fd.as_fd()))
    }

    pub(super) fn listeners(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        self.listeners.iter().map(|(listener, fd)| (*listener, fd.as_fd()))
    }

    pub(super) fn connect(&mut self, number: u32, channel: u32, port: u16, out: &mut Out) {
        let (first, then) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        self.try_address(number, channel, port, first, Some(then), out);
    }

    fn try_address(
        &mut self,
        number: u32,
        channel: u32,
        port: u16,
        address: IpAddr,
        then: Option<IpAddr>,
        out: &mut Out,
    ) {
        let begun = stream_socket(address).and_then(|fd| {
            match connect(&fd, &SocketAddr::new(address, port)) {
                // Writable means that it is decided, even if it was at once.
                Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
                Err(errno) => Err(errno),
            }
        });
        match (begun, then) {
            (Ok(fd), then) => {
                self.connecting.insert(channel, Connecting { number, fd, port, then });
            }
            (Err(_), Some(next)) => self.try_address(number, channel, port, next, None, out),
            (Err(errno), None) => out.reply(number, Err(failure(errno))),
        }
    }

    pub(super) fn connected(&mut self, channel: u32, channels: &mut Channels, out: &mut Out) {
        let Some(Connecting { number, fd, port, then }) = self.connecting.remove(&channel) else { return };
        match (sockopt::socket_error(&fd).and_then(|result| result), then) {
            (Ok(()), _) => {
                out.reply(number, Ok(Answer::Done));
                join(channel, fd, channels);
            }
            (Err(_), Some(next)) => self.try_address(number, channel, port, next, None, out),
            (Err(errno), None) => out.reply(number, Err(failure(errno))),
        }
    }

    pub(super) fn listen(&mut self, listener: u32, port: u16) -> Result<(), Failure> {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let listening = stream_socket(address).and_then(|fd| {
            sockopt::set_socket_reuseaddr(&fd, true)?;
            bind(&fd, &SocketAddr::new(address, port))?;
            listen(&fd, 128)?;
            Ok(fd)
        });
        self.listeners.insert(listener, listening.map_err(failure)?);
        Ok(())
    }

    pub(super) fn unlisten(&mut self, listener: u32) {
        self.listeners.remove(&listener);
    }

    pub(super) fn accept(&mut self, listener: u32, channels: &mut Channels, out: &mut Out) {
        let Some(fd) = self.listeners.get(&listener) else { return };
        let Ok(connection) = accept_with(fd, FLAGS) else { return };
        let channel = FIRST_ACCEPTED | self.accepted;
        self.accepted = self.accepted.wrapping_add(1) & !FIRST_ACCEPTED;
        out.event(&Event::Accepted { listener, channel });
        join(channel, connection, channels);
    }
}

/// Both directions of a connection.
fn join(channel: u32, fd: OwnedFd, channels: &mut Channels) {
    let fd = Rc::new(fd);
    channels.add_source(channel, Rc::clone(&fd));
    channels.add_sink(channel, fd, true);
}
