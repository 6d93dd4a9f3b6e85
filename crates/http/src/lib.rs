//! The REST interface. A handler reads a request, asks for a permit, calls one verb, and writes the answer; it
//! decides nothing. Every error goes through one mapping.

mod answer;
mod auth;
mod body;
mod query;
mod routes;
mod runs;
mod service;
mod tls;

pub use runs::{Runs, worker_router};
pub use tls::TlsListener;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::serve::Listener;
use cofferdam_control::{Control, ServiceTokens};
use std::future::Future;

/// The largest body of a request that carries its files inline.
pub const MAX_BODY_BYTES: usize = 16 << 20;

/// All routes. Workers may register where there are tokens by which to know them.
pub fn router(control: Control, workers: Option<ServiceTokens>) -> Router {
    let internal = workers.map_or_else(Router::new, routes::workers::internal_routes);
    Router::new()
        .merge(routes::health::routes())
        .nest("/v1", routes::jobs::routes().merge(routes::keys::routes()).merge(routes::audit::routes()))
        .nest("/v1", routes::workers::routes())
        .nest("/internal", internal)
        .fallback(answer::no_such_path)
        .method_not_allowed_fallback(answer::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(control)
}

/// Serves until `stop`; then lets what is being answered be answered.
pub async fn serve<L>(
    listener: L,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()>
where
    L: Listener,
    L::Addr: std::fmt::Debug,
{
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}
