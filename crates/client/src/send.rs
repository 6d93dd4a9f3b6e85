//! One request, from its making to its answer, with as many tries as are safe.

use crate::error::{ClientError, Refusal, Result};
use crate::retry::{Patience, random};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;

/// A connection to one server, as one caller.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    key: HeaderValue,
    patience: Patience,
}

/// Without the key: what is debugged gets into logs.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl Client {
    /// A client for the server at `url`, which has no path of its own or one that a proxy puts before it.
    pub fn new(url: &str, key: &str) -> Result<Self> {
        let wrong = |why: &str| ClientError::Setup(format!("{url:?} is not the address of a server: {why}"));
        let mut base = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        if !["http", "https"].contains(&base.scheme()) || base.host().is_none() {
            return Err(wrong("write it as http://127.0.0.1:8080 or https://host"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("a key does not belong into it"));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let mut key = HeaderValue::from_str(key.trim())
            .map_err(|_| ClientError::Setup("the key has characters that no key has".to_owned()))?;
        key.set_sensitive(true);
        Ok(Self { http: connect()?, base, key, patience: Patience::default() })
    }

    pub fn with_patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// The address of a path below the server's, each part of it escaped.
    pub(crate) fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        // Those that have no path were refused when the client was made.
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(path);
        }
        url
    }

    /// Sends bytes to an address that the server has signed, which is below its own. Nobody is named: the address is
    /// what allows it.
    pub(crate) async fn put(&self, address: &str, body: reqwest::Body) -> Result<()> {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url.set_query(Some(query));
        let unreachable = |source: reqwest::Error| ClientError::Unreachable {
            url: shown(&url),
            source: source.without_url(),
        };
        let response = self.http.put(url.clone()).body(body).send().await.map_err(unreachable)?;
        read_refusal(&url, response).await.map(drop)
    }

    /// Asks for a connection that becomes something else, which only HTTP/1.1 has. It is asked once.
    pub(crate) async fn upgrade(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        headers: &[(&'static str, &str)],
    ) -> Result<Response> {
        let http = settings().http1_only().build();
        let http =
            http.map_err(|error| ClientError::Setup(format!("no connections can be made: {error}")))?;
        let mut url = self.url(path);
        url.query_pairs_mut().extend_pairs(query);
        let mut request = http.get(url.clone()).header("x-api-key", self.key.clone());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = tokio::time::timeout(self.patience.answer, request.send()).await;
        let late = || ClientError::Strange { url: shown(&url), what: "no answer in time".to_owned() };
        let response = sent
            .map_err(|_| late())?
            .map_err(|source| ClientError::Unreachable { url: shown(&url), source: source.without_url() })?;
        match response.status() {
            reqwest::StatusCode::SWITCHING_PROTOCOLS => Ok(response),
            _ => read_refusal(&url, response).await,
        }
    }

    pub(crate) fn call(&self, method: Method, path: &[&str]) -> Call<'_> {
        let is_safe = method != Method::POST;
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", self.key.clone());
        let url = self.url(path);
        Call {
            client: self,
            method,
            url,
            headers,
            body: None,
            wait: Duration::ZERO,
            is_safe,
            is_stream: false,
        }
    }
}

/// The settings that every client has. A server's answer is where it was asked for: redirects would carry the key
/// elsewhere.
fn connect() -> Result<reqwest::Client> {
    let built = settings().build();
    built.map_err(|error| ClientError::Setup(format!("no connections can be made: {error}")))
}

fn settings() -> reqwest::ClientBuilder {
    // The first one in a process stays; any other provider would do as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")))
}

/// A request that is about to be made.
pub(crate) struct Call<'c> {
    client: &'c Client,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    /// How long the server was asked to wait before it answers.
    wait: Duration,
    /// Whether it may be sent again although it may have been done.
    is_safe: bool,
    is_stream: bool,
}

impl Call<'_> {
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.url.query_pairs_mut().append_pair(name, value);
        self
    }

    pub(crate) fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self> {
        let value = HeaderValue::from_str(value)
            .map_err(|_| ClientError::Setup(format!("{name}: {value:?} cannot be sent")))?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self> {
        let bytes = serde_json::to_vec(body);
        self.body = Some(bytes.map_err(|error| ClientError::Setup(format!("the request: {error}")))?);
        self.header("content-type", "application/json")
    }

    /// Makes it safe to be sent again: the server does it once.
    pub(crate) fn once(mut self) -> Result<Self> {
        let drawn: [u8; 16] = random().map_err(|error| ClientError::Setup(error.to_string()))?;
        let key: String = drawn.iter().map(|byte| format!("{byte:02x}")).collect();
        self.is_safe = true;
        self.header("idempotency-key", &key)
    }

    /// For what does the same however often it is done.
    pub(crate) fn repeatable(mut self) -> Self {
        self.is_safe = true;
        self
    }

    /// For an answer that goes on for as long as there is something to say.
    pub(crate) fn stream(mut self) -> Self {
        self.is_stream = true;
        self
    }

    /// Sends it, again where that helps, and reads the answer.
    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<T> {
        let url = self.url.clone();
        let body = self.bytes().await?;
        serde_json::from_slice(&body)
            .map_err(|error| ClientError::Strange { url: shown(&url), what: error.to_string() })
    }

    /// For what is to be gone. One that an earlier try, whose answer was lost, has removed is gone, too.
    pub(crate) async fn gone(self) -> Result<()> {
        match self.attempts(Self::read).await {
            (Ok(_), _) => Ok(()),
            (Err(ClientError::Refused(refusal)), true) if refusal.status == 404 => Ok(()),
            (Err(error), _) => Err(error),
        }
    }

    async fn bytes(self) -> Result<Vec<u8>> {
        self.attempts(Self::read).await.0
    }

    /// Sends bytes that come once, so it is tried once.
    pub(crate) async fn send_bytes<T: DeserializeOwned>(self, bytes: reqwest::Body) -> Result<T> {
        let Self { client, method, url, headers, .. } = &self;
        let request = client.http.request(method.clone(), url.clone()).headers(headers.clone()).body(bytes);
        let response = request.send().await.map_err(|source| self.unreachable(source))?;
        let answer = read_refusal(url, response).await?.bytes().await;
        let answer = answer.map_err(|source| self.unreachable(source))?;
        serde_json::from_slice(&answer)
            .map_err(|error| ClientError::Strange { url: shown(url), what: error.to_string() })
    }

    /// Sends it, and returns when the head of the answer is there.
    pub(crate) async fn open(self) -> Result<Response> {
        self.attempts(Self::send).await.0
    }

    /// Tries until it works, makes no sense any more, or patience is at its end; and says whether a try that failed
    /// may have been done all the same.
    async fn attempts<T>(&self, attempt: impl AsyncFn(&Self) -> Result<T>) -> (Result<T>, bool) {
        let patience = &self.client.patience;
        let (mut failures, mut is_unsure) = (0, false);
        loop {
            let error = match attempt(self).await {
                Ok(done) => return (Ok(done), is_unsure),
                Err(error) => error,
            };
            failures += 1;
            let (worth, asked) = self.worth_another(&error, &mut is_unsure);
            if !worth || failures >= patience.attempts {
                return (Err(error), is_unsure);
            }
            tokio::time::sleep(patience.pause(failures, asked)).await;
        }
    }

    fn worth_another(&self, error: &ClientError, is_unsure: &mut bool) -> (bool, Option<Duration>) {
        match error {
            ClientError::Refused(refusal) => (refusal.retryable, refusal.retry_after),
            // Nothing was sent yet.
            ClientError::Unreachable { source, .. } if source.is_connect() => (true, None),
            ClientError::Unreachable { .. } => {
                *is_unsure = true;
                (self.is_safe, None)
            }
            ClientError::Strange { .. } | ClientError::Setup(_) => (false, None),
        }
    }

    async fn read(&self) -> Result<Vec<u8>> {
        let bytes = self.send().await?.bytes().await;
        bytes.map(Vec::from).map_err(|source| self.unreachable(source))
    }

    async fn send(&self) -> Result<Response> {
        let Self { client, method, url, headers, body, wait, .. } = self;
        let mut request = client.http.request(method.clone(), url.clone()).headers(headers.clone());
        if let Some(body) = body {
            request = request.body(body.clone());
        }
        if !self.is_stream {
            request = request.timeout(client.patience.answer + *wait);
        }
        let response = request.send().await.map_err(|source| self.unreachable(source))?;
        read_refusal(url, response).await
    }

    fn unreachable(&self, source: reqwest::Error) -> ClientError {
        ClientError::Unreachable { url: shown(&self.url), source: source.without_url() }
    }
}

/// An answer, unless it is a refusal.
async fn read_refusal(url: &Url, response: Response) -> Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let retry_after = retry_after(response.headers());
    let unreachable =
        |source: reqwest::Error| ClientError::Unreachable { url: shown(url), source: source.without_url() };
    let body = response.bytes().await.map_err(unreachable)?;
    Err(match Refusal::read(status.as_u16(), retry_after, &body) {
        Some(refusal) => ClientError::Refused(Box::new(refusal)),
        None => ClientError::Strange { url: shown(url), what: format!("status {status}") },
    })
}

/// Without what stands behind the question mark.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

/// Only as a number of seconds, which is how this interface says it.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
