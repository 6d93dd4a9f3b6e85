//! What every request goes through: it gets an id and a span, it is counted and logged, and what went wrong with it
//! is written with its id. A log line has the template of the route, never the path, the query, a header or a body:
//! those are the caller's, and may be secret.

use crate::answer::Problem;
use crate::runs::Runs;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use cofferdam_control::Control;
use cofferdam_telemetry::{TRACE, continue_trace};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tracing::field::Empty;
use tracing::{Instrument, info_span};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longer ones are not well-formed.
const MAX_ID_BYTES: usize = 128;

/// The route of a request that has none.
const NO_ROUTE: &str = "none";

pub(crate) async fn observe(State(control): State<Control>, request: Request, next: Next) -> Response {
    pass(request, next, |method, route, status, time| control.metrics().request(method, route, status, time))
        .await
}

/// The same at a worker.
pub(crate) async fn observe_worker(State(runs): State<Runs>, request: Request, next: Next) -> Response {
    pass(request, next, |method, route, status, time| runs.metrics().request(method, route, status, time))
        .await
}

async fn pass(
    request: Request,
    next: Next,
    count: impl FnOnce(&'static str, &str, u16, Duration),
) -> Response {
    let began = Instant::now();
    let id = request_id(&request);
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let span = info_span!(
        target: TRACE, "request", otel.name = Empty, otel.kind = "server", http.request.method = method,
        http.route = route, http.response.status_code = Empty, request.id = id.to_str().unwrap_or_default(),
    );
    if !span.is_disabled() {
        span.record("otel.name", format!("{method} {route}"));
        let parent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
        continue_trace(&span, parent.unwrap_or_default());
    }
    let mut response = next.run(request).instrument(span.clone()).await;
    let problem = response.extensions_mut().remove::<Problem>();
    let code = problem.as_ref().map(|problem| problem.code.as_str());
    if let Some(problem) = problem {
        let carried = std::mem::take(response.headers_mut());
        response = problem.render(id.to_str().unwrap_or_default());
        // What was said besides, such as the size of what a range lies behind; but not of a body that it never had.
        for (name, value) in &carried {
            if name != header::CONTENT_LENGTH && !response.headers().contains_key(name) {
                response.headers_mut().append(name, value.clone());
            }
        }
    }
    let (status, elapsed) = (response.status().as_u16(), began.elapsed());
    span.record("http.response.status_code", status);
    count(method, route, status, elapsed);
    tracing::info!(
        request_id = id.to_str().unwrap_or_default(),
        method,
        route,
        status,
        code,
        elapsed_us = elapsed.as_micros() as u64,
        "request"
    );
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// The caller's id if it is well-formed, otherwise one of ours.
fn request_id(request: &Request) -> HeaderValue {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    match request.headers().get(REQUEST_ID) {
        Some(id) if (1..=MAX_ID_BYTES).contains(&id.len()) && id.as_bytes().iter().copied().all(is_plain) => {
            id.clone()
        }
        _ => {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let id = format!("req-{}-{number}", *crate::START);
            HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("req"))
        }
    }
}

/// A method is the caller's word, too.
fn method(method: &Method) -> &'static str {
    for known in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] {
        if method.as_str() == known {
            return known;
        }
    }
    "other"
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn id(sent: Option<&[u8]>) -> String {
        let mut request = Request::new(Body::empty());
        if let Some(sent) = sent {
            request.headers_mut().insert(REQUEST_ID, HeaderValue::from_bytes(sent).unwrap());
        }
        request_id(&request).to_str().unwrap().to_owned()
    }

    #[test]
    fn well_formed_ids_are_kept_and_others_replaced() {
        assert_eq!(id(Some(b"abc-1.2:3_4")), "abc-1.2:3_4");
        assert_eq!(id(Some(&[b'a'; 128])), "a".repeat(128));
        for bad in [None, Some(&b""[..]), Some(b"a b"), Some(b"a\"b"), Some(b"\xff"), Some(&[b'a'; 129])] {
            assert!(id(bad).starts_with("req-"), "{bad:?}");
        }
        assert_ne!(id(None), id(None));
    }

    #[test]
    fn a_method_that_nobody_knows_is_not_repeated() {
        assert_eq!(method(&Method::POST), "POST");
        assert_eq!(method(&Method::from_bytes(b"HACK").unwrap()), "other");
    }
}
