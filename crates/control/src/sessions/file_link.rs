//! Addresses that allow one thing with one file of a session until a time, to whoever has them.
//!
//! As with those of artifacts, one is worth no more than the key that made it, and dies with the session.

use super::files::{parse, refused};
use crate::{Control, ControlError, Result, now_ms, timestamp};
use cofferdam_api::{FileKind, FileLinkRequest, SignedUrl};
use cofferdam_artifacts::{Link, LinkRefused};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Action, Denial, Permit, Principal};
use serde_json::json;
use std::fmt::Write;

/// Keys are noted so as actors; whatever else one may be has nothing that could be taken back here.
const KEY: &str = "key-";

/// What a link allows: a method on a path, and for an upload how many bytes it may have.
#[derive(Debug)]
pub struct FollowedFileLink {
    pub permit: Permit,
    pub path: String,
    pub size_bytes: u64,
}

impl Control {
    /// What somebody has to be allowed who asks for an address with this method.
    pub fn file_link_action(method: Option<&str>) -> Result<Action> {
        match method {
            None | Some("GET" | "HEAD") => Ok(Action::FileRead),
            Some("PUT") => Ok(Action::FileWrite),
            Some(other) => Err(InvalidValue::new("method", other, "it must be GET, HEAD or PUT").into()),
        }
    }

    pub async fn link_file(
        &self,
        permit: &Permit,
        session: &str,
        request: &FileLinkRequest,
    ) -> Result<SignedUrl> {
        let settings = &self.parts.settings.artifacts;
        let method = request.method.as_deref().unwrap_or("GET");
        let most = settings.link_time_max.as_secs();
        let seconds = request.ttl_seconds.unwrap_or(settings.link_time.as_secs().min(most));
        if !(1..=most).contains(&seconds) {
            let fix = format!("it must be a whole number from 1 to {most}");
            return Err(InvalidValue::new("ttl_seconds", seconds.to_string(), fix).into());
        }
        let path = parse("path", &request.path)?;
        let size = match (method, request.size_bytes) {
            ("PUT", Some(size)) if (1..=settings.max_bytes).contains(&size) => size,
            ("PUT", size) => {
                let fix = format!("say how many bytes may be uploaded, from 1 to {}", settings.max_bytes);
                let value = size.map(|size| size.to_string()).unwrap_or_default();
                return Err(InvalidValue::new("size_bytes", value, fix).into());
            }
            (_, Some(size)) => {
                return Err(InvalidValue::new("size_bytes", size.to_string(), "it is for PUT only").into());
            }
            (_, None) => 0,
        };
        let kind = if method == "PUT" { "file.written" } else { "file.read" };
        let details = json!({"path": path.as_str(), "verb": "url", "method": method});
        let at = self.reach_file(permit, session, kind, details).await?;
        if method != "PUT" {
            let info = at.sessions()?.stat_file(&at.placed, &path).await.map_err(refused)?;
            if info.kind != FileKind::File {
                return Err(InvalidValue::new("path", path.as_str(), "it is not a plain file").into());
            }
        }
        let expires_at = now_ms() / 1000 + seconds as i64;
        let link = Link {
            method: method.to_owned(),
            artifact: resource(session, path.as_str()),
            expires_at: expires_at.max(0) as u64,
            size,
            by: permit.actor().to_owned(),
        };
        let query = self.artifacts()?.signer().sign(&link);
        Ok(SignedUrl {
            method: link.method,
            url: format!("/v1/sessions/{session}/files/signed?path={}&{query}", encoded(path.as_str())),
            expires_at: timestamp(expires_at * 1000),
        })
    }

    /// Who comes with such an address: its maker, with no right but the one that it is for.
    pub async fn follow_file_link(
        &self,
        method: &str,
        session: &str,
        query: &str,
    ) -> Result<FollowedFileLink> {
        let wrong = || denied(&LinkRefused::Wrong.to_string());
        let (path, rest) =
            query.strip_prefix("path=").and_then(|rest| rest.split_once('&')).ok_or_else(wrong)?;
        // There is one way to write a link, so one that is written otherwise was changed.
        let path = decoded(path).filter(|plain| encoded(plain) == path).ok_or_else(wrong)?;
        let seconds = (now_ms() / 1000).max(0) as u64;
        let signer = self.artifacts()?.signer();
        let link = signer.verify(method, &resource(session, &path), rest, seconds);
        let link = link.map_err(|refused| denied(&refused.to_string()))?;
        // Believed from here on: nobody without a good link learns what there is.
        let record = self.parts.store.session_of_anyone(session).await?;
        let tenant = record.ok_or(ControlError::NotFound { what: "session" })?.tenant;
        if link.by.starts_with(KEY) && !self.parts.store.is_key_valid(&tenant, &link.by, now_ms()).await? {
            return Err(denied("the key that made the link was taken back"));
        }
        let (action, scope) = match method {
            "PUT" => (Action::FileWrite, "sessions:write"),
            _ => (Action::FileRead, "sessions:read"),
        };
        let (actor, scopes) = (format!("{} by link", link.by), vec![scope.to_owned()]);
        let maker = Principal { tenant: tenant.clone(), actor, agent: None, scopes };
        let permit = self.permit(&maker, action, &tenant, None).await?;
        Ok(FollowedFileLink { permit, path, size_bytes: link.size })
    }
}

/// No id of an artifact has a space in it.
fn resource(session: &str, path: &str) -> String {
    format!("{session} {path}")
}

fn denied(why: &str) -> ControlError {
    let change = "ask for a new link, and use it as it is".to_owned();
    ControlError::Denied(Denial { rule: "link".to_owned(), why: why.to_owned(), change })
}

pub(super) fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'~' | b'/' => text.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => text.push(byte.into()),
            // Writing to a text does not fail.
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_in_one_way() {
        for path in ["/workspace/a.txt", "/workspace/ü b%&=+?#", "/workspace/line\nbreak"] {
            assert_eq!(decoded(&encoded(path)).as_deref(), Some(path));
        }
        for text in ["%", "%4", "%zz", "%ff", "a%2"] {
            assert!(decoded(text).is_none_or(|plain| encoded(&plain) != text), "{text}");
        }
        assert_ne!(encoded(&decoded("%61").expect("a letter")), "%61");
    }
}
