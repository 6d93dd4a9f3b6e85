//! Keys: who a caller is. A secret is shown once and kept as a hash; it has 256 bits, so a quick hash is enough.

use crate::{Control, ControlError, Phase, Result, Unrecognised, ids, now_ms, timestamp};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Permit, Principal};
use cofferdam_store::{AuditEvent, FoundKey, KeyRecord, NewKey, Store};
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
            if !is_token {
                return Ok(Err(Unrecognised::Key));
            }
            self.pass_store_gate()?;
            return self.bearer(secret).await;
        }
        self.pass_store_gate()?;
        let began = Instant::now();
        let found = self.parts.store.key_by_hash(&hash(secret.as_bytes())).await?;
        self.parts.metrics.phase(Phase::Auth, began.elapsed());
        let is_valid = |found: &FoundKey| {
            let key = &found.key;
            key.revoked_at_ms.is_none() && key.expires_at_ms.is_none_or(|expires| now_ms() < expires)
        };
        let Some(FoundKey { key, quotas }) = found.filter(is_valid) else {
            return Ok(Err(Unrecognised::Key));
        };
        self.note_key_use(&key);
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
    check(name, scopes, agent.as_deref())?;
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

const MAX_NAME_CHARACTERS: usize = 128;
const MAX_SCOPES: usize = 32;

fn is_long(text: &str) -> bool {
    text.is_empty() || text.chars().count() > MAX_NAME_CHARACTERS
}

/// Names are shown in lists and logs, so they are short and in one line.
pub(crate) fn check_name(name: &str) -> std::result::Result<(), InvalidValue> {
    if is_long(name) || name.chars().any(|c| c.is_ascii_control()) {
        let fix = "it must be 1 to 128 characters, none of them a control character";
        return Err(InvalidValue::new("name", name, fix));
    }
    Ok(())
}

/// What a key may be called and be for. The document says the same.
fn check(name: &str, scopes: &[String], agent: Option<&str>) -> std::result::Result<(), InvalidValue> {
    check_name(name)?;
    if scopes.is_empty() || scopes.len() > MAX_SCOPES {
        return Err(InvalidValue::new("scopes", scopes.len().to_string(), "give 1 to 32 scopes"));
    }
    if let Some((i, scope)) = scopes.iter().enumerate().find(|(_, scope)| !is_scope(scope)) {
        let fix = "a scope is *, operator, or a pair such as jobs:read";
        return Err(InvalidValue::new(&format!("scopes[{i}]"), scope, fix));
    }
    if let Some(agent) = agent
        && (is_long(agent) || !agent.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        let fix = "it must be 1 to 128 visible ASCII characters, without spaces";
        return Err(InvalidValue::new("agent", agent, fix));
    }
    Ok(())
}

fn is_scope(text: &str) -> bool {
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
    text == "*"
        || text == OPERATOR
        || text.split_once(':').is_some_and(|(what, how)| is_word(what) && is_word(how))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_key_cannot_be_is_refused_with_its_field() {
        let scopes = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let good = scopes(&["jobs:read", "*"]);
        assert!(check("ci", &good, Some("reviewer")).is_ok());
        let field = |name: &str, scopes: &[String], agent| check(name, scopes, agent).unwrap_err().field;
        assert_eq!(field("", &good, None), "name");
        assert_eq!(field("a\0", &good, None), "name");
        assert_eq!(field(&"x".repeat(129), &good, None), "name");
        assert_eq!(field("ci", &[], None), "scopes");
        assert_eq!(field("ci", &scopes(&["*", "jobs:*"]), None), "scopes[1]");
        assert_eq!(field("ci", &good, Some("a b")), "agent");
    }
}
