//! Callers with a token in the place of a key.

use crate::{Control, Result};
use cofferdam_core::TenantId;
use cofferdam_identity::{Bearer, TokenError};
use cofferdam_policy::Principal;

/// Why a caller was not recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unrecognised {
    /// No such key, or one that was taken back or is too old.
    Key,
    Token(TokenError),
    /// The token is right, and there is no such tenant.
    Tenant,
}

impl Control {
    /// Who bears a token. Its tenant is named by id or by name, and has to be there.
    pub(crate) async fn bearer(&self, token: &str) -> Result<std::result::Result<Principal, Unrecognised>> {
        let Some(verifier) = &self.parts.tokens else { return Ok(Err(Unrecognised::Key)) };
        let Bearer { tenant, agent, scopes, subject, expires_at: _ } = match verifier.verify(token).await {
            Ok(bearer) => bearer,
            Err(error) => return Ok(Err(Unrecognised::Token(error))),
        };
        let store = &self.parts.store;
        let found = match TenantId::parse("tenant", &tenant) {
            Ok(id) => store.tenant(id.as_str()).await?,
            Err(_) => store.tenant_by_name(&tenant).await?,
        };
        let Some(found) = found else { return Ok(Err(Unrecognised::Tenant)) };
        self.parts.tenants.learn(&found.id, self.parts.settings.quotas.with(found.quotas));
        let actor = format!("jwt:{}", subject.as_deref().unwrap_or("-"));
        Ok(Ok(Principal { tenant: found.id, actor, agent, scopes }))
    }
}
