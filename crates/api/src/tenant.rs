//! Tenants on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /v1/tenants`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantRequest {
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$",
        example = "acme"
    )]
    pub name: String,
    #[serde(default)]
    pub quotas: QuotasRequest,
}

/// `PATCH /v1/tenants/{id}`: the tenant's own quotas, in the place of those it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantPatch {
    pub quotas: QuotasRequest,
}

/// What is left out is as for all tenants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuotasRequest {
    /// Sandboxes at once; more jobs than that wait.
    #[schema(maximum = 1000000)]
    pub max_running: Option<u64>,
    /// Jobs that wait; more than that are refused.
    #[schema(maximum = 1000000000)]
    pub max_queued: Option<u64>,
    #[schema(minimum = 1, maximum = 1000000)]
    pub requests_per_second: Option<u64>,
    /// Requests that may come at once after a while of none; as many as a second's where only that is given.
    #[schema(minimum = 1, maximum = 1000000)]
    pub burst: Option<u64>,
    #[schema(maximum = 9223372036854775807_u64)]
    pub artifact_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tenant {
    #[schema(example = "ten-aaaaaaaaaaaaaaaa")]
    pub id: String,
    pub name: String,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// As they are in effect.
    pub quotas: QuotasView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotasView {
    pub max_running: u64,
    pub max_queued: u64,
    pub requests_per_second: u64,
    pub burst: u64,
    pub artifact_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantList {
    pub tenants: Vec<Tenant>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}
