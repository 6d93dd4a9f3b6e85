//! The REST interface. A handler reads a request, asks for a permit, calls one verb, and writes the answer; it
//! decides nothing. Every error goes through one mapping, and every route is in the OpenAPI document.

mod answer;
mod auth;
mod body;
mod cursor;
mod disposition;
mod document;
mod guesses;
mod idempotency;
mod last_event;
mod listen;
mod observe;
mod origin;
mod path;
mod query;
mod routes;
mod runs;
mod service;
mod sockets;
mod stream;
mod watching;
mod while_valid;

pub use document::{internal_openapi_json, openapi_json, worker_openapi_json};
pub use listen::{HttpSettings, Tls, TlsError};
pub use runs::{Runs, worker_router, worker_router_without_auth};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use cofferdam_control::{Control, ServiceTokens};
use std::future::Future;
use std::sync::LazyLock;
use tokio::net::TcpListener;

/// The largest body of a request that carries its files inline.
pub const MAX_BODY_BYTES: usize = 16 << 20;

/// Tells the request ids of this process from those of the one before.
static START: LazyLock<String> = LazyLock::new(|| {
    let now = cofferdam_control::now_ms();
    format!("{:x}-{:x}", std::process::id(), now)
});

/// All routes.
pub fn router(control: Control) -> Router {
    finish(Router::from(routes::all()), control)
}

/// All routes, and those by which workers register, who are known by their tokens.
pub fn router_with_workers(control: Control, tokens: ServiceTokens) -> Router {
    let internal = routes::workers::internal_routes(tokens);
    finish(Router::from(routes::all()).nest("/internal", internal), control)
}

fn finish(routes: Router<Control>, control: Control) -> Router {
    routes
        .fallback(answer::no_such_path)
        .method_not_allowed_fallback(answer::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(control.clone(), observe::observe))
        .with_state(control)
}

/// Serves metrics, without a key, until `stop`.
pub async fn serve_metrics(
    listener: TcpListener,
    control: Control,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let routes = routes::for_operators()
        .fallback(answer::no_such_path)
        .method_not_allowed_fallback(answer::no_such_method);
    let routes = routes.layer(from_fn_with_state(control.clone(), observe::observe)).with_state(control);
    axum::serve(listener, routes).with_graceful_shutdown(stop).await
}

/// Serves until `stop`; then lets what is being answered be answered.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: HttpSettings,
    tls: Option<Tls>,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    listen::serve(listener, router, settings, tls, stop).await
}
