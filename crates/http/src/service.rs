//! Calls between control and workers: a service token with each, and nothing without one, unless a worker was told
//! otherwise for development.

use crate::answer::Problem;
use crate::auth::is_of_this_machine;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_api::ErrorCode;
use cofferdam_control::ServiceTokens;

/// Lets a call through that has a token.
pub(crate) async fn require_token(
    State(tokens): State<ServiceTokens>,
    request: Request,
    next: Next,
) -> Response {
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|text| text.strip_prefix("Bearer "));
    if token.is_some_and(|token| tokens.accepts(token)) {
        return next.run(request).await;
    }
    refused()
}

/// The same for a worker that was told to take calls without a token: by programs of this machine, each of them logged.
/// A wrong token is not a missing one.
pub(crate) async fn token_or_bypass(
    State(tokens): State<ServiceTokens>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    if headers.contains_key(header::AUTHORIZATION) {
        return require_token(State(tokens), request, next).await;
    }
    if !is_of_this_machine(headers) {
        return refused();
    }
    let (method, path) = (request.method().as_str(), request.uri().path());
    tracing::warn!(method, path, "a call without a token was let through (dev-no-auth)");
    next.run(request).await
}

fn refused() -> Response {
    let fix = "send a token of the service token file as Authorization: Bearer";
    Problem::new(ErrorCode::Unauthenticated, "there is no valid service token with the call", fix)
        .into_response()
}
