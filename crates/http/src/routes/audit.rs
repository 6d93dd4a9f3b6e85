//! `/v1/audit`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::document::refusals::Always;
use crate::query::Query;
use axum::extract::State;
use cofferdam_api::{AuditEntry, AuditList};
use cofferdam_control::{Control, timestamp};
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list))
}

const PAGE: u64 = 100;
const MAX_PAGE: u64 = 1000;

/// List what happened
///
/// In order, the oldest first.
#[utoipa::path(
    get, path = "/audit", operation_id = "audit_list", tag = "audit",
    params(
        ("after_seq" = Option<i64>, Query, minimum = 0, description = "Only what came after this number"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many; 100 unless given"),
    ),
    responses((status = 200, description = "A page of entries", body = AuditList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["after_seq", "limit"])?;
    let permit = caller.permit(&control, Action::AuditList).await?;
    let after = query.number("after_seq", i64::MAX as u64)?.unwrap_or(0) as i64;
    let limit = query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as i64;
    let entries = control.list_audit(&permit, after, limit).await?.into_iter().map(|entry| AuditEntry {
        seq: entry.seq,
        at: timestamp(entry.at_ms),
        kind: entry.kind,
        actor: entry.actor,
        resource: entry.resource,
        details: serde_json::from_str(&entry.details).unwrap_or_default(),
        hash: entry.hash,
    });
    Ok(json(200, &AuditList { entries: entries.collect() }))
}
