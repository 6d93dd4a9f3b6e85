//! `/v1/jobs/{id}/receipt`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::query::Query;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use cofferdam_control::Control;
use cofferdam_policy::Action;

pub(crate) fn routes() -> Router<Control> {
    Router::new().route("/jobs/{id}/receipt", get(show))
}

async fn show(
    State(control): State<Control>,
    caller: Caller,
    query: Query,
    Path(id): Path<String>,
) -> Answer {
    query.only(&[])?;
    let permit = caller.permit(&control, Action::ReceiptGet).await?;
    Ok(json(200, &control.get_receipt(&permit, &id).await?))
}
