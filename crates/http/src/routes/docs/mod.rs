//! `/openapi.json`, and `/docs`, a page that shows it. Everything is in the program: nothing is fetched from elsewhere.

use crate::document::openapi_json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use cofferdam_control::Control;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new()
        .routes(routes!(document))
        .routes(routes!(page))
        .routes(routes!(script))
        .routes(routes!(style))
}

/// The page runs its own script, reads the document, and nothing else.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// This document
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "server_document", tag = "server", security(()),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object))
)]
async fn document() -> Response {
    file("application/json", openapi_json())
}

/// A page that shows this document
#[utoipa::path(
    get, path = "/docs", operation_id = "server_docs", tag = "server", security(()),
    responses((status = 200, description = "For people", content_type = "text/html", body = String))
)]
async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("page.html"))
}

/// What the page runs
#[utoipa::path(
    get, path = "/docs/page.js", operation_id = "server_docs_script", tag = "server", security(()),
    responses((status = 200, description = "A script", content_type = "text/javascript", body = String))
)]
async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("page.js"))
}

/// How the page looks
#[utoipa::path(
    get, path = "/docs/page.css", operation_id = "server_docs_style", tag = "server", security(()),
    responses((status = 200, description = "A style sheet", content_type = "text/css", body = String))
)]
async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("page.css"))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}
