//! Reaching the daemon, and saying clearly why it cannot be reached.

use crate::engine::Engine;
use bollard::{API_DEFAULT_VERSION, Docker};
use cofferdam_backend::{BackendError, Result};
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// How long the daemon may take for one answer. Committing a large image is the longest.
const ANSWER_WITHIN_SECONDS: u64 = 120;

/// How long it may take to be reached at all.
const REACHED_WITHIN: Duration = Duration::from_secs(3);

/// An address of a daemon, as `DOCKER_HOST` spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    engine: Engine,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Socket(String),
    Tcp(String),
}

impl Address {
    pub(crate) fn parse(engine: Engine, host: &str) -> Result<Self> {
        let at = |place| Ok(Self { engine, place });
        if let Some(path) = host.strip_prefix("unix://") {
            return at(Place::Socket(path.to_owned()));
        }
        if host.starts_with('/') {
            return at(Place::Socket(host.to_owned()));
        }
        if let Some(address) = host.strip_prefix("tcp://").or_else(|| host.strip_prefix("http://")) {
            return at(Place::Tcp(address.trim_end_matches('/').to_owned()));
        }
        Err(BackendError::Refused {
            reason: format!("{host:?} is no address of a daemon that can be used"),
            fix: "write unix:///path/of/the/socket, or tcp://host:port; ssh:// and TLS need a socket that \
                  `ssh -L` or a proxy makes"
                .to_owned(),
        })
    }

    /// Whether what is sent to it stays on this machine.
    pub(crate) fn is_of_this_machine(&self) -> bool {
        match &self.place {
            Place::Socket(_) => true,
            Place::Tcp(address) => {
                let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']');
                host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
            }
        }
    }

    pub(crate) fn client(&self) -> Result<Docker> {
        let client = match &self.place {
            Place::Socket(path) => {
                Docker::connect_with_unix(path, ANSWER_WITHIN_SECONDS, API_DEFAULT_VERSION)
            }
            Place::Tcp(address) => {
                Docker::connect_with_http(address, ANSWER_WITHIN_SECONDS, API_DEFAULT_VERSION)
            }
        };
        client.map_err(|error| failed("connecting to the daemon", error))
    }

    /// Whether somebody listens there, at once: a client would only say that something failed.
    pub(crate) async fn check(&self) -> Result<()> {
        let reach = async {
            match &self.place {
                Place::Socket(path) => UnixStream::connect(path).await.map(drop),
                Place::Tcp(address) => TcpStream::connect(address).await.map(drop),
            }
        };
        let reached =
            timeout(REACHED_WITHIN, reach).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        reached.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &io::Error) -> BackendError {
        let (Place::Socket(place) | Place::Tcp(place)) = &self.place;
        let why = match error.kind() {
            io::ErrorKind::NotFound => format!("there is no socket at {place}"),
            io::ErrorKind::PermissionDenied => format!("the socket {place} is not open to this user"),
            io::ErrorKind::ConnectionRefused => format!("nothing listens at {place} any more"),
            io::ErrorKind::TimedOut => format!("{place} does not answer"),
            _ => format!("{place}: {error}"),
        };
        BackendError::Refused {
            reason: format!("the {} daemon cannot be reached: {why}", self.engine.name()),
            fix: format!("{}; or use --backend native, which needs no daemon", self.engine.start()),
        }
    }
}

/// An error of the daemon at a named step.
pub(crate) fn failed(step: &str, error: bollard::errors::Error) -> BackendError {
    let text = match error {
        bollard::errors::Error::DockerResponseServerError { message, .. } => message,
        other => other.to_string(),
    };
    BackendError::failed(step, io::Error::other(text))
}

/// The status of an answer that was an error.
pub(crate) fn status(error: &bollard::errors::Error) -> Option<u16> {
    match error {
        bollard::errors::Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_and_loopback_are_of_this_machine() {
        let is_own = |host: &str| Address::parse(Engine::Docker, host).unwrap().is_of_this_machine();
        for own in ["unix:///s", "/s", "tcp://127.0.0.1:2375", "tcp://[::1]:2375/", "tcp://localhost:2375"] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "tcp://10.0.0.1:2375",
            "tcp://docker:2375",
            "http://[fe80::1]:2375",
            "tcp://127.0.0.1.evil:1",
            "tcp://",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
