//! `/v1/tenants`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::path::Id;
use crate::query::{NoQuery, Query};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cofferdam_api::{Tenant, TenantList, TenantPatch, TenantRequest};
use cofferdam_control::{Control, TenantChange};
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(show, update, remove))
}

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

/// Make a tenant
///
/// For an operator, as everything on tenants. A key for it is made with its id.
#[utoipa::path(
    post, path = "/tenants", operation_id = "tenant_create", tag = "tenants",
    request_body(content = TenantRequest, content_type = "application/json"),
    responses((status = 201, description = "The tenant", body = Tenant), Always, OfBody, OfState)
)]
async fn create(
    State(control): State<Control>,
    caller: Caller,
    _: NoQuery,
    body: Body<TenantRequest>,
) -> Answer {
    let permit = caller.permit(&control, Action::TenantCreate).await?;
    let TenantRequest { name, quotas } = body.value;
    Ok(json(201, &control.create_tenant(&permit, &name, TenantChange { quotas }).await?))
}

/// List tenants
#[utoipa::path(
    get, path = "/tenants", operation_id = "tenant_list", tag = "tenants",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, description = "The next_cursor of the page before"),
    ),
    responses((status = 200, description = "A page of tenants", body = TenantList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["limit", "cursor"])?;
    let permit = caller.permit(&control, Action::TenantList).await?;
    let limit = query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as usize;
    let after = query.get("cursor").unwrap_or_default();
    let mut tenants = control.list_tenants(&permit, after, limit as i64 + 1).await?;
    let has_more = tenants.len() > limit;
    tenants.truncate(limit);
    let next_cursor = tenants.last().filter(|_| has_more).map(|tenant| tenant.id.clone());
    Ok(json(200, &TenantList { tenants, next_cursor }))
}

/// Show a tenant
#[utoipa::path(
    get, path = "/tenants/{id}", operation_id = "tenant_get", tag = "tenants",
    params(("id" = String, Path, description = "The tenant's id", example = "ten-aaaaaaaaaaaaaaaa")),
    responses((status = 200, description = "The tenant", body = Tenant), Always, OfOne)
)]
async fn show(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::TenantGet).await?;
    Ok(json(200, &control.get_tenant(&permit, &id).await?))
}

/// Change a tenant's quotas
///
/// Those that it had of its own are replaced; what is left out is as for all tenants.
#[utoipa::path(
    patch, path = "/tenants/{id}", operation_id = "tenant_update", tag = "tenants",
    params(("id" = String, Path, description = "The tenant's id", example = "ten-aaaaaaaaaaaaaaaa")),
    request_body(content = TenantPatch, content_type = "application/json"),
    responses((status = 200, description = "The tenant", body = Tenant), Always, OfOne, OfBody)
)]
async fn update(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    body: Body<TenantPatch>,
) -> Answer {
    let permit = caller.permit(&control, Action::TenantUpdate).await?;
    let TenantPatch { quotas } = body.value;
    Ok(json(200, &control.update_tenant(&permit, &id, TenantChange { quotas }).await?))
}

/// Delete a tenant
///
/// Its keys open nothing from then on, and its tokens are not believed. One with jobs that have not ended is refused.
#[utoipa::path(
    delete, path = "/tenants/{id}", operation_id = "tenant_delete", tag = "tenants",
    params(("id" = String, Path, description = "The tenant's id", example = "ten-aaaaaaaaaaaaaaaa")),
    responses((status = 204, description = "It is gone"), Always, OfOne, OfState)
)]
async fn remove(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::TenantDelete).await?;
    control.delete_tenant(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
