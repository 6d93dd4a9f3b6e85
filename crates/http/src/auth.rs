//! Who asks: a key, in `X-API-Key` or as a bearer token, or a JWT as a bearer token.

use crate::answer::{Answer, Problem};
use crate::guesses::Peer;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use cofferdam_api::ErrorCode;
use cofferdam_control::{Control, Unrecognised};
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
        let found = match secret(&parts.headers) {
            Secret::Given(secret) => control.authenticate(secret).await?,
            Secret::Missing if is_of_this_machine(&parts.headers) => {
                control.without_key().await?.ok_or(Unrecognised::Key)
            }
            // What is given and cannot be read is wrong, not missing.
            Secret::Missing | Secret::Unreadable => Err(Unrecognised::Key),
        };
        let principal = match (found, parts.extensions.get::<Peer>()) {
            (Ok(principal), _) => principal,
            (Err(why), None) => return Err(unrecognised(why)),
            (Err(why), Some(peer)) => {
                peer.count_wrong()?;
                return Err(unrecognised(why));
            }
        };
        control.count_request(&principal)?;
        Ok(Self(principal))
    }
}

fn unrecognised(why: Unrecognised) -> Problem {
    let (message, fix) = match why {
        Unrecognised::Key => (
            "there is no valid key with the request".to_owned(),
            "send a valid key as X-API-Key, or as Authorization: Bearer",
        ),
        Unrecognised::Token(error) => (error.to_string(), "get a new token from the issuer"),
        Unrecognised::Tenant => {
            ("the token's tenant is not known here".to_owned(), "ask the operator to make the tenant")
        }
    };
    Problem::new(ErrorCode::Unauthenticated, message, fix)
}

enum Secret<'h> {
    Missing,
    Unreadable,
    Given(&'h str),
}

/// The key or token with which a request came, if it did.
pub(crate) fn given_secret(headers: &HeaderMap) -> Option<String> {
    match secret(headers) {
        Secret::Given(secret) => Some(secret.to_owned()),
        Secret::Missing | Secret::Unreadable => None,
    }
}

fn secret(headers: &HeaderMap) -> Secret<'_> {
    if let Some(value) = headers.get("x-api-key") {
        return value.to_str().map_or(Secret::Unreadable, Secret::Given);
    }
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Secret::Missing };
    let bearer = value.to_str().ok().and_then(|text| text.split_once(' '));
    match bearer {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Secret::Given(token.trim()),
        _ => Secret::Unreadable,
    }
}

/// Whether a request without a key was meant for this machine by a program on it. A page in a browser can be made to
/// ask loopback, too; but it says where it is from, or calls us by another name.
pub(crate) fn is_of_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_local = ["localhost", "127.0.0.1", "[::1]"].contains(&name);
    is_local && !headers.contains_key(header::ORIGIN) && !headers.contains_key("sec-fetch-site")
}
