//! `/healthz` and `/readyz`.

use crate::answer::{Answer, Problem, json};
use crate::document::refusals::{OfQuery, Unready};
use crate::query::NoQuery;
use axum::extract::State;
use axum::response::Response;
use cofferdam_api::{ErrorCode, Health};
use cofferdam_control::{Control, timestamp};
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
    json(200, &Health { status: "ok".to_owned(), warnings: Vec::new(), backends: Vec::new() })
}

/// Whether new work can be taken
///
/// Nothing is probed for it: what is wrong is known. `details.gates` of the error says what, and since when.
#[utoipa::path(
    get, path = "/readyz", operation_id = "server_ready", tag = "server", security(()),
    responses((status = 200, description = "It can", body = Health), OfQuery, Unready)
)]
async fn ready(State(control): State<Control>, _: NoQuery) -> Answer {
    if control.is_draining() {
        let fix = "ask another server, or wait";
        return Err(Problem::new(ErrorCode::Unavailable, "the server is about to stop", fix));
    }
    let gates = control.closed_gates();
    if let Some((first, _)) = gates.first() {
        let mut problem = Problem::new(ErrorCode::Unavailable, first.reason(), "wait, or look into the log");
        let shown = gates.iter().map(|(gate, since)| {
            serde_json::json!({"gate": gate.as_str(), "reason": gate.reason(), "since": timestamp(*since)})
        });
        problem.details = serde_json::json!({"gates": shown.collect::<Vec<_>>()});
        return Err(problem);
    }
    let mut warnings = Vec::new();
    if control.is_open_to_all() {
        warnings.push(
            "authentication is off (dev_no_auth): whoever reaches this server may do everything".to_owned(),
        );
    }
    let backends = control.backends();
    for backend in backends.iter().filter(|backend| backend.state != "ready") {
        warnings.push(format!("the backend {} cannot make sandboxes now; the log says why", backend.name));
    }
    Ok(json(200, &Health { status: "ready".to_owned(), warnings, backends }))
}
