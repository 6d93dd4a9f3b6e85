//! `/v1/audit`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::query::Query;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use cofferdam_control::{Control, timestamp};
use cofferdam_policy::Action;
use serde_json::json;

pub(crate) fn routes() -> Router<Control> {
    Router::new().route("/audit", get(list))
}

const PAGE: u64 = 100;
const MAX_PAGE: u64 = 1000;

async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["after_seq", "limit"])?;
    let permit = caller.permit(&control, Action::AuditList).await?;
    let after = query.number("after_seq", i64::MAX as u64)?.unwrap_or(0) as i64;
    let limit = query.number("limit", MAX_PAGE)?.unwrap_or(PAGE) as i64;
    let entries = control.list_audit(&permit, after, limit).await?;
    let entries: Vec<_> = entries
        .into_iter()
        .map(|entry| {
            let details: serde_json::Value = serde_json::from_str(&entry.details).unwrap_or_default();
            json!({
                "seq": entry.seq, "at": timestamp(entry.at_ms), "kind": entry.kind, "actor": entry.actor,
                "resource": entry.resource, "details": details, "hash": entry.hash,
            })
        })
        .collect();
    Ok(json(200, &json!({"entries": entries})))
}
