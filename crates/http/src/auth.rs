//! Who asks: a key, in `X-API-Key` or as a bearer token.

use crate::answer::{Answer, Problem};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use cofferdam_api::ErrorCode;
use cofferdam_control::Control;
use cofferdam_policy::{Action, Permit, Principal};

/// A caller whose key is valid.
pub(crate) struct Caller(pub(crate) Principal);

impl Caller {
    /// Asks for a permit for something of the caller's own tenant.
    pub(crate) async fn permit(&self, control: &Control, action: Action) -> Answer<Permit> {
        Ok(control.permit(&self.0, action, &self.0.tenant, None).await?)
    }
}

impl FromRequestParts<Control> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, Problem> {
        let missing = || {
            let fix = "send a valid key as X-API-Key, or as Authorization: Bearer";
            Problem::new(ErrorCode::Unauthenticated, "there is no valid key with the request", fix)
        };
        let secret = secret(&parts.headers).ok_or_else(missing)?;
        let principal = control.authenticate(secret).await?;
        let principal = principal.ok_or_else(missing)?;
        control.count_request(&principal)?;
        Ok(Self(principal))
    }
}

fn secret(headers: &HeaderMap) -> Option<&str> {
    let plain = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    let bearer = || headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ");
    plain.or_else(bearer)
}
