//! Ports inside a sandbox. Init hands out a socket of the sandbox's network namespace; the host binds, listens
//! and connects with it, so nothing needs to be plumbed and nothing else becomes reachable.

use cofferdam_backend::{BackendError, Listener, Result, Stream, async_trait};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A guest that never accepts must not hold a caller up for longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How many connections may wait to be accepted by the host.
const BACKLOG: u32 = 128;

pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

pub(crate) fn family(address: IpAddr) -> i32 {
    if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }
}

fn tcp(fd: OwnedFd) -> Result<TcpSocket> {
    let stream = std::net::TcpStream::from(fd);
    stream.set_nonblocking(true).map_err(|e| BackendError::failed("preparing a socket", e))?;
    Ok(TcpSocket::from_std_stream(stream))
}

/// Nothing is gained by collecting bytes for a connection that never leaves the machine.
fn undelayed(stream: TcpStream) -> Box<dyn Stream> {
    let _ = stream.set_nodelay(true);
    Box::new(stream)
}

pub(crate) async fn connect(fd: OwnedFd, address: IpAddr, port: u16) -> Result<Box<dyn Stream>> {
    let step = || format!("connecting to port {port} in the sandbox");
    let connecting = tcp(fd)?.connect(SocketAddr::new(address, port));
    match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(Ok(stream)) => Ok(undelayed(stream)),
        Ok(Err(error)) => Err(BackendError::failed(step(), error)),
        Err(_elapsed) => Err(BackendError::failed(step(), std::io::ErrorKind::TimedOut.into())),
    }
}

pub(crate) fn listen(fd: OwnedFd, port: u16) -> Result<Box<dyn Listener>> {
    let failed = |e| BackendError::failed(format!("listening on port {port} in the sandbox"), e);
    let socket = tcp(fd)?;
    socket.set_reuseaddr(true).map_err(failed)?;
    socket.bind(SocketAddr::new(V4, port)).map_err(failed)?;
    Ok(Box::new(GuestListener(socket.listen(BACKLOG).map_err(failed)?)))
}

struct GuestListener(TcpListener);

#[async_trait]
impl Listener for GuestListener {
    async fn accept(&self) -> Result<Box<dyn Stream>> {
        let (stream, _) = self.0.accept().await.map_err(|e| BackendError::failed("accepting", e))?;
        Ok(undelayed(stream))
    }
}
