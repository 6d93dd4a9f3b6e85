//! Tenants on the wire.

use serde::{Deserialize, Serialize};

/// `POST /v1/tenants`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantRequest {
    pub name: String,
    #[serde(default)]
    pub quotas: QuotasRequest,
}

/// `PATCH /v1/tenants/{id}`: the tenant's own quotas, in the place of those it had.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantPatch {
    pub quotas: QuotasRequest,
}

/// What is left out is as for all tenants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotasRequest {
    pub max_running: Option<u64>,
    pub max_queued: Option<u64>,
    pub requests_per_second: Option<u64>,
    pub burst: Option<u64>,
    pub artifact_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenant {
    pub id: String,
    pub name: String,
    pub created_at: String,
    /// As they are in effect.
    pub quotas: QuotasView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QuotasView {
    pub max_running: u64,
    pub max_queued: u64,
    pub requests_per_second: u64,
    pub burst: u64,
    pub artifact_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TenantList {
    pub tenants: Vec<Tenant>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}
