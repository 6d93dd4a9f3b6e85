//! Connections: how many, over what, and for how long one may keep us waiting.
//!
//! Plain HTTP is HTTP/1.1; over TLS the client chooses between that and HTTP/2. A connection that sends nothing, or a
//! request that comes drop by drop, is cut: each has a time by which it must have come.

mod connection;
mod slow;
mod tls;

pub(crate) use connection::Place;
pub(crate) use slow::TooSlow;
pub use tls::{Tls, TlsError};

use crate::guesses::{Guesses, Peer};
use axum::Router;
use connection::Connection;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

/// What a client may cost before it has said anything of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// Connections at once; more wait to be taken.
    pub max_connections: usize,
    /// For the head of a request, from its first byte; on a new connection from the connect.
    pub header_timeout: Duration,
    pub handshake_timeout: Duration,
    /// For a body, and besides for each [`slow::MIN_BYTES_PER_SECOND`] of it a second.
    pub body_timeout: Duration,
    /// A connection without a request is closed after this time.
    pub idle_timeout: Duration,
    pub max_header_bytes: usize,
    pub max_headers: usize,
    /// Requests at once on one HTTP/2 connection.
    pub max_streams: u32,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            max_connections: 4000,
            header_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            max_header_bytes: 32 << 10,
            max_headers: 64,
            max_streams: 100,
        }
    }
}

/// After a stop, answers that are on their way may take so long. Whoever follows an output is cut off, and resumes.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// When the machine has no descriptor left, it is asked again after a while.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop`; then lets what is being answered be answered.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    settings: HttpSettings,
    tls: Option<Tls>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let guesses = Arc::new(Guesses::default());
    let places = Arc::new(Semaphore::new(settings.max_connections));
    let all = places.clone();
    let (stopping, stopped) = watch::channel(false);
    let shared =
        Arc::new(Shared { router: slow::guard(router, settings.body_timeout), settings, tls, stopped });
    let accept = async {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, address)) => {
                    let peer = Peer { address: address.ip(), guesses: Arc::clone(&guesses) };
                    drop(tokio::spawn(attend(Arc::clone(&shared), stream, peer, place)));
                }
                // A client that was gone again, or no descriptor left: either passes.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop => {}
    }
    drop(listener);
    let _ = stopping.send(true);
    let everyone = u32::try_from(shared.settings.max_connections).unwrap_or(u32::MAX);
    let _ = timeout(LAST_ANSWERS, all.acquire_many(everyone)).await;
    Ok(())
}

struct Shared {
    router: Router,
    settings: HttpSettings,
    tls: Option<Tls>,
    stopped: watch::Receiver<bool>,
}

/// One connection, from its first byte to its end; it keeps its place until then.
async fn attend(shared: Arc<Shared>, stream: TcpStream, peer: Peer, place: OwnedSemaphorePermit) {
    // Answers are written whole; waiting to fill a packet would only delay the small ones.
    let _ = stream.set_nodelay(true);
    let place = Place(Arc::new(place));
    let connection = Connection { router: shared.router.clone(), peer, place, settings: &shared.settings };
    let stopped = shared.stopped.clone();
    match &shared.tls {
        None => connection.http1(stream, stopped).await,
        Some(tls) => {
            let Ok(Ok((stream, is_h2))) =
                timeout(shared.settings.handshake_timeout, tls.accept(stream)).await
            else {
                return;
            };
            match is_h2 {
                true => connection.http2(stream, stopped).await,
                false => connection.http1(stream, stopped).await,
            }
        }
    }
}
