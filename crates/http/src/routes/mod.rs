//! A file a resource.

mod artifact_content;
mod artifacts;
mod audit;
mod docs;
mod events;
mod health;
mod images;
mod jobs;
mod keys;
mod metrics;
mod receipts;
mod secrets;
mod sessions;
mod signing_keys;
mod snapshots;
mod tenants;
pub(crate) mod workers;

pub(crate) use docs::error_page;

use crate::document::Root;
use axum::Router;
use cofferdam_control::Control;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// Every route, and with it the document.
pub(crate) fn all() -> OpenApiRouter<Control> {
    let resources = jobs::routes()
        .merge(sessions::routes())
        .merge(snapshots::routes())
        .merge(secrets::routes())
        .merge(images::routes())
        .merge(keys::routes())
        .merge(artifacts::routes())
        .merge(audit::routes())
        .merge(events::routes())
        .merge(receipts::routes())
        .merge(signing_keys::routes())
        .merge(tenants::routes())
        .merge(workers::routes());
    OpenApiRouter::with_openapi(Root::openapi())
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(docs::routes())
        .nest("/v1", resources)
}

/// What an operator's own listener serves without a key.
pub(crate) fn for_operators() -> Router<Control> {
    metrics::open_routes().merge(Router::from(health::routes()))
}
