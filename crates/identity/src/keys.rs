//! A set of keys (RFC 7517), each bound to one algorithm.

use crate::strict::Object;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

/// A set has few keys: those in use, and those before and after.
const MAX_KEYS: usize = 100;

/// Shorter secrets can be guessed, with one token to try them on.
const MIN_SECRET_BYTES: usize = 32;

const MIN_RSA_BYTES: usize = 256;

/// Whether secrets may be in a set. One that others can fetch has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    Allowed,
    Refused,
}

pub(crate) struct Key {
    pub(crate) id: Option<String>,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: DecodingKey,
}

#[derive(Default)]
pub(crate) struct KeySet(Vec<Key>);

impl KeySet {
    /// Reads a set. A key of a kind that is not used here is left out; one that is wrong fails the whole.
    pub(crate) fn parse(text: &[u8], secrets: Secrets) -> Result<Self, String> {
        let set: Object =
            serde_json::from_slice(text).map_err(|error| format!("it is not a JSON object: {error}"))?;
        let Some(Value::Array(list)) = set.0.get("keys") else {
            return Err("it has no list \"keys\"".to_owned());
        };
        if list.len() > MAX_KEYS {
            return Err(format!("it has {} keys, and may have {MAX_KEYS}", list.len()));
        }
        let mut keys: Vec<Key> = Vec::new();
        for (at, key) in list.iter().enumerate() {
            let key: Object =
                serde_json::from_value(key.clone()).map_err(|error| format!("keys[{at}]: {error}"))?;
            let Some(key) = parse_key(&key, secrets).map_err(|error| format!("keys[{at}]: {error}"))? else {
                continue;
            };
            if keys.iter().any(|other| other.id == key.id) {
                return Err(format!("keys[{at}]: another key has the same kid"));
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err("it has no key for RS256, ES256, EdDSA or HS256".to_owned());
        }
        Ok(Self(keys))
    }

    /// The key of that name; without a name, the only key that there is.
    pub(crate) fn find(&self, id: Option<&str>) -> Option<&Key> {
        match (id, self.0.as_slice()) {
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn parse_key(key: &Object, secrets: Secrets) -> Result<Option<Key>, String> {
    let kind = key.text("kty").ok_or("it has no kty")?;
    let is_for_signatures = key.0.get("use").is_none_or(|value| value == "sig");
    let is_for_checking = match key.0.get("key_ops") {
        None => true,
        Some(Value::Array(uses)) => uses.iter().any(|name| name == "verify"),
        Some(_) => return Err("key_ops is not a list".to_owned()),
    };
    let algorithm = match (kind, key.text("crv")) {
        ("RSA", _) => Algorithm::RS256,
        ("EC", Some("P-256")) => Algorithm::ES256,
        ("OKP", Some("Ed25519")) => Algorithm::EdDSA,
        ("oct", _) => Algorithm::HS256,
        _ => return Ok(None),
    };
    let is_ours = key.0.get("alg").is_none_or(|named| named == name(algorithm));
    if !is_ours || !is_for_signatures || !is_for_checking {
        return Ok(None);
    }
    if kind == "oct" && secrets == Secrets::Refused {
        return Err("it is a secret, and the set is fetched from an address; use a file".to_owned());
    }
    let bytes = |field: &str| -> Result<Vec<u8>, String> {
        let text = key.text(field).ok_or_else(|| format!("it has no {field}"))?;
        URL_SAFE_NO_PAD.decode(text).map_err(|_| format!("{field} is not base64url"))
    };
    let decoding = match algorithm {
        Algorithm::RS256 => {
            let (n, e) = (bytes("n")?, bytes("e")?);
            if n.len() < MIN_RSA_BYTES {
                return Err(format!("its modulus has {} bits, and needs 2048", n.len() * 8));
            }
            DecodingKey::from_rsa_raw_components(&n, &e)
        }
        Algorithm::ES256 => {
            let (x, y) = (bytes("x")?, bytes("y")?);
            if x.len() != 32 || y.len() != 32 {
                return Err("x and y have to have 32 bytes each".to_owned());
            }
            // The point, uncompressed.
            let point: Vec<u8> = [0x04].into_iter().chain(x).chain(y).collect();
            DecodingKey::from_ec_der(&point)
        }
        Algorithm::EdDSA => {
            let x = bytes("x")?;
            if x.len() != 32 {
                return Err("x has to have 32 bytes".to_owned());
            }
            DecodingKey::from_ed_der(&x)
        }
        _ => {
            let secret = bytes("k")?;
            if secret.len() < MIN_SECRET_BYTES {
                return Err(format!("its secret has {} bytes, and needs {MIN_SECRET_BYTES}", secret.len()));
            }
            DecodingKey::from_secret(&secret)
        }
    };
    Ok(Some(Key { id: key.text("kid").map(str::to_owned), algorithm, key: decoding }))
}

/// As it is written in a token.
pub(crate) fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::HS256 => "HS256",
        Algorithm::RS256 => "RS256",
        Algorithm::ES256 => "ES256",
        Algorithm::EdDSA => "EdDSA",
        _ => "none of ours",
    }
}
