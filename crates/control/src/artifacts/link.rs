//! `artifact.link`: an address that allows one thing with one artifact until a time, to whoever has it.
//!
//! A link is worth no more than the key that made it: when that is taken back, so are its links.

use crate::{Control, ControlError, Result, now_ms, timestamp};
use cofferdam_api::{LinkRequest, SignedUrl};
use cofferdam_artifacts::{Link, LinkRefused};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Action, Denial, Permit, Principal};
use cofferdam_store::{ArtifactRecord, ArtifactState};

/// Keys are noted so as actors; whatever else one may be has nothing that could be taken back here.
const KEY: &str = "key-";

impl Control {
    /// Makes an address from which a readable artifact can be read.
    pub async fn link_artifact(&self, permit: &Permit, id: &str, request: &LinkRequest) -> Result<SignedUrl> {
        let settings = &self.parts.settings.artifacts;
        let method = match request.method.as_deref() {
            None | Some("GET") => "GET",
            Some("HEAD") => "HEAD",
            Some(other) => return Err(InvalidValue::new("method", other, "it must be GET or HEAD").into()),
        };
        let most = settings.link_time_max.as_secs();
        let seconds = request.ttl_seconds.unwrap_or(settings.link_time.as_secs().min(most));
        if !(1..=most).contains(&seconds) {
            let fix = format!("it must be a whole number from 1 to {most}");
            return Err(InvalidValue::new("ttl_seconds", seconds.to_string(), fix).into());
        }
        let record = self.artifact_record(permit.tenant(), id).await?;
        if record.state != ArtifactState::Ready {
            return Err(ControlError::Conflict { text: "the artifact is uploading".to_owned() });
        }
        self.sign_link(permit, method, &record, now_ms() / 1000 + seconds as i64)
    }

    pub(super) fn sign_link(
        &self,
        permit: &Permit,
        method: &'static str,
        record: &ArtifactRecord,
        expires_at: i64,
    ) -> Result<SignedUrl> {
        let link = Link {
            method: method.to_owned(),
            artifact: record.id.clone(),
            expires_at: expires_at.max(0) as u64,
            size: record.size_bytes as u64,
            by: permit.actor().to_owned(),
        };
        let query = self.artifacts()?.signer.sign(&link);
        let part = if method == "PUT" { "upload" } else { "content" };
        Ok(SignedUrl {
            method: link.method,
            url: format!("/v1/artifacts/{}/{part}?{query}", record.id),
            expires_at: timestamp(expires_at * 1000),
        })
    }

    /// Who comes with a link: its maker, with no right but the one that the link is for.
    pub async fn follow_link(&self, method: &str, id: &str, query: &str) -> Result<(Permit, ArtifactRecord)> {
        let seconds = (now_ms() / 1000).max(0) as u64;
        let link = self.artifacts()?.signer.verify(method, id, query, seconds).map_err(refused)?;
        // Believed from here on: nobody without a good link learns what there is.
        let record = self.parts.store.artifact_of_anyone(id).await?;
        let record = record.ok_or(ControlError::NotFound { what: "artifact" })?;
        let is_key = link.by.starts_with(KEY);
        if is_key && !self.parts.store.is_key_valid(&record.tenant, &link.by, now_ms()).await? {
            return Err(denied("the key that made the link was taken back", "ask for a new link"));
        }
        if record.size_bytes as u64 != link.size {
            return Err(refused(LinkRefused::Wrong));
        }
        let (action, scope) = match method {
            "PUT" => (Action::ArtifactCreate, "artifacts:write"),
            _ => (Action::ArtifactGet, "artifacts:read"),
        };
        let (actor, scopes) = (format!("{} by link", link.by), vec![scope.to_owned()]);
        let maker = Principal { tenant: record.tenant.clone(), actor, agent: None, scopes };
        Ok((self.permit(&maker, action, &record.tenant, None).await?, record))
    }
}

fn refused(reason: LinkRefused) -> ControlError {
    denied(&reason.to_string(), "ask for a new link, and use it as it is")
}

fn denied(why: &str, change: &str) -> ControlError {
    ControlError::Denied(Denial { rule: "link".to_owned(), why: why.to_owned(), change: change.to_owned() })
}
