//! Where keys come from, and when they are looked for again. Nobody whose key is known waits for that.

use crate::keys::{KeySet, Secrets};
use crate::settings::Jwks;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// A set of keys is small.
const MAX_BYTES: usize = 1 << 20;

/// One fetch takes no longer.
const FETCH_TIMEOUT: Duration = Duration::from_secs(3);

/// However many tokens with unknown keys come, keys are looked for no more often.
const MIN_PAUSE: Duration = Duration::from_secs(10);

pub(crate) struct Source {
    jwks: Jwks,
    client: Option<reqwest::Client>,
    current: RwLock<Held>,
    last_try: Mutex<Option<Instant>>,
    pause: Duration,
}

#[derive(Default, Clone)]
struct Held {
    keys: Arc<KeySet>,
    at: Option<Instant>,
    error: Option<String>,
}

impl Source {
    /// Loads the keys. A file has to be right; an address that does not answer will be asked again, and nobody is
    /// believed until it has.
    pub(crate) async fn open(jwks: Jwks) -> Result<Arc<Self>, String> {
        let client = match &jwks {
            Jwks::File(_) => None,
            Jwks::Url { url, ca_file, .. } => Some(client(url, ca_file.as_deref())?),
        };
        let is_file = client.is_none();
        let source =
            Self { jwks, client, current: RwLock::default(), last_try: Mutex::default(), pause: MIN_PAUSE };
        let loaded = source.load().await;
        match loaded {
            Err(error) if is_file => Err(error),
            _ => Ok(Arc::new(source)),
        }
    }

    #[cfg(test)]
    pub(crate) fn with_pause(mut self: Arc<Self>, pause: Duration) -> Arc<Self> {
        if let Some(source) = Arc::get_mut(&mut self) {
            source.pause = pause;
        }
        self
    }

    /// The keys that are here, or why none are to be believed.
    pub(crate) fn keys(self: &Arc<Self>) -> Result<Arc<KeySet>, String> {
        let Held { keys, at, error } = self.held();
        let age = at.map(|at| at.elapsed());
        if let Jwks::Url { refresh, max_age, .. } = &self.jwks {
            if age.is_none_or(|age| age >= *refresh) && self.may_try() {
                let source = Arc::clone(self);
                tokio::spawn(async move { drop(source.load().await) });
            }
            if age.is_none_or(|age| age >= *max_age) {
                return Err(error.unwrap_or_else(|| "they were not fetched yet".to_owned()));
            }
        }
        if keys.is_empty() { Err(error.unwrap_or_else(|| "there are none".to_owned())) } else { Ok(keys) }
    }

    /// Looks for keys again, because one was asked for that is not here; not if that was done a moment ago.
    pub(crate) async fn look_again(&self) -> bool {
        self.may_try() && self.load().await.is_ok()
    }

    fn held(&self) -> Held {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the one try that is allowed for a while.
    fn may_try(&self) -> bool {
        let mut last = self.last_try.lock().unwrap_or_else(PoisonError::into_inner);
        let may = last.is_none_or(|last| last.elapsed() >= self.pause);
        if may {
            *last = Some(Instant::now());
        }
        may
    }

    async fn load(&self) -> Result<(), String> {
        let loaded = match (&self.jwks, &self.client) {
            (Jwks::Url { url, .. }, Some(client)) => {
                fetch(client, url).await.and_then(|text| KeySet::parse(&text, Secrets::Refused))
            }
            (Jwks::File(path), _) => std::fs::read(path)
                .map_err(|error| error.to_string())
                .and_then(|text| KeySet::parse(&text, Secrets::Allowed))
                .map_err(|error| format!("{}: {error}", path.display())),
            (Jwks::Url { .. }, None) => Err("there is no client".to_owned()),
        };
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        match loaded {
            Ok(keys) => {
                *current = Held { keys: Arc::new(keys), at: Some(Instant::now()), error: None };
                Ok(())
            }
            // What was there stays, for as long as it may.
            Err(error) => {
                current.error = Some(error.clone());
                Err(error)
            }
        }
    }
}

/// Only over TLS, but for this machine's own.
fn client(url: &str, ca_file: Option<&std::path::Path>) -> Result<reqwest::Client, String> {
    let address = reqwest::Url::parse(url).map_err(|error| format!("{url}: {error}"))?;
    let is_local = matches!(address.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
    if address.scheme() != "https" && !(address.scheme() == "http" && is_local) {
        return Err(format!("{url}: keys are fetched over https, or from this machine"));
    }
    // The first wins, and all of ours are the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .timeout(FETCH_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    if let Some(path) = ca_file {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let pem = std::fs::read(path).map_err(|error| named(&error))?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| named(&error))?;
        builder = builder.tls_certs_only(certificates);
    }
    builder.build().map_err(|error| error.to_string())
}

async fn fetch(client: &reqwest::Client, url: &str) -> Result<Vec<u8>, String> {
    let failed = |error: reqwest::Error| format!("{url}: {}", chain(&error.without_url()));
    let mut response = client.get(url).send().await.map_err(failed)?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(format!("{url}: it answers {}", response.status()));
    }
    let mut bytes = Vec::new();
    while let Some(part) = response.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&part);
        if bytes.len() > MAX_BYTES {
            return Err(format!("{url}: it sends more than {MAX_BYTES} bytes"));
        }
    }
    Ok(bytes)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
