//! Sending one message, once.

use crate::address::{Network, is_public};
use crate::{EVENT_ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, check_url, sign};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Where names are asked for.
pub trait Lookup: Send + Sync + fmt::Debug {
    fn lookup(&self, host: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
}

/// The machine's own way.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, host: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

#[derive(Debug, Clone)]
pub struct Message<'m> {
    pub url: &'m str,
    pub secret: &'m str,
    pub event_id: &'m str,
    pub timestamp_seconds: i64,
    pub body: Vec<u8>,
}

/// Why a message did not arrive. Nothing of the URL is in it: that may hold a secret of its owner's.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SendError {
    #[error("the URL cannot be used: {0}")]
    Url(&'static str),
    #[error("its host is not a public address")]
    Forbidden,
    #[error("its host was not found")]
    Unknown,
    #[error("it could not be reached")]
    Connect,
    #[error("it did not answer in time")]
    TimedOut,
    #[error("it answered with the status {0}")]
    Status(u16),
    #[error("the message could not be sent")]
    Other,
}

/// Sends messages.
#[derive(Debug, Clone)]
pub struct Sender {
    client: Client,
    vetting: Arc<Vetting>,
    plain_http: bool,
}

/// Looks at addresses before they are dialled.
#[derive(Debug)]
struct Vetting {
    lookup: Arc<dyn Lookup>,
    allowed: Vec<Network>,
}

/// How an address that must not be dialled comes out of the client.
#[derive(Debug, Error)]
#[error("not a public address")]
struct NotPublic;

#[derive(Debug, Error)]
#[error("not found")]
struct NotFound;

impl Vetting {
    fn may_dial(&self, address: IpAddr) -> bool {
        is_public(address) || self.allowed.iter().any(|network| network.contains(address))
    }
}

/// The client dials what this returns, and asks nobody else.
struct Vetted(Arc<Vetting>);

impl Resolve for Vetted {
    fn resolve(&self, name: Name) -> Resolving {
        let vetting = Arc::clone(&self.0);
        Box::pin(async move {
            let found = vetting.lookup.lookup(name.as_str().to_owned()).await.unwrap_or_default();
            if found.is_empty() {
                return Err(NotFound.into());
            }
            // One that must not be dialled condemns the name: an honest one has none.
            if !found.iter().all(|address| vetting.may_dial(*address)) {
                return Err(NotPublic.into());
            }
            let addresses: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

impl Sender {
    /// `allowed` are addresses that may be dialled although they are not public, `plain_http` allows URLs without
    /// TLS.
    pub fn new(
        lookup: Arc<dyn Lookup>,
        allowed: Vec<Network>,
        plain_http: bool,
        timeout: Duration,
    ) -> Result<Self, String> {
        // Whoever comes first decides for the process; they all decide the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let vetting = Arc::new(Vetting { lookup, allowed });
        let client = Client::builder()
            .dns_resolver(Arc::new(Vetted(Arc::clone(&vetting))))
            .redirect(Policy::none())
            .no_proxy()
            // A connection that is kept was looked at long ago.
            .pool_max_idle_per_host(0)
            .timeout(timeout)
            .connect_timeout(timeout)
            .http1_only()
            .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { client, vetting, plain_http })
    }

    /// Sends a message. It has arrived when the answer is a 2xx; its body is not read.
    pub async fn send(&self, message: Message<'_>) -> Result<(), SendError> {
        let Message { url, secret, event_id, timestamp_seconds, body } = message;
        let url = check_url(url, self.plain_http).map_err(SendError::Url)?;
        // A name is looked at by the resolver, which an address does not go through.
        if let Some(address) = literal(&url)
            && !self.vetting.may_dial(address)
        {
            return Err(SendError::Forbidden);
        }
        let signature = sign(secret.as_bytes(), timestamp_seconds, &body);
        let request = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .header(EVENT_ID_HEADER, event_id)
            .header(TIMESTAMP_HEADER, timestamp_seconds)
            .header(SIGNATURE_HEADER, signature)
            .body(body);
        let answer = request.send().await.map_err(|error| explain(&error))?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            status => Err(SendError::Status(status)),
        }
    }
}

/// The address, where the URL has one in the place of a name.
fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn explain(error: &reqwest::Error) -> SendError {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<NotPublic>() {
            return SendError::Forbidden;
        }
        if error.is::<NotFound>() {
            return SendError::Unknown;
        }
        cause = error.source();
    }
    match () {
        () if error.is_timeout() => SendError::TimedOut,
        () if error.is_connect() => SendError::Connect,
        () => SendError::Other,
    }
}
