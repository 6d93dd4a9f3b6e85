//! `/healthz` and `/readyz`.

use crate::answer::{Answer, Problem, json};
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use cofferdam_api::ErrorCode;
use cofferdam_control::Control;

pub(crate) fn routes() -> Router<Control> {
    Router::new().route("/healthz", get(health)).route("/readyz", get(ready))
}

/// The process answers.
async fn health() -> Response {
    json(200, &serde_json::json!({"status": "ok"}))
}

/// New work can be taken.
async fn ready(State(control): State<Control>) -> Answer {
    if control.is_draining() {
        let fix = "ask another server, or wait";
        return Err(Problem::new(ErrorCode::Unavailable, "the server is about to stop", fix));
    }
    control.store().ping().await.map_err(cofferdam_control::ControlError::from)?;
    if control.is_open_to_all() {
        let warning = "authentication is off (dev_no_auth): whoever reaches this server may do everything";
        return Ok(json(200, &serde_json::json!({"status": "ready", "warnings": [warning]})));
    }
    Ok(json(200, &serde_json::json!({"status": "ready"})))
}
