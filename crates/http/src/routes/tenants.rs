//! `/v1/tenants`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::query::Query;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use cofferdam_api::{TenantList, TenantPatch, TenantRequest};
use cofferdam_control::{Control, TenantChange};
use cofferdam_policy::Action;

pub(crate) fn routes() -> Router<Control> {
    Router::new()
        .route("/tenants", get(list).post(create))
        .route("/tenants/{id}", get(show).patch(update).delete(remove))
}

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

async fn create(State(control): State<Control>, caller: Caller, body: Body<TenantRequest>) -> Answer {
    let permit = caller.permit(&control, Action::TenantCreate).await?;
    let TenantRequest { name, quotas } = body.value;
    Ok(json(201, &control.create_tenant(&permit, &name, TenantChange { quotas }).await?))
}

async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["limit", "cursor"])?;
    let permit = caller.permit(&control, Action::TenantList).await?;
    let limit = query.number("limit", MAX_PAGE)?.unwrap_or(PAGE).max(1) as usize;
    let after = query.get("cursor").unwrap_or_default();
    let mut tenants = control.list_tenants(&permit, after, limit as i64 + 1).await?;
    let has_more = tenants.len() > limit;
    tenants.truncate(limit);
    let next_cursor = tenants.last().filter(|_| has_more).map(|tenant| tenant.id.clone());
    Ok(json(200, &TenantList { tenants, next_cursor }))
}

async fn show(State(control): State<Control>, caller: Caller, Path(id): Path<String>) -> Answer {
    let permit = caller.permit(&control, Action::TenantGet).await?;
    Ok(json(200, &control.get_tenant(&permit, &id).await?))
}

async fn update(
    State(control): State<Control>,
    caller: Caller,
    Path(id): Path<String>,
    body: Body<TenantPatch>,
) -> Answer {
    let permit = caller.permit(&control, Action::TenantUpdate).await?;
    let TenantPatch { quotas } = body.value;
    Ok(json(200, &control.update_tenant(&permit, &id, TenantChange { quotas }).await?))
}

async fn remove(State(control): State<Control>, caller: Caller, Path(id): Path<String>) -> Answer {
    let permit = caller.permit(&control, Action::TenantDelete).await?;
    control.delete_tenant(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
