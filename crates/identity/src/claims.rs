//! What a token says, once its signature is right.

use crate::error::TokenError;
use crate::settings::JwtSettings;
use crate::strict::Object;
use serde_json::Value;

/// Who bears a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// By its id or its name.
    pub tenant: String,
    pub agent: Option<String>,
    pub scopes: Vec<String>,
    /// Who the issuer says that it is, for the audit.
    pub subject: Option<String>,
    /// Seconds since 1970.
    pub expires_at: i64,
}

/// Names in claims are shown in lists and logs.
const MAX_NAME_BYTES: usize = 128;
const MAX_SCOPES: usize = 64;

/// The year 2255; beyond is a mistake, or an attack on somebody's arithmetic.
const MAX_TIME: i64 = 9_000_000_000;

pub(crate) fn read(claims: &Object, settings: &JwtSettings, now: i64) -> Result<Bearer, TokenError> {
    let leeway = settings.leeway.as_secs() as i64;
    let expires_at = time(claims, "exp")?.ok_or_else(|| TokenError::Claim("exp".to_owned()))?;
    if now >= expires_at.saturating_add(leeway) {
        return Err(TokenError::Expired);
    }
    for name in ["nbf", "iat"] {
        if time(claims, name)?.is_some_and(|time| time > now.saturating_add(leeway)) {
            return Err(TokenError::TooEarly);
        }
    }
    if claims.text("iss") != Some(&settings.issuer) {
        return Err(TokenError::Issuer);
    }
    let is_ours = match claims.0.get("aud") {
        Some(Value::String(one)) => *one == settings.audience,
        Some(Value::Array(all)) => {
            all.iter().all(Value::is_string) && all.iter().any(|one| *one == *settings.audience)
        }
        _ => false,
    };
    if !is_ours {
        return Err(TokenError::Audience);
    }
    let names = &settings.names;
    let scopes = scopes(claims, &names.scope)?;
    if !settings.allow_operator && scopes.iter().any(|scope| scope == "operator") {
        return Err(TokenError::Claim(names.scope.clone()));
    }
    Ok(Bearer {
        tenant: word(claims, &names.tenant)?.ok_or_else(|| TokenError::Claim(names.tenant.clone()))?,
        agent: word(claims, &names.agent)?,
        scopes,
        subject: word(claims, "sub")?,
        expires_at,
    })
}

/// A whole number of seconds, if it is there.
fn time(claims: &Object, name: &str) -> Result<Option<i64>, TokenError> {
    match claims.0.get(name) {
        None => Ok(None),
        Some(value) => {
            let time = value.as_i64().filter(|time| (0..=MAX_TIME).contains(time));
            time.map(Some).ok_or_else(|| TokenError::Claim(name.to_owned()))
        }
    }
}

fn word(claims: &Object, name: &str) -> Result<Option<String>, TokenError> {
    let Some(value) = claims.0.get(name) else { return Ok(None) };
    let text = value.as_str().filter(|text| {
        !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.chars().any(char::is_control)
    });
    text.map(|text| Some(text.to_owned())).ok_or_else(|| TokenError::Claim(name.to_owned()))
}

/// Words in one text, or a list of them. Without the claim there are none, and nothing is allowed.
fn scopes(claims: &Object, name: &str) -> Result<Vec<String>, TokenError> {
    let wrong = || TokenError::Claim(name.to_owned());
    let scopes: Vec<String> = match claims.0.get(name) {
        None => Vec::new(),
        Some(Value::String(text)) => {
            text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }
        Some(Value::Array(list)) => {
            let words = list.iter().map(|word| word.as_str().map(str::to_owned).ok_or_else(wrong));
            words.collect::<Result<_, _>>()?
        }
        Some(_) => return Err(wrong()),
    };
    let is_word = |word: &String| {
        (1..=MAX_NAME_BYTES).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if scopes.len() > MAX_SCOPES || !scopes.iter().all(is_word) {
        return Err(wrong());
    }
    Ok(scopes)
}
