//! `/v1/keys`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::query::Query;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{delete, get};
use cofferdam_api::{CreatedKey, Key, KeyList, KeyRequest};
use cofferdam_control::{Control, KeyOrder, now_ms, timestamp};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Action, Facts};

pub(crate) fn routes() -> Router<Control> {
    Router::new().route("/keys", get(list).post(create)).route("/keys/{id}", delete(revoke))
}

/// Ten years. A key that is to be good for longer is one without an end.
const MAX_TTL_SECONDS: u64 = 10 * 365 * 24 * 3600;

async fn create(State(control): State<Control>, caller: Caller, body: Body<KeyRequest>) -> Answer {
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
    Ok(json(201, &CreatedKey { id: key.id, tenant, name, scopes, expires_at, secret: key.secret }))
}

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
    });
    Ok(json(200, &KeyList { keys: keys.collect() }))
}

async fn revoke(
    State(control): State<Control>,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Answer {
    query.only(&["tenant"])?;
    let owner = query.get("tenant").unwrap_or(&caller.0.tenant);
    let permit = control.permit(&caller.0, Action::KeyDelete, owner, None).await?;
    control.revoke_key(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
