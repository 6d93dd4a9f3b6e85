//! `/v1/keys`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{delete, get};
use cofferdam_control::{Control, timestamp};
use cofferdam_policy::Action;
use serde::Deserialize;
use serde_json::json;

pub(crate) fn routes() -> Router<Control> {
    Router::new().route("/keys", get(list).post(create)).route("/keys/{id}", delete(revoke))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRequest {
    name: String,
    scopes: Vec<String>,
    #[serde(default)]
    agent: Option<String>,
}

async fn create(State(control): State<Control>, caller: Caller, body: Body<KeyRequest>) -> Answer {
    let permit = caller.permit(&control, Action::KeyCreate).await?;
    let KeyRequest { name, scopes, agent } = body.value;
    let key = control.create_key(&permit, &name, &scopes, agent).await?;
    Ok(json(201, &json!({"id": key.id, "name": name, "scopes": scopes, "secret": key.secret})))
}

async fn list(State(control): State<Control>, caller: Caller) -> Answer {
    let permit = caller.permit(&control, Action::KeyList).await?;
    let keys = control.list_keys(&permit).await?.into_iter().map(|key| {
        json!({
            "id": key.id, "name": key.name, "scopes": key.scopes.split(' ').collect::<Vec<_>>(),
            "agent": key.agent, "created_at": timestamp(key.created_at_ms),
            "expires_at": key.expires_at_ms.map(timestamp), "revoked_at": key.revoked_at_ms.map(timestamp),
            "last_used_at": key.last_used_at_ms.map(timestamp),
        })
    });
    Ok(json(200, &json!({"keys": keys.collect::<Vec<_>>()})))
}

async fn revoke(State(control): State<Control>, caller: Caller, Path(id): Path<String>) -> Answer {
    let permit = caller.permit(&control, Action::KeyDelete).await?;
    control.revoke_key(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
