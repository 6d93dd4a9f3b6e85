//! A file a resource.

mod audit;
mod docs;
mod health;
mod jobs;
mod keys;
mod receipts;
mod sessions;
mod signing_keys;
mod tenants;
pub(crate) mod workers;

pub(crate) use docs::error_page;

use crate::document::Root;
use cofferdam_control::Control;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// Every route, and with it the document.
pub(crate) fn all() -> OpenApiRouter<Control> {
    let resources = jobs::routes()
        .merge(sessions::routes())
        .merge(keys::routes())
        .merge(audit::routes())
        .merge(receipts::routes())
        .merge(signing_keys::routes())
        .merge(tenants::routes())
        .merge(workers::routes());
    OpenApiRouter::with_openapi(Root::openapi())
        .merge(health::routes())
        .merge(docs::routes())
        .nest("/v1", resources)
}
