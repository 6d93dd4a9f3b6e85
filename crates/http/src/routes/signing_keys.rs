//! `/v1/signing-keys`: for everybody, as nothing can be checked without them.

use crate::answer::{Answer, json};
use crate::query::Query;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use cofferdam_control::Control;

pub(crate) fn routes() -> Router<Control> {
    Router::new().route("/signing-keys", get(list))
}

async fn list(State(control): State<Control>, query: Query) -> Answer {
    query.only(&[])?;
    Ok(json(200, &control.signing_keys()?))
}
