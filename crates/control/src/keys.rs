//! Keys: who a caller is. A secret is shown once and kept as a hash; it has 256 bits, so a quick hash is enough.

use crate::{Control, ControlError, Phase, Result, ids, now_ms};
use cofferdam_policy::{Permit, Principal};
use cofferdam_store::{AuditEvent, KeyRecord, NewKey, Store};
use serde_json::json;
use std::time::Instant;

/// Secrets begin so, for those who look for them where they should not be.
const PREFIX: &str = "cof_";

/// A key that was just made. Nobody will show its secret again.
#[derive(Debug, Clone)]
pub struct NewSecret {
    pub id: String,
    pub secret: String,
}

/// What is kept in the place of bytes that are only to be recognised again.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn draw_secret() -> Result<String> {
    let bytes: [u8; 32] = ids::random()?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{PREFIX}{hex}"))
}

impl Control {
    /// Makes the first tenant and a key for everything in it, for whoever sets the server up.
    pub async fn first_key(store: &Store, tenant: &str) -> Result<NewSecret> {
        let id = ids::tenant()?.to_string();
        let tenant = store.ensure_tenant(id, tenant.to_owned(), now_ms()).await?;
        make(store, tenant, "admin", &["*".to_owned()], None, "system").await
    }

    pub async fn create_key(
        &self,
        permit: &Permit,
        name: &str,
        scopes: &[String],
        agent: Option<String>,
    ) -> Result<NewSecret> {
        make(&self.parts.store, permit.tenant().to_owned(), name, scopes, agent, permit.actor()).await
    }

    pub async fn list_keys(&self, permit: &Permit) -> Result<Vec<KeyRecord>> {
        Ok(self.parts.store.keys(permit.tenant()).await?)
    }

    pub async fn revoke_key(&self, permit: &Permit, id: &str) -> Result<()> {
        let event = self.event(permit, "key.revoked", id, json!({}));
        Ok(self.parts.store.revoke_key(permit.tenant().to_owned(), id.to_owned(), event).await?)
    }

    /// Who has this secret; nobody, if it is not known, was taken back, or is too old.
    pub async fn authenticate(&self, secret: &str) -> Result<Option<Principal>> {
        if !secret.starts_with(PREFIX) {
            return Ok(None);
        }
        self.pass_store_gate()?;
        let began = Instant::now();
        let key = self.parts.store.key_by_hash(&hash(secret.as_bytes())).await?;
        self.parts.metrics.phase(Phase::Auth, began.elapsed());
        let is_valid = |key: &KeyRecord| {
            key.revoked_at_ms.is_none() && key.expires_at_ms.is_none_or(|expires| now_ms() < expires)
        };
        Ok(key.filter(is_valid).map(|key| Principal {
            tenant: key.tenant,
            actor: key.id,
            agent: key.agent,
            scopes: key.scopes.split(' ').map(str::to_owned).collect(),
        }))
    }
}

async fn make(
    store: &Store,
    tenant: String,
    name: &str,
    scopes: &[String],
    agent: Option<String>,
    actor: &str,
) -> Result<NewSecret> {
    if scopes.iter().any(|scope| scope.is_empty() || scope.contains(' ')) {
        return Err(ControlError::Invalid(cofferdam_core::InvalidValue::new(
            "scopes",
            scopes.join(" "),
            "a scope is a word such as jobs:read",
        )));
    }
    let (id, secret) = (ids::key()?.to_string(), draw_secret()?);
    let key = NewKey {
        id: id.clone(),
        tenant,
        name: name.to_owned(),
        hash: hash(secret.as_bytes()),
        scopes: scopes.join(" "),
        agent,
        created_at_ms: now_ms(),
        expires_at_ms: None,
    };
    let event = AuditEvent {
        at_ms: now_ms(),
        kind: "key.created",
        actor: actor.to_owned(),
        resource: id.clone(),
        details: json!({"name": name, "scopes": scopes}),
    };
    store.create_key(key, event).await?;
    Ok(NewSecret { id, secret })
}
