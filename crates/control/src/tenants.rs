//! Verbs on tenants, for an operator, and what a tenant may have.

use crate::keys::check_name;
use crate::quota::Quotas;
use crate::{Control, ControlError, Result, ids, now_ms, timestamp};
use cofferdam_api::{QuotasRequest, QuotasView, Tenant};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Permit, Principal};
use cofferdam_store::{QuotaOverrides, StoreError, TenantRecord};
use serde_json::json;
use std::time::Instant;

/// What a tenant shall be.
#[derive(Debug)]
pub struct TenantChange {
    pub quotas: QuotasRequest,
}

impl Control {
    pub async fn create_tenant(&self, permit: &Permit, name: &str, change: TenantChange) -> Result<Tenant> {
        check_name(name)?;
        let quotas = overrides(&change.quotas)?;
        let tenant = TenantRecord {
            id: ids::tenant()?.to_string(),
            name: name.to_owned(),
            created_at_ms: now_ms(),
            quotas,
        };
        let event =
            self.event(permit, "tenant.created", &tenant.id, json!({"name": name, "quotas": shown(&quotas)}));
        self.parts.store.create_tenant(tenant.clone(), permit.tenant().to_owned(), event).await?;
        Ok(self.view(tenant))
    }

    pub async fn get_tenant(&self, _permit: &Permit, id: &str) -> Result<Tenant> {
        let tenant = self.parts.store.tenant(id).await?;
        tenant.map(|tenant| self.view(tenant)).ok_or(ControlError::NotFound { what: "tenant" })
    }

    pub async fn list_tenants(&self, _permit: &Permit, after_id: &str, limit: i64) -> Result<Vec<Tenant>> {
        let tenants = self.parts.store.tenants(after_id, limit).await?;
        Ok(tenants.into_iter().map(|tenant| self.view(tenant)).collect())
    }

    pub async fn update_tenant(&self, permit: &Permit, id: &str, change: TenantChange) -> Result<Tenant> {
        let quotas = overrides(&change.quotas)?;
        let event = self.event(permit, "tenant.updated", id, json!({"quotas": shown(&quotas)}));
        self.parts.store.set_quotas(id.to_owned(), quotas, permit.tenant().to_owned(), event).await?;
        // At once for what waits here; a request brings them along anyway.
        self.parts.tenants.learn(id, self.parts.settings.quotas.with(quotas));
        self.parts.fleet.changed.notify_one();
        self.get_tenant(permit, id).await
    }

    pub async fn delete_tenant(&self, permit: &Permit, id: &str) -> Result<()> {
        if id == permit.principal().tenant {
            let fix = "it is the tenant of the key that asks; use a key of another";
            return Err(InvalidValue::new("id", id, fix).into());
        }
        let event = self.event(permit, "tenant.deleted", id, json!({}));
        Ok(self.parts.store.delete_tenant(id.to_owned(), permit.tenant().to_owned(), event).await?)
    }

    /// Counts a request of a principal's; where its tenant has sent too many, that is an error.
    pub fn count_request(&self, principal: &Principal) -> Result<()> {
        let counted = self.parts.tenants.count_request(&principal.tenant, Instant::now());
        counted.map_err(|(most, retry_after)| ControlError::OverQuota {
            quota: "requests_per_second",
            most,
            retry_after,
        })
    }

    /// What a tenant may have. It is known from its request; for a job of an earlier process it is read once.
    pub(crate) async fn quotas(&self, tenant: &str) -> Result<Quotas> {
        if let Some(quotas) = self.parts.tenants.quotas(tenant) {
            return Ok(quotas);
        }
        let own = self.parts.store.tenant(tenant).await?.map(|tenant| tenant.quotas).unwrap_or_default();
        let quotas = self.parts.settings.quotas.with(own);
        self.parts.tenants.learn(tenant, quotas);
        Ok(quotas)
    }

    /// A full queue, said with the time after which a place in it is free, by what was seen.
    pub(crate) fn queue_full(&self, tenant: &str, error: StoreError) -> ControlError {
        match error {
            StoreError::QueueFull { most, .. } => ControlError::OverQuota {
                quota: "max_queued",
                most: most as u64,
                retry_after: self.parts.tenants.wait(tenant),
            },
            other => other.into(),
        }
    }

    fn view(&self, tenant: TenantRecord) -> Tenant {
        let Quotas { max_running, max_queued, requests_per_second, burst, artifact_bytes } =
            self.parts.settings.quotas.with(tenant.quotas);
        Tenant {
            id: tenant.id,
            name: tenant.name,
            created_at: timestamp(tenant.created_at_ms),
            quotas: QuotasView { max_running, max_queued, requests_per_second, burst, artifact_bytes },
        }
    }
}

/// Numbers as the store has them.
fn overrides(asked: &QuotasRequest) -> Result<QuotaOverrides> {
    let QuotasRequest { max_running, max_queued, requests_per_second, burst, artifact_bytes } = asked;
    let number = |field: &str, value: &Option<u64>, least: u64, most: u64| match *value {
        Some(value) if !(least..=most).contains(&value) => {
            let fix = format!("it must be from {least} to {most}");
            Err(ControlError::from(InvalidValue::new(&format!("quotas.{field}"), value.to_string(), fix)))
        }
        value => Ok(value.map(|value| value as i64)),
    };
    Ok(QuotaOverrides {
        max_running: number("max_running", max_running, 0, 1_000_000)?,
        max_queued: number("max_queued", max_queued, 0, 1_000_000_000)?,
        requests_per_second: number("requests_per_second", requests_per_second, 1, 1_000_000)?,
        burst: number("burst", burst, 1, 1_000_000)?,
        artifact_bytes: number("artifact_bytes", artifact_bytes, 0, i64::MAX as u64)?,
    })
}

fn shown(quotas: &QuotaOverrides) -> serde_json::Value {
    let QuotaOverrides { max_running, max_queued, requests_per_second, burst, artifact_bytes } = quotas;
    json!({
        "max_running": max_running, "max_queued": max_queued, "requests_per_second": requests_per_second,
        "burst": burst, "artifact_bytes": artifact_bytes,
    })
}
