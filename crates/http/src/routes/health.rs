//! `/healthz` and `/readyz`.

use crate::answer::{Answer, Problem, json};
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use cofferdam_api::ErrorCode;
use cofferdam_control::{Control, timestamp};

pub(crate) fn routes() -> Router<Control> {
    Router::new().route("/healthz", get(health)).route("/readyz", get(ready))
}

/// The process answers.
async fn health() -> Response {
    json(200, &serde_json::json!({"status": "ok"}))
}

/// New work can be taken. Nothing is probed here: the gates are known.
async fn ready(State(control): State<Control>) -> Answer {
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
    Ok(json(200, &serde_json::json!({"status": "ready"})))
}
