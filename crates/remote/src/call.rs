//! One call to a worker or to control.

use crate::breaker::Breaker;
use cofferdam_telemetry::current_traceparent;
use reqwest::{Body, Client, Method, RequestBuilder, Response};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// An answer that is not a stream comes within this, or not at all.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// More than any answer that is not a stream has; what is longer is no JSON.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Why a call has no answer that can be used.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    /// Nobody has read the call.
    #[error("{0} cannot be reached: {1}")]
    Unreached(String, String),
    /// It may or may not have been done.
    #[error("{0} did not answer: {1}")]
    Unanswered(String, String),
    /// It was not done, for this reason.
    #[error("{message}")]
    Refused {
        status: u16,
        message: String,
        /// What the other side said by itself.
        said: String,
        /// A session's own word for it, where the worker had one.
        failure: Option<String>,
    },
}

/// The other side of calls.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) client: Client,
    /// For what may take any time: without a limit to how long the other side says nothing.
    pub(crate) patient: Client,
    pub(crate) url: String,
    pub(crate) token: Arc<str>,
    pub(crate) breaker: Arc<Breaker>,
}

impl Peer {
    /// Makes a call and reads its answer to the end.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Value, CallError> {
        let call = async {
            let answer = self.open(method, path, body).await?;
            let bytes = whole(answer).await.map_err(|error| self.unanswered(&error))?;
            Ok(serde_json::from_slice(&bytes).unwrap_or(Value::Null))
        };
        let done = match tokio::time::timeout(ANSWER, call).await {
            Ok(done) => done,
            Err(_) => Err(CallError::Unanswered(self.url.clone(), "the time is over".to_owned())),
        };
        self.note(&done);
        done
    }

    /// The same for what may take longer, and says nothing meanwhile.
    pub(crate) async fn call_within(
        &self,
        time: Duration,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Value, CallError> {
        let call = async {
            let request = self.request(&self.patient, method, path);
            let answer = self.begin(with_json(request, body)?).await?;
            let bytes = whole(answer).await.map_err(|error| self.unanswered(&error))?;
            Ok(serde_json::from_slice(&bytes).unwrap_or(Value::Null))
        };
        let done = match tokio::time::timeout(time, call).await {
            Ok(done) => done,
            Err(_) => Err(CallError::Unanswered(self.url.clone(), "the time is over".to_owned())),
        };
        self.note(&done);
        done
    }

    pub(crate) fn note<T>(&self, done: &Result<T, CallError>) {
        // Whoever refuses is there.
        let is_ok = matches!(done, Ok(_) | Err(CallError::Refused { .. }));
        self.breaker.note(is_ok, Instant::now());
    }

    /// Makes a call and returns the answer's head, if it is a good one.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Response, CallError> {
        let mut request = self.request(&self.client, method, path);
        if let Some(body) = body {
            request = with_json(request, body)?;
        }
        self.begin(request).await
    }

    /// Sends bytes, however many and for however long.
    pub(crate) async fn send(&self, path: &str, body: Body) -> Result<(), CallError> {
        let request = self.request(&self.patient, Method::PUT, path);
        let request = request.header("content-type", "application/octet-stream").body(body);
        self.begin(request).await.map(drop)
    }

    /// Sends bytes and gets bytes back, however many and for however long.
    pub(crate) async fn exchange(&self, path: &str, body: Body) -> Result<Response, CallError> {
        let request = self.request(&self.patient, Method::POST, path);
        let request = request.header("content-type", "application/octet-stream").body(body);
        self.begin(request).await
    }

    /// Gets bytes, however many and for however long.
    pub(crate) async fn fetch(&self, path: &str) -> Result<Response, CallError> {
        self.begin(self.request(&self.patient, Method::GET, path)).await
    }

    /// A request of the trace that goes on here.
    fn request(&self, client: &Client, method: Method, path: &str) -> RequestBuilder {
        let request = client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token);
        match current_traceparent() {
            Some(parent) => request.header("traceparent", parent),
            None => request,
        }
    }

    async fn begin(&self, request: RequestBuilder) -> Result<Response, CallError> {
        let answer = request.send().await.map_err(|error| match error.is_connect() {
            true => CallError::Unreached(self.url.clone(), reason(&error)),
            false => self.unanswered(&error),
        })?;
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let body = whole(answer).await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = body["error"]["message"].as_str().unwrap_or("no reason was given");
        let failure = body["error"]["details"]["failure"].as_str().map(str::to_owned);
        let message = format!("{} answered {status}: {said}", self.url);
        Err(CallError::Refused { status, message, said: said.to_owned(), failure })
    }

    pub(crate) fn unanswered(&self, error: &reqwest::Error) -> CallError {
        CallError::Unanswered(self.url.clone(), reason(error))
    }
}

fn with_json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder, CallError> {
    let bytes = serde_json::to_vec(body).map_err(|error| {
        let message = error.to_string();
        CallError::Refused { status: 422, said: message.clone(), message, failure: None }
    })?;
    Ok(request.header("content-type", "application/json").body(bytes))
}

/// An answer that is not a stream, and no more of it than any has.
async fn whole(mut answer: Response) -> reqwest::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_ANSWER_BYTES {
            break;
        }
    }
    bytes.truncate(MAX_ANSWER_BYTES);
    Ok(bytes)
}

/// The innermost cause, which is what went wrong.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
