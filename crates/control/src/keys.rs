//! Keys: who a caller is. A secret is shown once and kept as a hash; it has 256 bits, so a quick hash is enough.

use crate::{Control, ControlError, Result, Unrecognised, ids, now_ms, timestamp};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Permit, Principal};
use cofferdam_store::{AuditEvent, FoundKey, KeyRecord, NewKey, Store};
use serde_json::json;

/// Secrets begin so, for those who look for them where they should not be.
const PREFIX: &str = "cof_";

/// A key that was just made. Nobody will show its secret again.
#[derive(Debug, Clone)]
pub struct NewSecret {
    pub id: String,
    pub secret: String,
}

/// A key that is to be made.
#[derive(Debug)]
pub struct KeyOrder<'k> {
    pub name: &'k str,
    pub scopes: &'k [String],
    pub agent: Option<String>,
    pub expires_at_ms: Option<i64>,
}

/// The scope of whoever runs the server. `*` is everything in one's own tenant, and not this.
pub const OPERATOR: &str = "operator";

/// Names are shown in lists and logs, so they are short and in one line.
pub(crate) fn check_name(field: &str, name: &str) -> Result<()> {
    let is_plain = !name.is_empty() && name.len() <= 128 && !name.chars().any(char::is_control);
    if is_plain {
        return Ok(());
    }
    let value: String = name.chars().take(40).collect();
    Err(InvalidValue::new(field, value, "it must be 1 to 128 bytes, without control characters").into())
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
        let scopes = ["*", OPERATOR].map(str::to_owned);
        let key = KeyOrder { name: "admin", scopes: &scopes, agent: None, expires_at_ms: None };
        make(store, tenant, key, "system").await
    }

    /// Makes a key. For another tenant's, that has to be there.
    pub async fn create_key(&self, permit: &Permit, key: KeyOrder<'_>) -> Result<NewSecret> {
        let tenant = permit.tenant();
        if tenant != permit.principal().tenant && self.parts.store.tenant(tenant).await?.is_none() {
            return Err(ControlError::NotFound { what: "tenant" });
        }
        make(&self.parts.store, tenant.to_owned(), key, permit.actor()).await
    }

    pub async fn list_keys(&self, permit: &Permit) -> Result<Vec<KeyRecord>> {
        Ok(self.parts.store.keys(permit.tenant()).await?)
    }

    pub async fn revoke_key(&self, permit: &Permit, id: &str) -> Result<()> {
        let event = self.event(permit, "key.revoked", id, json!({}));
        Ok(self.parts.store.revoke_key(permit.tenant().to_owned(), id.to_owned(), event).await?)
    }

    /// Who has this secret, or bears this token; or why nobody is recognised by it.
    pub async fn authenticate(&self, secret: &str) -> Result<std::result::Result<Principal, Unrecognised>> {
        if !secret.starts_with(PREFIX) {
            let is_token = cofferdam_identity::looks_like_token(secret);
            return if is_token { self.bearer(secret).await } else { Ok(Err(Unrecognised::Key)) };
        }
        let found = self.parts.store.key_by_hash(&hash(secret.as_bytes())).await?;
        let is_valid = |found: &FoundKey| {
            let key = &found.key;
            key.revoked_at_ms.is_none() && key.expires_at_ms.is_none_or(|expires| now_ms() < expires)
        };
        let Some(FoundKey { key, quotas }) = found.filter(is_valid) else {
            return Ok(Err(Unrecognised::Key));
        };
        self.parts.tenants.learn(&key.tenant, self.parts.settings.quotas.with(quotas));
        Ok(Ok(Principal {
            tenant: key.tenant,
            actor: key.id,
            agent: key.agent,
            scopes: key.scopes.split(' ').map(str::to_owned).collect(),
        }))
    }
}

async fn make(store: &Store, tenant: String, order: KeyOrder<'_>, actor: &str) -> Result<NewSecret> {
    let KeyOrder { name, scopes, agent, expires_at_ms } = order;
    check_name("name", name)?;
    if let Some(agent) = &agent {
        check_name("agent", agent)?;
    }
    let is_word =
        |scope: &String| (1..=64).contains(&scope.len()) && scope.bytes().all(|byte| byte.is_ascii_graphic());
    if scopes.is_empty() || scopes.len() > 64 || !scopes.iter().all(is_word) {
        return Err(ControlError::Invalid(InvalidValue::new(
            "scopes",
            scopes.join(" "),
            "give 1 to 64 scopes, each a word such as jobs:read",
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
        expires_at_ms,
    };
    let event = AuditEvent {
        at_ms: now_ms(),
        kind: "key.created",
        actor: actor.to_owned(),
        resource: id.clone(),
        details: json!({"name": name, "scopes": scopes, "expires_at": expires_at_ms.map(timestamp)}),
    };
    store.create_key(key, event).await?;
    Ok(NewSecret { id, secret })
}
