//! TLS. The certificate can be changed while connections live: new ones get the new one.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

/// What is wrong with a certificate or its key, with the file's name.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsError(pub String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// A certificate and its key, from two files.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    certificate: Arc<Certificate>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("cert", &self.certificate.cert).finish_non_exhaustive()
    }
}

struct Certificate {
    cert: PathBuf,
    key: PathBuf,
    current: RwLock<(Arc<CertifiedKey>, Stamp)>,
}

/// By which a change of the files shows.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).0))
    }
}

impl Tls {
    /// Reads a chain of certificates and its key, both in PEM.
    pub fn open(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let stamp = stamp(cert, key);
        let current = RwLock::new((read(cert, key)?, stamp));
        let certificate = Arc::new(Certificate { cert: cert.to_owned(), key: key.to_owned(), current });
        let resolver: Arc<dyn ResolvesServerCert> = certificate.clone();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&VERSIONS)
            .map_err(|error| TlsError(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate })
    }

    /// Reads the files again. What is wrong with them leaves the certificate that is in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let Certificate { cert, key, current } = &*self.certificate;
        let stamp = stamp(cert, key);
        let read = read(cert, key);
        let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
        // Also of files that are wrong: they are told of once, and looked at again when they change.
        current.1 = stamp;
        current.0 = read?;
        Ok(())
    }

    /// Reloads whenever the files change, for as long as the process lives; `tell` hears of each.
    pub async fn watch(self, tell: impl Fn(Result<(), TlsError>)) {
        loop {
            tokio::time::sleep(LOOK).await;
            let seen = self.certificate.current.read().unwrap_or_else(PoisonError::into_inner).1;
            if stamp(&self.certificate.cert, &self.certificate.key) != seen {
                tell(self.reload());
            }
        }
    }

    /// Shakes hands; says whether the client wants HTTP/2.
    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<(TlsStream<TcpStream>, bool)> {
        let stream = self.acceptor.accept(stream).await?;
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((stream, is_h2))
    }
}

fn stamp(cert: &Path, key: &Path) -> Stamp {
    [cert, key].map(|path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}

fn read(cert: &Path, key: &Path) -> Result<Arc<CertifiedKey>, TlsError> {
    let named = |path: &Path, error: &dyn fmt::Display| TlsError(format!("{}: {error}", path.display()));
    let chain = CertificateDer::pem_file_iter(cert).map_err(|error| named(cert, &error))?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|error| named(cert, &error))?;
    if chain.is_empty() {
        return Err(named(cert, &"there is no certificate in it"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| named(key, &error))?;
    let provider = ring::default_provider();
    // It also looks whether the two belong together.
    let certified = CertifiedKey::from_der(chain, private, &provider).map_err(|error| named(key, &error))?;
    Ok(Arc::new(certified))
}
