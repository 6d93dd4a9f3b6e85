//! Calls between control and workers: a service token with each, and nothing without one.

use crate::answer::Problem;
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
    let fix = "send a token of the service token file as Authorization: Bearer";
    Problem::new(ErrorCode::Unauthenticated, "there is no valid service token with the call", fix)
        .into_response()
}
