//! `/metrics`: for those with the scope; and without a key on a listener of the operator's own, which also answers
//! while the store, and with it every key, is away.

use crate::answer::Answer;
use crate::auth::Caller;
use crate::document::refusals::Always;
use crate::query::NoQuery;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cofferdam_control::Control;
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(with_key))
}

/// For the operator's own listener.
pub(super) fn open_routes() -> Router<Control> {
    Router::new().route("/metrics", get(without_key))
}

/// Show metrics
///
/// Of the whole process, in the text form of Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics_read", tag = "server",
    responses((status = 200, description = "The numbers", content_type = "text/plain", body = String), Always)
)]
async fn with_key(State(control): State<Control>, caller: Caller, _: NoQuery) -> Answer {
    caller.permit(&control, Action::MetricsRead).await?;
    Ok(without_key(State(control)).await)
}

async fn without_key(State(control): State<Control>) -> Response {
    let text = control.metrics_text().await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
