//! `/v1/keys`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne};
use crate::path::Id;
use crate::query::NoQuery;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cofferdam_api::{Key, KeyList, KeyRequest, NewKey};
use cofferdam_control::{Control, timestamp};
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// Make a key
///
/// Its secret is in the answer, and is never shown again.
#[utoipa::path(
    post, path = "/keys", operation_id = "key_create", tag = "keys",
    request_body(content = KeyRequest, content_type = "application/json"),
    responses((status = 201, description = "The key, with its secret", body = NewKey), Always, OfBody)
)]
async fn create(
    State(control): State<Control>,
    caller: Caller,
    _: NoQuery,
    body: Body<KeyRequest>,
) -> Answer {
    let permit = caller.permit(&control, Action::KeyCreate).await?;
    let KeyRequest { name, scopes, agent } = body.value;
    let key = control.create_key(&permit, &name, &scopes, agent).await?;
    Ok(json(201, &NewKey { id: key.id, name, scopes, secret: key.secret }))
}

/// List keys
///
/// Without their secrets.
#[utoipa::path(
    get, path = "/keys", operation_id = "key_list", tag = "keys",
    responses((status = 200, description = "All keys of the tenant", body = KeyList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::KeyList).await?;
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
    params(("id" = String, Path, description = "The key's id", example = "key-aaaaaaaaaaaaaaaa")),
    responses((status = 204, description = "It was taken back"), Always, OfOne)
)]
async fn revoke(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::KeyDelete).await?;
    control.revoke_key(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
