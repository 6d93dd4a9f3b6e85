//! `/v1/audit`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::document::refusals::{Always, OfOne};
use crate::query::Query;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use cofferdam_api::{AuditEntry, AuditList, SignedDocument};
use cofferdam_control::{AuditExport, Control, ControlError, timestamp};
use cofferdam_core::{InvalidValue, parse_timestamp};
use cofferdam_policy::{Action, Permit};
use cofferdam_store::AuditFilter;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(head)).routes(routes!(export))
}

const PAGE: u64 = 100;
const MAX_PAGE: u64 = 1000;

/// List what happened
///
/// In order, the oldest first.
#[utoipa::path(
    get, path = "/audit", operation_id = "audit_list", tag = "audit",
    params(
        ("tenant" = Option<String>, Query, pattern = r"^[^\u0000]*$", description = "Another tenant's, for an operator"),
        ("after_seq" = Option<i64>, Query, minimum = 0, description = "Only what came after this number"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many; 100 unless given"),
        ("from" = Option<String>, Query, example = "2026-01-31T00:00:00Z",
         pattern = r"^[0-9]{4}-(((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01]))|((0[469]|11)-(0[1-9]|[12][0-9]|30))|(02-(0[1-9]|1[0-9]|2[0-8])))T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?Z$",
         description = "Only from this time on, in UTC; the 29th of February is a day, too, where there is one"),
        ("to" = Option<String>, Query, example = "2026-02-01T00:00:00Z",
         pattern = r"^[0-9]{4}-(((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01]))|((0[469]|11)-(0[1-9]|[12][0-9]|30))|(02-(0[1-9]|1[0-9]|2[0-8])))T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?Z$",
         description = "Only before this time, in UTC"),
        ("actor" = Option<String>, Query, pattern = r"^[^\u0000]*$", description = "Only what this key, or `system`, did"),
        ("kind" = Option<String>, Query, pattern = r"^[^\u0000]*$", example = "job.finished",
         description = "Only this kind"),
        ("resource" = Option<String>, Query, pattern = r"^[^\u0000]*$", description = "Only what is about this id"),
    ),
    responses((status = 200, description = "A page of entries", body = AuditList), Always, OfOne)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["tenant", "after_seq", "limit", "from", "to", "actor", "kind", "resource"])?;
    let permit = permit(&control, &caller, &query, Action::AuditList).await?;
    let entries = control.list_audit(&permit, &filter(&query)?).await?.into_iter().map(|entry| AuditEntry {
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

/// For the caller's own tenant, unless an operator names another.
async fn permit(
    control: &Control,
    caller: &Caller,
    query: &Query,
    action: Action,
) -> Result<Permit, ControlError> {
    let owner = query.get("tenant").unwrap_or(&caller.0.tenant);
    control.permit(&caller.0, action, owner, None).await
}

fn filter(query: &Query) -> Result<AuditFilter, InvalidValue> {
    let time = |name| query.get(name).map(|text| parse_timestamp(name, text)).transpose();
    let text = |name| query.get(name).map(str::to_owned);
    Ok(AuditFilter {
        after_seq: query.number("after_seq", i64::MAX as u64)?.unwrap_or(0) as i64,
        from_ms: time("from")?,
        to_ms: time("to")?,
        actor: text("actor"),
        kind: text("kind"),
        resource: text("resource"),
        limit: query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as i64,
    })
}

/// The last entry, signed
///
/// A DSSE envelope of type `application/vnd.cofferdam.audit-head+json`. With it, `cofferdam audit verify` shows that
/// nothing is missing at the end of an exported chain.
#[utoipa::path(
    get, path = "/audit/head", operation_id = "audit_head", tag = "audit",
    params(("tenant" = Option<String>, Query, pattern = r"^[^\u0000]*$", description = "Another tenant's, for an operator")),
    responses((status = 200, description = "The signed head", body = SignedDocument), Always, OfOne)
)]
async fn head(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["tenant"])?;
    let permit = permit(&control, &caller, &query, Action::AuditHead).await?;
    Ok(json(200, &control.head_audit(&permit).await?))
}

/// The whole chain, as a file
///
/// JSON lines: a header, then every entry, as `cofferdam audit verify` reads them. An answer that is cut off is not
/// whole.
#[utoipa::path(
    get, path = "/audit/export", operation_id = "audit_export", tag = "audit",
    params(
        ("tenant" = Option<String>, Query, pattern = r"^[^\u0000]*$", description = "Another tenant's, for an operator"),
        ("up_to_seq" = Option<i64>, Query, minimum = 0,
         description = "The last entry that is wanted; all that there are unless given"),
    ),
    responses(
        (status = 200, description = "The chain", body = String, content_type = "application/jsonl"),
        Always, OfOne,
    )
)]
async fn export(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["tenant", "up_to_seq"])?;
    let permit = permit(&control, &caller, &query, Action::AuditExport).await?;
    let up_to_seq = query.number("up_to_seq", i64::MAX as u64)?.map(|seq| seq as i64);
    let export = control.export_audit(&permit, up_to_seq).await?;
    let lines = futures_util::stream::try_unfold(export, |mut export: AuditExport| async move {
        // An error cuts the answer off, so that nobody takes a part for the whole.
        Ok::<_, ControlError>(export.next().await?.map(|lines| (lines, export)))
    });
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], Body::from_stream(lines)).into_response())
}
