//! The OpenAPI document of what workers ask of control.

use super::corrections;
use super::refusals::Responses;
use super::worker::Tokens;
use crate::routes;
use cofferdam_api::ErrorBody;
use std::sync::OnceLock;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Cofferdam control, for workers",
        description = "What workers ask of control. It is no part of the API: every call has a service token."
    ),
    tags((name = "workers", description = "What runs jobs")),
    components(schemas(ErrorBody)),
    security(("service_token" = [])),
    modifiers(&Tokens, &Responses)
)]
pub(crate) struct Root;

/// The document, as control serves it at `/internal/openapi.json`.
pub fn internal_openapi_json() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut document = serde_json::to_value(routes::workers::internal_document()).unwrap_or_default();
        corrections::say_that_headers_are_not_null(&mut document);
        let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
        text.push('\n');
        text
    })
}
