//! `/v1/audit`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::query::Query;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use cofferdam_control::{AuditExport, Control, timestamp};
use cofferdam_core::{InvalidValue, parse_timestamp};
use cofferdam_policy::Action;
use cofferdam_store::AuditFilter;
use serde_json::json;

pub(crate) fn routes() -> Router<Control> {
    Router::new()
        .route("/audit", get(list))
        .route("/audit/head", get(head))
        .route("/audit/export", get(export))
}

const PAGE: u64 = 100;
const MAX_PAGE: u64 = 1000;

async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["after_seq", "limit", "from", "to", "actor", "kind", "resource"])?;
    let permit = caller.permit(&control, Action::AuditList).await?;
    let entries = control.list_audit(&permit, &filter(&query)?).await?;
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

fn filter(query: &Query) -> Result<AuditFilter, InvalidValue> {
    let time = |name| query.get(name).map(|text| parse_timestamp(name, text)).transpose();
    // No text in the store has a NUL, so nothing would fit.
    let text = |name: &str| match query.get(name) {
        Some(text) if text.contains('\0') => Err(InvalidValue::new(name, "…", "it must not contain NUL")),
        text => Ok(text.map(str::to_owned)),
    };
    Ok(AuditFilter {
        after_seq: query.number("after_seq", i64::MAX as u64)?.unwrap_or(0) as i64,
        from_ms: time("from")?,
        to_ms: time("to")?,
        actor: text("actor")?,
        kind: text("kind")?,
        resource: text("resource")?,
        limit: query.number("limit", MAX_PAGE)?.unwrap_or(PAGE) as i64,
    })
}

/// The last entry, signed.
async fn head(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&[])?;
    let permit = caller.permit(&control, Action::AuditHead).await?;
    Ok(json(200, &control.head_audit(&permit).await?))
}

/// The whole chain, as lines that `cofferdam audit verify` reads.
async fn export(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["up_to_seq"])?;
    let permit = caller.permit(&control, Action::AuditExport).await?;
    let up_to_seq = query.number("up_to_seq", i64::MAX as u64)?.map(|seq| seq as i64);
    let export = control.export_audit(&permit, up_to_seq).await?;
    let lines = futures_util::stream::try_unfold(export, |mut export: AuditExport| async move {
        // An error cuts the answer off, so that nobody takes a part for the whole.
        Ok::<_, cofferdam_control::ControlError>(export.next().await?.map(|lines| (lines, export)))
    });
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], Body::from_stream(lines)).into_response())
}
