//! Keys: who a caller is. A secret is shown once and kept as a hash; it has 256 bits, so a quick hash is enough.

use crate::{Control, Result, ids, now_ms};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Permit, Principal};
use cofferdam_store::{AuditEvent, KeyRecord, NewKey, Store};
use serde_json::json;

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
        let key = self.parts.store.key_by_hash(&hash(secret.as_bytes())).await?;
        let is_valid = |key: &KeyRecord| {
            key.revoked_at_ms.is_none() && key.expires_at_ms.is_none_or(|expires| now_ms() < expires)
        };
        let key = key.filter(is_valid);
        key.iter().for_each(|key| self.note_key_use(key));
        Ok(key.map(|key| Principal {
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

const MAX_NAME_CHARACTERS: usize = 128;
const MAX_SCOPES: usize = 32;

/// What a key may be called and be for. The document says the same.
fn check(name: &str, scopes: &[String], agent: Option<&str>) -> std::result::Result<(), InvalidValue> {
    let is_long = |text: &str| text.is_empty() || text.chars().count() > MAX_NAME_CHARACTERS;
    if is_long(name) || name.chars().any(|c| c.is_ascii_control()) {
        let fix = "it must be 1 to 128 characters, none of them a control character";
        return Err(InvalidValue::new("name", name, fix));
    }
    if scopes.is_empty() || scopes.len() > MAX_SCOPES {
        return Err(InvalidValue::new("scopes", scopes.len().to_string(), "give 1 to 32 scopes"));
    }
    if let Some((i, scope)) = scopes.iter().enumerate().find(|(_, scope)| !is_scope(scope)) {
        let fix = "a scope is * or a pair such as jobs:read";
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
    text == "*" || text.split_once(':').is_some_and(|(what, how)| is_word(what) && is_word(how))
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
