//! `/v1/keys`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne};
use crate::path::Id;
use crate::query::{NoQuery, Query};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cofferdam_api::{Key, KeyList, KeyRequest, NewKey};
use cofferdam_control::{Control, KeyOrder, now_ms, timestamp};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Action, Facts};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// Ten years. A key that is to be good for longer is one without an end.
const MAX_TTL_SECONDS: u64 = 10 * 365 * 24 * 3600;

/// Make a key
///
/// Its secret is in the answer, and is never shown again.
#[utoipa::path(
    post, path = "/keys", operation_id = "key_create", tag = "keys",
    request_body(content = KeyRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "The key, with its secret", body = NewKey, links(
            ("delete" = (operation_id = "key_delete", parameters(("id" = "$response.body#/id")))),
        )),
        Always, OfOne, OfBody,
    )
)]
async fn create(
    State(control): State<Control>,
    caller: Caller,
    _: NoQuery,
    body: Body<KeyRequest>,
) -> Answer {
    let KeyRequest { name, scopes, agent, ttl_seconds, tenant } = body.value;
    let owner = tenant.as_deref().unwrap_or(&caller.0.tenant);
    let facts = Facts { agent: agent.as_deref(), scopes: &scopes };
    let permit = control.permit_on(&caller.0, Action::KeyCreate, owner, facts).await?;
    let expires_at_ms = match ttl_seconds {
        Some(seconds) if !(1..=MAX_TTL_SECONDS).contains(&seconds) => {
            let fix = format!("it must be from 1 to {MAX_TTL_SECONDS}");
            return Err(InvalidValue::new("ttl_seconds", seconds.to_string(), fix).into());
        }
        seconds => seconds.map(|seconds| now_ms() + seconds as i64 * 1000),
    };
    let order = KeyOrder { name: &name, scopes: &scopes, agent, expires_at_ms };
    let key = control.create_key(&permit, order).await?;
    let expires_at = expires_at_ms.map(timestamp);
    let tenant = permit.tenant().to_owned();
    Ok(json(201, &NewKey { id: key.id, tenant, name, scopes, expires_at, secret: key.secret }))
}

/// List keys
///
/// Without their secrets.
#[utoipa::path(
    get, path = "/keys", operation_id = "key_list", tag = "keys",
    params(("tenant" = Option<String>, Query, pattern = r"^[^\u0000]*$", description = "Another tenant's, for an operator")),
    responses((status = 200, description = "All keys of the tenant", body = KeyList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["tenant"])?;
    let owner = query.get("tenant").unwrap_or(&caller.0.tenant);
    let permit = control.permit(&caller.0, Action::KeyList, owner, None).await?;
    let keys = control.list_keys(&permit).await?.into_iter().map(|key| Key {
        id: key.id,
        name: key.name,
        scopes: key.scopes.split(' ').map(str::to_owned).collect(),
        agent: key.agent,
        created_at: timestamp(key.created_at_ms),
        expires_at: key.expires_at_ms.map(timestamp),
        revoked_at: key.revoked_at_ms.map(timestamp),
        last_used_at: key.last_used_at_ms.map(timestamp),
    });
    Ok(json(200, &KeyList { keys: keys.collect() }))
}

/// Take a key back
///
/// From then on it opens nothing.
#[utoipa::path(
    delete, path = "/keys/{id}", operation_id = "key_delete", tag = "keys",
    params(
        ("id" = String, Path, description = "The key's id", example = "key-aaaaaaaaaaaaaaaa"),
        ("tenant" = Option<String>, Query, pattern = r"^[^\u0000]*$", description = "Another tenant's, for an operator"),
    ),
    responses((status = 204, description = "It was taken back"), Always, OfOne)
)]
async fn revoke(State(control): State<Control>, caller: Caller, Id(id): Id, query: Query) -> Answer {
    query.only(&["tenant"])?;
    let owner = query.get("tenant").unwrap_or(&caller.0.tenant);
    let permit = control.permit(&caller.0, Action::KeyDelete, owner, None).await?;
    control.revoke_key(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
