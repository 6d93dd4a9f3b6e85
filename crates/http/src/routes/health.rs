//! `/healthz` and `/readyz`.

use crate::answer::{Answer, Problem, json};
use crate::document::refusals::{OfQuery, Unready};
use crate::query::NoQuery;
use axum::extract::State;
use axum::response::Response;
use cofferdam_api::{ErrorCode, Health};
use cofferdam_control::Control;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(ready))
}

/// Whether the process answers
#[utoipa::path(
    get, path = "/healthz", operation_id = "server_health", tag = "server", security(()),
    responses((status = 200, description = "It does", body = Health, example = json!({"status": "ok"})), OfQuery)
)]
async fn health(_: NoQuery) -> Response {
    json(200, &Health { status: "ok".to_owned() })
}

/// Whether new work can be taken
#[utoipa::path(
    get, path = "/readyz", operation_id = "server_ready", tag = "server", security(()),
    responses((status = 200, description = "It can", body = Health), OfQuery, Unready)
)]
async fn ready(State(control): State<Control>, _: NoQuery) -> Answer {
    if control.is_draining() {
        let fix = "ask another server, or wait";
        return Err(Problem::new(ErrorCode::Unavailable, "the server is about to stop", fix));
    }
    control.store().ping().await.map_err(cofferdam_control::ControlError::from)?;
    Ok(json(200, &Health { status: "ready".to_owned() }))
}
