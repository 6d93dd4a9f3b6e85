//! The OpenAPI document. It is made from the routes themselves: a handler that is served by `routes!` is in it.
//!
//! To add a route: derive `ToSchema` for its bodies in crates/api, annotate the handler with `#[utoipa::path]`, name
//! the ways in which it can be refused by the types of [`refusals`], and put it into `routes!` in its file.

mod corrections;
mod internal;
pub(crate) mod refusals;
mod worker;

pub(crate) use internal::Root as InternalRoot;
pub use internal::internal_openapi_json;
pub(crate) use worker::Root as WorkerRoot;
pub use worker::worker_openapi_json;

use crate::routes;
use cofferdam_api::{CompleteData, ErrorBody, ErrorData, FeedData, FeedInitData};
use cofferdam_api::{InitData, OutputData, TruncatedData, WebhookBody};
use refusals::Responses;
use std::sync::OnceLock;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Cofferdam",
        description = "Runs code that nobody trusts, in sandboxes that it cannot leave.\n\n\
            Every error is the same object, with a code of a closed set, and says what to do about it. \
            Unknown fields and parameters are refused. Units are in names."
    ),
    tags(
        (name = "jobs", description = "One-shot work: a sandbox, one process, its output, and it is gone"),
        (name = "secrets", description = "Values that jobs and sessions are given as files"),
        (name = "sessions", description = "Sandboxes that stay, and the steps that run in them"),
        (name = "images", description = "Root filesystems that jobs may ask for by a profile"),
        (name = "artifacts", description = "Bytes that outlive a sandbox"),
        (name = "keys", description = "Who may do what. A secret is shown once"),
        (name = "tenants", description = "Who owns, and how much each may have. For an operator"),
        (name = "audit", description = "What happened, in order"),
        (name = "workers", description = "What runs jobs"),
        (name = "server", description = "Whether it is there, and what it understands"),
    ),
    components(schemas(
        ErrorBody, InitData, OutputData, TruncatedData, ErrorData, CompleteData, FeedInitData, FeedData, WebhookBody
    )),
    security(("api_key" = []), ("bearer" = [])),
    modifiers(&Keys, &Responses)
)]
pub(crate) struct Root;

/// How a key is sent.
struct Keys;

impl Modify for Keys {
    fn modify(&self, document: &mut Document) {
        let key = ApiKeyValue::with_description("X-API-Key", "A key's secret.");
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A key's secret. X-API-Key comes first where both are sent."));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(ApiKey::Header(key)));
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
    }
}

/// The document, as it is served at `/openapi.json`.
pub fn openapi_json() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut document = serde_json::to_value(routes::all().into_openapi()).unwrap_or_default();
        corrections::say_what_a_job_needs(&mut document);
        corrections::say_what_a_process_needs(&mut document);
        corrections::say_what_bodies_are(&mut document);
        corrections::say_what_other_streams_tell(&mut document);
        corrections::say_that_headers_are_not_null(&mut document);
        let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
        text.push('\n');
        text
    })
}
