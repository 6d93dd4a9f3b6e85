//! How workers are reached: by plain HTTP on loopback, by TLS everywhere else.

use crate::breaker::Breaker;
use crate::call::{ANSWER, Peer};
use crate::run::HttpWorker;
use cofferdam_control::{Connector, ServiceTokens, Worker};
use reqwest::{Client, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// A machine that is there takes a connection sooner than this.
const CONNECT: Duration = Duration::from_secs(2);

#[derive(Debug, Error)]
pub enum RemoteError {
    #[error("the certificates cannot be used: {0}")]
    Certificates(String),
    #[error("{url:?} cannot be used: {why}")]
    Address { url: String, why: &'static str },
    #[error("no connections can be made: {0}")]
    Client(String),
}

/// The way to every worker.
#[derive(Debug, Clone)]
pub struct HttpWorkers {
    client: Client,
    patient: Client,
    token: Arc<str>,
}

impl HttpWorkers {
    /// `authorities` are certificates in PEM form: those who sign the other side's. Without any, only loopback is
    /// reached.
    pub fn new(tokens: &ServiceTokens, authorities: Option<&[u8]>) -> Result<Self, RemoteError> {
        let tls = tls(authorities)?;
        let timed = client(tls.clone(), Some(2 * ANSWER))?;
        Ok(Self { client: timed, patient: client(tls, None)?, token: tokens.secret().into() })
    }

    pub(crate) fn peer(&self, url: &str) -> Peer {
        let url = url.trim_end_matches('/').to_owned();
        Peer {
            client: self.client.clone(),
            patient: self.patient.clone(),
            url,
            token: Arc::clone(&self.token),
            breaker: Arc::new(Breaker::default()),
        }
    }
}

impl Connector for HttpWorkers {
    fn connect(&self, id: &str, url: &str) -> Arc<dyn Worker> {
        Arc::new(HttpWorker::new(id, self.peer(url), check_url(url).is_ok()))
    }
}

/// Refuses to send a token over a network in the clear.
pub(crate) fn check_url(text: &str) -> Result<(), RemoteError> {
    let wrong = |why| Err(RemoteError::Address { url: text.to_owned(), why });
    let Ok(url) = Url::parse(text) else {
        return wrong("it must be http://ADDRESS:PORT or https://NAME:PORT");
    };
    let is_loopback = match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        "http" => wrong("without TLS only loopback is reached; use https://"),
        _ => wrong("it must be http://ADDRESS:PORT or https://NAME:PORT"),
    }
}

fn tls(authorities: Option<&[u8]>) -> Result<ClientConfig, RemoteError> {
    let wrong = |error: String| RemoteError::Certificates(error);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities.unwrap_or_default()) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if authorities.is_some() && roots.is_empty() {
        return Err(wrong("there is none in the file".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// `silence` is how long the other side may say nothing.
fn client(tls: ClientConfig, silence: Option<Duration>) -> Result<Client, RemoteError> {
    // A proxy of the environment's would see what is said here, and a redirect would carry the token elsewhere.
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT);
    if let Some(silence) = silence {
        builder = builder.read_timeout(silence);
    }
    builder.build().map_err(|error| RemoteError::Client(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_travel_in_the_clear_on_loopback_only() {
        for url in ["http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9", "https://worker.example:9"]
        {
            assert!(check_url(url).is_ok(), "{url}");
        }
        for url in ["http://10.0.0.1:9", "http://127.0.0.1.example:9", "ftp://127.0.0.1", "127.0.0.1:9", ""] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let tokens = ServiceTokens::parse(&"t".repeat(32)).unwrap();
        assert!(HttpWorkers::new(&tokens, None).is_ok());
        assert!(HttpWorkers::new(&tokens, Some(b"nothing")).is_err());
    }
}
