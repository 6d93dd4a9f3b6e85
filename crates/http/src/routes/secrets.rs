//! `/v1/secrets`: values that come in, and go out only as files in a sandbox.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::idempotency::idempotency_key;
use crate::path::Name;
use crate::query::{NoQuery, Query};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use cofferdam_api::{Secret, SecretList, SecretPut};
use cofferdam_control::{Control, secret_view};
use cofferdam_policy::Action;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(put, remove))
}

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

/// Put a secret
///
/// Keeps a value under a name, encrypted; a value that was there goes. Nobody is told it again: it is given to sessions,
/// as a file in memory.
#[utoipa::path(
    put, path = "/secrets/{name}", operation_id = "secret_put", tag = "secrets",
    params(
        ("name" = String, Path, description = "The secret's name", example = "registry-token"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is done once, and answered alike; with another body, or before the first has ended, it is a 409"),
    ),
    request_body(content = SecretPut, content_type = "application/json"),
    responses((status = 200, description = "It is kept", body = Secret), Always, OfBody, OfOne, OfState)
)]
async fn put(
    State(control): State<Control>,
    caller: Caller,
    Name(name): Name,
    _: NoQuery,
    headers: HeaderMap,
    body: Body<SecretPut>,
) -> Answer {
    let key = idempotency_key(&headers)?;
    let permit = caller.permit(&control, Action::SecretPut).await?;
    Ok(json(200, &secret_view(control.put_secret(&permit, &name, body.value.value, key).await?)))
}

/// List secrets
///
/// By name, and never with their values.
#[utoipa::path(
    get, path = "/secrets", operation_id = "secret_list", tag = "secrets",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, pattern = "^[^\\u0000]*$",
         description = "The `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "A page of secrets", body = SecretList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["limit", "cursor"])?;
    let permit = caller.permit(&control, Action::SecretList).await?;
    let limit = query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as usize;
    let mut found =
        control.list_secrets(&permit, query.get("cursor").unwrap_or(""), limit as i64 + 1).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = found.last().filter(|_| has_more).map(|secret| secret.name.clone());
    Ok(json(200, &SecretList { secrets: found.into_iter().map(secret_view).collect(), next_cursor }))
}

/// Delete a secret
///
/// Sessions that have it keep their file.
#[utoipa::path(
    delete, path = "/secrets/{name}", operation_id = "secret_delete", tag = "secrets",
    params(
        ("name" = String, Path, description = "The secret's name", example = "registry-token"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is done once, and answered alike; with another body, or before the first has ended, it is a 409"),
    ),
    responses((status = 204, description = "It is gone"), Always, OfOne, OfState)
)]
async fn remove(
    State(control): State<Control>,
    caller: Caller,
    Name(name): Name,
    _: NoQuery,
    headers: HeaderMap,
) -> Answer {
    let key = idempotency_key(&headers)?;
    let permit = caller.permit(&control, Action::SecretDelete).await?;
    control.delete_secret(&permit, &name, key).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
