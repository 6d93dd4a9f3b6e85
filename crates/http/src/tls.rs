//! A listener that speaks TLS. A handshake is nobody's business but its own: one that is slow keeps no other waiting.

use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// Whoever has not shaken hands by then will not.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// So many connections wait to be taken; the next ones wait in the kernel.
const WAITING: usize = 64;

#[derive(Debug)]
pub struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl TlsListener {
    /// `certificates` and `key` are in PEM form.
    pub fn new(tcp: TcpListener, certificates: &[u8], key: &[u8]) -> io::Result<Self> {
        let address = tcp.local_addr()?;
        let acceptor = TlsAcceptor::from(Arc::new(config(certificates, key)?));
        let (sender, ready) = mpsc::channel(WAITING);
        tokio::spawn(accept(tcp, acceptor, sender));
        Ok(Self { ready, address })
    }
}

async fn accept(
    tcp: TcpListener,
    acceptor: TlsAcceptor,
    ready: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    while !ready.is_closed() {
        let Ok((stream, address)) = tcp.accept().await else {
            // Too many descriptors, most likely: that passes.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (acceptor, ready) = (acceptor.clone(), ready.clone());
        tokio::spawn(async move {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                let _ = ready.send((stream, address)).await;
            }
        });
    }
}

fn config(certificates: &[u8], key: &[u8]) -> io::Result<ServerConfig> {
    let wrong = |what: &str, error: String| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("the {what} cannot be used: {error}"))
    };
    let chain = CertificateDer::pem_slice_iter(certificates).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong("certificate", error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| wrong("key", error.to_string()))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("protocol", error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong("certificate", error.to_string()))
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
