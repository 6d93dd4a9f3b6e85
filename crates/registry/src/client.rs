//! Requests to one repository of one registry, with the login that it asks for.

use crate::auth::Challenge;
use crate::{Credentials, PullError, Reference, Result};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, RANGE, WWW_AUTHENTICATE};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;
use std::time::Duration;

/// A registry is reached by then, or it is not there.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a registry may say nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// Blobs are often kept elsewhere, one step away; more is a loop.
const MAX_REDIRECTS: usize = 5;

/// Tokens are kilobytes.
const MAX_TOKEN: usize = 64 << 10;

const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

pub(crate) struct Client {
    http: reqwest::Client,
    reference: Reference,
    credentials: Option<Credentials>,
    is_plain: bool,
    /// What goes with every request, once it was asked for.
    login: Option<String>,
}

#[derive(Deserialize)]
struct Token {
    #[serde(alias = "access_token")]
    token: String,
}

/// No way leads from an encrypted connection to one that is not.
fn redirects() -> Policy {
    Policy::custom(|attempt| {
        let was_https = attempt.previous().iter().any(|url| url.scheme() == "https");
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("it leads from one place to the next")
        } else if was_https && attempt.url().scheme() != "https" {
            attempt.error("it leads to a place without TLS")
        } else {
            attempt.follow()
        }
    })
}

/// What every request goes through.
pub(crate) fn http(is_loopback: bool) -> reqwest::Result<reqwest::Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .redirect(redirects())
        .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")));
    if is_loopback {
        builder = builder.no_proxy();
    }
    builder.build()
}

impl Client {
    pub(crate) fn new(
        reference: Reference,
        credentials: Option<Credentials>,
        plain_http: bool,
    ) -> Result<Self> {
        let is_plain = plain_http || reference.is_loopback();
        let http = http(reference.is_loopback()).map_err(|error| unreachable(&reference, &error))?;
        Ok(Self { http, reference, credentials, is_plain, login: None })
    }

    /// A manifest, by tag or digest; its answer names the type.
    pub(crate) async fn manifest(&mut self, wanted: &str) -> Result<Response> {
        self.get(&format!("manifests/{wanted}"), &[(ACCEPT, MANIFESTS.to_owned())]).await
    }

    /// A blob from a byte on.
    pub(crate) async fn blob(&mut self, digest: &str, from: u64) -> Result<Response> {
        let range = (from > 0).then(|| (RANGE, format!("bytes={from}-")));
        self.get(&format!("blobs/{digest}"), &range.into_iter().collect::<Vec<_>>()).await
    }

    async fn get(
        &mut self,
        path: &str,
        headers: &[(reqwest::header::HeaderName, String)],
    ) -> Result<Response> {
        let answer = self.send(path, headers).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return self.judge(path, answer);
        }
        self.log_in(answer.headers()).await?;
        let answer = self.send(path, headers).await?;
        self.judge(path, answer)
    }

    async fn send(&self, path: &str, headers: &[(reqwest::header::HeaderName, String)]) -> Result<Response> {
        let scheme = if self.is_plain { "http" } else { "https" };
        let Reference { host, repository, .. } = &self.reference;
        let mut request = self.http.get(format!("{scheme}://{host}/v2/{repository}/{path}"));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(login) = &self.login {
            request = request.header(AUTHORIZATION, login);
        }
        request.send().await.map_err(|error| unreachable(&self.reference, &error))
    }

    fn judge(&self, path: &str, answer: Response) -> Result<Response> {
        let (host, status) = (self.reference.host.clone(), answer.status());
        match status {
            _ if status.is_success() => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.no_entry()),
            StatusCode::NOT_FOUND => Err(PullError::NotFound { reference: self.reference.to_string(), host }),
            _ => Err(PullError::Status { host, status: status.as_u16(), what: path.to_owned() }),
        }
    }

    fn no_entry(&self) -> PullError {
        let host = self.reference.host.clone();
        match &self.credentials {
            Some(credentials) => PullError::LoginRefused { host, user: credentials.username.clone() },
            None => PullError::LoginNeeded { host },
        }
    }

    async fn log_in(&mut self, headers: &HeaderMap) -> Result<()> {
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
        let challenge = challenges.filter_map(|header| header.to_str().ok()).find_map(Challenge::parse);
        self.login = match challenge.ok_or_else(|| self.no_entry())? {
            Challenge::Basic => {
                let Credentials { username, password } =
                    self.credentials.as_ref().ok_or_else(|| self.no_entry())?;
                Some(basic(username, password))
            }
            Challenge::Bearer { realm, service, scope } => {
                let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.reference.repository));
                Some(format!("Bearer {}", self.token(&realm, service, &scope).await?))
            }
        };
        Ok(())
    }

    /// A token from where the registry says, without a login where there is none: many images are everybody's.
    async fn token(&self, realm: &str, service: Option<String>, scope: &str) -> Result<String> {
        let refused = |why: &str| PullError::Refused {
            host: self.reference.host.clone(),
            what: format!("the login at {realm:?}"),
            why: why.to_owned(),
        };
        let mut url = Url::parse(realm).map_err(|_| refused("it is no address"))?;
        if url.scheme() != "https" && !self.is_plain {
            return Err(refused("a password is not sent without TLS"));
        }
        url.query_pairs_mut().append_pair("scope", scope);
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", &service);
        }
        let mut request = self.http.get(url);
        if let Some(Credentials { username, password }) = &self.credentials {
            request = request.header(AUTHORIZATION, basic(username, password));
        }
        let mut answer = request.send().await.map_err(|error| unreachable(&self.reference, &error))?;
        if !answer.status().is_success() {
            return Err(self.no_entry());
        }
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| unreachable(&self.reference, &error))? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_TOKEN {
                return Err(refused("its answer is no token"));
            }
        }
        let token: Token = serde_json::from_slice(&body).map_err(|_| refused("its answer is no token"))?;
        Ok(token.token)
    }
}

fn basic(username: &str, password: &str) -> String {
    use base64::Engine;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}")))
}

/// The last cause says what is wrong; what stands above it says that something is.
pub(crate) fn unreachable(reference: &Reference, error: &reqwest::Error) -> PullError {
    PullError::Unreachable { host: reference.host.clone(), why: last_cause(error) }
}

pub(crate) fn last_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
