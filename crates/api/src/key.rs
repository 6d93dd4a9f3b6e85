//! Keys on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /v1/keys`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRequest {
    /// What it is for, for people.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$",
        example = "ci"
    )]
    pub name: String,
    /// What it may be used for; `*` is everything in its tenant, and not what an `operator` may.
    #[schema(
        min_items = 1,
        max_items = 32,
        schema_with = scopes,
        example = json!(["jobs:read", "jobs:write"])
    )]
    pub scopes: Vec<String>,
    /// The agent that the key speaks for: its jobs are that agent's.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 128, pattern = "^[!-~]+$", example = "reviewer")]
    pub agent: Option<String>,
    /// From now on; without it the key is good until it is taken back.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 315360000_u64)]
    pub ttl_seconds: Option<u64>,
    /// For another tenant than one's own; only an operator may.
    #[serde(default)]
    #[schema(pattern = "^[a-z0-9-]{1,64}$", example = "ten-aaaaaaaaaaaaaaaa")]
    pub tenant: Option<String>,
}

fn scopes() -> utoipa::openapi::schema::Array {
    use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
    let scope =
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"^(\*|operator|[a-z]+:[a-z]+)$"));
    ArrayBuilder::new().items(scope).min_items(Some(1)).max_items(Some(32)).build()
}

/// A key that was just made. Nobody will show its secret again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewKey {
    #[schema(example = "key-aaaaaaaaaaaaaaaa")]
    pub id: String,
    /// Whose it is.
    #[schema(example = "ten-aaaaaaaaaaaaaaaa")]
    pub tenant: String,
    pub name: String,
    pub scopes: Vec<String>,
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// To be sent as `X-API-Key`.
    pub secret: String,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Key {
    #[schema(example = "key-aaaaaaaaaaaaaaaa")]
    pub id: String,
    pub name: String,
    pub scopes: Vec<String>,
    pub agent: Option<String>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
    /// To the hour: a use is noted once in each.
    #[schema(format = DateTime)]
    pub last_used_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    pub keys: Vec<Key>,
}
