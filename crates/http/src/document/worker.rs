//! The OpenAPI document of a worker: what control asks of it.

use super::corrections;
use super::refusals::Responses;
use crate::runs;
use cofferdam_api::{ErrorBody, PlaceAnswer, PlaceCall, RunEvent};
use std::sync::OnceLock;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Cofferdam worker",
        description = "What control asks of a worker in another process. It is no part of the API: every call has a \
            service token, and nothing here knows tenants."
    ),
    tags(
        (name = "runs", description = "One attempt at a job each, or one step of a session"),
        (name = "sessions", description = "Sandboxes that stay: start, step, terminate, and what else is asked of them"),
        (name = "images", description = "What its image store has, tried and kept"),
        (name = "server", description = "Whether it is there, and what it understands"),
    ),
    components(schemas(ErrorBody, PlaceAnswer, PlaceCall, RunEvent)),
    security(("service_token" = [])),
    modifiers(&Tokens, &Responses)
)]
pub(crate) struct Root;

/// How a service token is sent.
pub(super) struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut Document) {
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A service token."));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("service_token", SecurityScheme::Http(token.build()));
    }
}

/// The document, as a worker serves it at `/openapi.json`.
pub fn worker_openapi_json() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut document = serde_json::to_value(runs::document()).unwrap_or_default();
        corrections::say_what_a_job_needs(&mut document);
        corrections::say_that_headers_are_not_null(&mut document);
        let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
        text.push('\n');
        text
    })
}
