//! Checking a token.

use crate::claims::{self, Bearer};
use crate::error::TokenError;
use crate::keys::{Key, KeySet, name};
use crate::provider;
use crate::settings::JwtSettings;
use crate::source::Source;
use crate::strict::Object;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A longer token is not worth the work of checking it.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// What a header may not bring along: keys, addresses of keys, and meanings that are not known here.
const REFUSED: [&str; 8] = ["jwk", "jku", "x5u", "x5c", "crit", "b64", "zip", "enc"];

/// Checks tokens against the keys of one issuer.
pub struct Verifier {
    settings: JwtSettings,
    source: Arc<Source>,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Verifier {
    /// Gets the keys ready. What is wrong with a file of keys, or with an address, is said here.
    pub async fn open(settings: JwtSettings) -> Result<Self, TokenError> {
        provider::install();
        let source = Source::open(settings.jwks.clone()).await.map_err(TokenError::Keys)?;
        Ok(Self { settings, source })
    }

    #[cfg(test)]
    pub(crate) fn with_pause(self, pause: std::time::Duration) -> Self {
        Self { source: self.source.with_pause(pause), ..self }
    }

    /// Who bears a token, or why it is not believed.
    pub async fn verify(&self, token: &str) -> Result<Bearer, TokenError> {
        let header = header(token)?;
        let keys = match self.source.keys() {
            Ok(keys) => keys,
            Err(_) if self.source.look_again().await => self.source.keys().map_err(TokenError::Keys)?,
            Err(error) => return Err(TokenError::Keys(error)),
        };
        match keys.find(header.kid.as_deref()) {
            Some(key) => self.check(token, &header, key),
            None => {
                // The issuer may have new keys.
                if !self.source.look_again().await {
                    return Err(TokenError::UnknownKey);
                }
                let keys: Arc<KeySet> = self.source.keys().map_err(TokenError::Keys)?;
                let key = keys.find(header.kid.as_deref()).ok_or(TokenError::UnknownKey)?;
                self.check(token, &header, key)
            }
        }
    }

    fn check(&self, token: &str, header: &Header, key: &Key) -> Result<Bearer, TokenError> {
        if header.alg != name(key.algorithm) {
            return Err(TokenError::Algorithm);
        }
        // The signature here; the claims below, where their types are looked at as well.
        let mut validation = Validation::new(key.algorithm);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        let claims: Object =
            decode(token, &key.key, &validation).map(|data| data.claims).map_err(|error| {
                match error.kind() {
                    ErrorKind::InvalidSignature => TokenError::Signature,
                    ErrorKind::InvalidAlgorithm => TokenError::Algorithm,
                    _ => TokenError::Malformed,
                }
            })?;
        claims::read(&claims, &self.settings, now())
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

struct Header {
    alg: String,
    kid: Option<String>,
}

fn header(token: &str) -> Result<Header, TokenError> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(TokenError::TooLong);
    }
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed);
    };
    if head.is_empty() || body.is_empty() || signature.is_empty() {
        return Err(TokenError::Malformed);
    }
    let bytes = URL_SAFE_NO_PAD.decode(head).map_err(|_| TokenError::Malformed)?;
    let fields: Object = serde_json::from_slice(&bytes).map_err(|_| TokenError::Malformed)?;
    if let Some(refused) = REFUSED.into_iter().find(|name| fields.0.contains_key(*name)) {
        return Err(TokenError::Header(refused));
    }
    let is_token = match fields.0.get("typ") {
        None => true,
        Some(typ) => {
            typ.as_str().is_some_and(|typ| ["jwt", "at+jwt"].contains(&typ.to_ascii_lowercase().as_str()))
        }
    };
    if !is_token {
        return Err(TokenError::Header("another typ than JWT"));
    }
    let alg = fields.text("alg").ok_or(TokenError::Malformed)?.to_owned();
    let kid = match fields.0.get("kid") {
        None => None,
        Some(kid) => Some(kid.as_str().ok_or(TokenError::Malformed)?.to_owned()),
    };
    Ok(Header { alg, kid })
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
