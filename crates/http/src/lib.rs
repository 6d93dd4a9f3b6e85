//! The REST interface. A handler reads a request, asks for a permit, calls one verb, and writes the answer; it
//! decides nothing. Every error goes through one mapping, and every route is in the OpenAPI document.

mod answer;
mod auth;
mod body;
mod cursor;
mod disposition;
mod document;
mod listen;
mod path;
mod query;
mod routes;

pub use document::openapi_json;
pub use listen::{HttpSettings, Tls, TlsError};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use cofferdam_control::Control;
use std::future::Future;
use tokio::net::TcpListener;

/// The largest body of a request that carries its files inline.
pub const MAX_BODY_BYTES: usize = 16 << 20;

/// All routes.
pub fn router(control: Control) -> Router {
    Router::from(routes::all())
        .fallback(answer::no_such_path)
        .method_not_allowed_fallback(answer::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(control)
}

/// Serves until `stop`; then lets what is being answered be answered.
pub async fn serve(
    listener: TcpListener,
    control: Control,
    settings: HttpSettings,
    tls: Option<Tls>,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    listen::serve(listener, router(control), settings, tls, stop).await
}
