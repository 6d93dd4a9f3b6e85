//! `/v1/jobs/{id}/receipt`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::document::refusals::{Always, OfOne, OfState};
use crate::path::Id;
use crate::query::NoQuery;
use axum::extract::State;
use cofferdam_api::SignedDocument;
use cofferdam_control::Control;
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(show))
}

/// A signed statement of what a job was and what came of it
///
/// A DSSE envelope around an in-toto statement: digests of code, inputs and outputs, limits, isolation report, outcome
/// and usage. `cofferdam receipt verify` checks it without the service.
#[utoipa::path(
    get, path = "/jobs/{id}/receipt", operation_id = "receipt_get", tag = "jobs",
    params(("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa")),
    responses((status = 200, description = "The receipt", body = SignedDocument), Always, OfOne, OfState)
)]
async fn show(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::ReceiptGet).await?;
    Ok(json(200, &control.get_receipt(&permit, &id).await?))
}
