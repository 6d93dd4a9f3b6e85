//! Verbs on artifacts, what a job leaves and takes, and the sweep that keeps records and bytes together.

mod create;
mod delete;
mod finalize;
mod get;
mod inputs;
mod job;
mod link;
mod list;
mod read;
mod settings;
mod sweep;
mod upload;
mod view;

pub(crate) use inputs::{named, named_by};
pub use job::{ArtifactDesk, Reader};
pub(crate) use job::{Keeper, Owner};
pub use read::Download;
pub use settings::ArtifactSettings;
pub use upload::Upload;
pub use view::artifact_view;

use crate::{Control, ControlError, Keep, Result};
use cofferdam_artifacts::{LinkSigner, TicketSigner, Vault};
use cofferdam_policy::Denial;
use cofferdam_store::{ArtifactRecord, StoreError};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The end of the year 9999, which stands for the end of what is kept for ever.
const NEVER_MS: i64 = 253_402_300_799_000;

/// The part of the control plane that has to do with bytes.
#[derive(Debug)]
pub(crate) struct Artifacts {
    pub(crate) vault: Vault,
    signer: LinkSigner,
    pub(crate) tickets: TicketSigner,
    /// Artifacts that are being uploaded here: one writing at a time, so that nobody fills the place with several.
    uploading: Arc<Mutex<HashSet<String>>>,
    swept: Notify,
}

impl Artifacts {
    pub(crate) fn new(vault: Vault) -> Self {
        let signer = LinkSigner::new(vault.master());
        let tickets = TicketSigner::new(vault.master());
        Self { vault, signer, tickets, uploading: Arc::default(), swept: Notify::new() }
    }

    pub(crate) fn signer(&self) -> &LinkSigner {
        &self.signer
    }

    fn take_upload(&self, id: &str) -> Option<Uploading> {
        let mut ids = self.uploading.lock().unwrap_or_else(PoisonError::into_inner);
        ids.insert(id.to_owned()).then(|| Uploading { ids: Arc::clone(&self.uploading), id: id.to_owned() })
    }
}

/// Keeps others from uploading the same artifact, for as long as it lives.
#[derive(Debug)]
struct Uploading {
    ids: Arc<Mutex<HashSet<String>>>,
    id: String,
}

impl Drop for Uploading {
    fn drop(&mut self) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Control {
    /// What all artifacts of a tenant may take together.
    pub(crate) async fn artifact_quota(&self, tenant: &str) -> std::result::Result<i64, StoreError> {
        let own = self.parts.store.tenant(tenant).await?.map(|record| record.quotas).unwrap_or_default();
        let bytes = self.parts.settings.quotas.with(own).artifact_bytes;
        Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
    }

    pub(crate) fn artifacts(&self) -> Result<&Artifacts> {
        let none = || ControlError::Unavailable("this server has no artifact store".to_owned());
        self.parts.artifacts.as_ref().ok_or_else(none)
    }

    /// Whether the place of the artifacts answers.
    pub async fn check_artifacts(&self) -> Result<()> {
        Ok(self.artifacts()?.vault.check().await?)
    }

    /// An artifact of a tenant's; another's is not found.
    async fn artifact_record(&self, tenant: &str, id: &str) -> Result<ArtifactRecord> {
        let found = self.parts.store.artifact(tenant, id).await?;
        found.ok_or(ControlError::NotFound { what: "artifact" })
    }

    fn retained_until(&self, from_ms: i64) -> i64 {
        match self.parts.settings.artifacts.retention {
            Keep::For(time) => from_ms.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)),
            Keep::Forever => NEVER_MS,
        }
    }
}

/// What the store says when there is no room is a denial, with its reason.
pub(crate) fn over_quota(error: StoreError) -> ControlError {
    match error {
        StoreError::OverQuota { used, asked, limit } => ControlError::Denied(Denial {
            rule: "artifact_quota".to_owned(),
            why: format!("{used} of {limit} bytes for artifacts are used, and this has {asked}"),
            change: "delete artifacts, or ask the operator for a larger quota".to_owned(),
        }),
        other => other.into(),
    }
}
