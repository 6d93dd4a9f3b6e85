//! Verbs on tenants, for an operator.

use crate::{Client, Result};
use cofferdam_api::{Tenant, TenantList, TenantPatch, TenantRequest};
use reqwest::Method;

impl Client {
    /// Makes a tenant. Its name can be taken once, so that a lost answer makes none twice; it is not tried again.
    pub async fn tenant_create(&self, request: &TenantRequest) -> Result<Tenant> {
        self.call(Method::POST, &["v1", "tenants"]).body(request)?.json().await
    }

    pub async fn tenant_list(&self, limit: u32, cursor: Option<&str>) -> Result<TenantList> {
        let mut call = self.call(Method::GET, &["v1", "tenants"]).query("limit", &limit.to_string());
        if let Some(cursor) = cursor {
            call = call.query("cursor", cursor);
        }
        call.json().await
    }

    pub async fn tenant_get(&self, id: &str) -> Result<Tenant> {
        self.call(Method::GET, &["v1", "tenants", id]).json().await
    }

    /// Gives a tenant these quotas in the place of those it had.
    pub async fn tenant_update(&self, id: &str, patch: &TenantPatch) -> Result<Tenant> {
        self.call(Method::PATCH, &["v1", "tenants", id]).body(patch)?.json().await
    }

    pub async fn tenant_delete(&self, id: &str) -> Result<()> {
        self.call(Method::DELETE, &["v1", "tenants", id]).gone().await
    }
}
