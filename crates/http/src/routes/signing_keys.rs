//! `/v1/signing-keys`: for everybody, as nothing can be checked without them.

use crate::answer::{Answer, json};
use crate::document::refusals::{OfQuery, Unready};
use crate::query::NoQuery;
use axum::extract::State;
use cofferdam_api::SigningKeyList;
use cofferdam_control::Control;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list))
}

/// List the keys that receipts and heads are signed with
///
/// Public halves, the current one and those before it. Kept in a file, they are what `cofferdam receipt verify` and
/// `cofferdam audit verify` trust.
#[utoipa::path(
    get, path = "/signing-keys", operation_id = "signing_key_list", tag = "server", security(()),
    responses((status = 200, description = "All keys, the oldest first", body = SigningKeyList), OfQuery, Unready)
)]
async fn list(State(control): State<Control>, _: NoQuery) -> Answer {
    Ok(json(200, &control.signing_keys()?))
}
