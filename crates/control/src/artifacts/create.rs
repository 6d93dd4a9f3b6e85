//! `artifact.create`: a place for bytes that are about to be uploaded.

use super::over_quota;
use crate::{Control, ControlError, Result, ids, now_ms};
use cofferdam_api::{ArtifactRequest, SignedUrl};
use cofferdam_core::InvalidValue;
use cofferdam_policy::Permit;
use cofferdam_store::{Accepted, ArtifactRecord, Idempotency, NewArtifact};
use serde_json::json;

const MAX_NAME_BYTES: usize = 255;
const MAX_TYPE_BYTES: usize = 127;
const ANY_TYPE: &str = "application/octet-stream";

impl Control {
    /// Begins an artifact and says where its bytes go. They count from now on.
    pub async fn create_artifact(
        &self,
        permit: &Permit,
        request: ArtifactRequest,
        idempotency: Option<(String, String)>,
    ) -> Result<(ArtifactRecord, SignedUrl)> {
        self.artifacts()?;
        let settings = &self.parts.settings.artifacts;
        let ArtifactRequest { name, size_bytes, sha256, content_type } = request;
        check_name(&name)?;
        if size_bytes > settings.max_bytes {
            let fix = format!("an artifact may have at most {} bytes", settings.max_bytes);
            return Err(InvalidValue::new("size_bytes", size_bytes.to_string(), fix).into());
        }
        let sha256 = sha256.map(|text| check_sha256(&text)).transpose()?;
        let content_type = content_type.map_or(Ok(ANY_TYPE.to_owned()), check_type)?;
        let (id, now) = (ids::artifact()?.to_string(), now_ms());
        let details = json!({"name": name, "size_bytes": size_bytes, "sha256": sha256});
        let event = self.event(permit, "artifact.created", &id, details);
        let artifact = NewArtifact {
            id: id.clone(),
            tenant: permit.tenant().to_owned(),
            job: None,
            session: None,
            step: None,
            name,
            content_type,
            size_bytes: size_bytes as i64,
            sha256,
            attempt: None,
            created_at_ms: now,
            expires_at_ms: now + settings.upload_time.as_millis() as i64,
        };
        let named =
            idempotency.map(|(name, body_hash)| Idempotency { route: "POST /v1/artifacts", name, body_hash });
        let quota = self.artifact_quota(permit.tenant()).await?;
        let made = self.parts.store.create_artifact(artifact, quota, named, vec![event]).await;
        let id = match made.map_err(over_quota)? {
            Accepted::New { .. } => id,
            Accepted::Before { id } => id,
            Accepted::OtherBody => return Err(ControlError::IdempotencyConflict),
        };
        let record = self.artifact_record(permit.tenant(), &id).await?;
        let upload = self.sign_link(permit, "PUT", &record, record.expires_at_ms / 1000)?;
        Ok((record, upload))
    }
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = !name.chars().any(char::is_control);
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && is_plain {
        return Ok(());
    }
    let fix = "it must be 1 to 255 bytes of text without control characters";
    Err(InvalidValue::new("name", name.chars().take(80).collect::<String>(), fix).into())
}

/// As it is kept: in lower case.
pub(super) fn check_sha256(text: &str) -> Result<String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    let value = text.chars().take(80).collect::<String>();
    Err(InvalidValue::new("sha256", value, "it must be 64 hexadecimal digits").into())
}

/// A type and a subtype, perhaps with parameters; nothing that could end a header.
fn check_type(text: String) -> Result<String> {
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    let (essence, parameters) = text.split_once(';').unwrap_or((&text, ""));
    let is_type = essence
        .trim_end_matches(' ')
        .split_once('/')
        .is_some_and(|(kind, sub)| is_token(kind) && is_token(sub));
    let plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if is_type && text.len() <= MAX_TYPE_BYTES && parameters.bytes().all(plain) {
        return Ok(text);
    }
    let value = text.chars().take(80).collect::<String>();
    Err(InvalidValue::new("content_type", value, "it must be a media type such as text/csv").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_into_headers_and_lists_is_plain() {
        for name in ["a.txt", "ü b", "..", "a/b", "-rf", &"x".repeat(255)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "a\nb", "a\0", "\u{1b}[2J", &"x".repeat(256)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for text in ["text/plain", "text/csv; charset=utf-8", "application/vnd.a+json"] {
            assert!(check_type(text.to_owned()).is_ok(), "{text}");
        }
        for text in ["", "text", "text/", "/x", "text/plain\r\nA: b", "te xt/a", "text/ü", "text/a\n;b"] {
            assert!(check_type(text.to_owned()).is_err(), "{text:?}");
        }
        assert_eq!(check_sha256(&"AB".repeat(32)).ok(), Some("ab".repeat(32)));
        assert!(check_sha256("ab").is_err() && check_sha256(&"gg".repeat(32)).is_err());
    }
}
