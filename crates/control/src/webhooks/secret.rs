//! The secrets of webhooks as they lie in the database: sealed under the master key, which is not there. Each is bound
//! to its URL, so that whoever can write to the database cannot have it used for another.

use crate::{Control, Result};
use cofferdam_artifacts::{ArtifactError, MasterKey};

/// How a sealed one begins; those of before have no such word, and are used as they are.
pub(crate) const SEALED: &str = "sealed-1:";

pub(crate) fn about(url: &str) -> Vec<u8> {
    format!("cofferdam webhook 1\0{url}").into_bytes()
}

impl Control {
    fn master(&self) -> Option<&MasterKey> {
        self.parts.artifacts.as_ref().map(|artifacts| artifacts.vault.master())
    }

    /// What is kept in the place of a secret. A server without a place for artifacts has no master key, and keeps it as
    /// it is.
    pub(super) fn seal_webhook(&self, url: &str, secret: String) -> Result<String> {
        match self.master() {
            Some(master) => Ok(format!("{SEALED}{}", master.seal_secret(&secret, &about(url))?)),
            None => Ok(secret),
        }
    }

    /// The secret itself.
    pub(super) fn open_webhook(&self, url: &str, kept: &str) -> Result<String> {
        match (kept.strip_prefix(SEALED), self.master()) {
            (None, _) => Ok(kept.to_owned()),
            (Some(sealed), Some(master)) => Ok(master.open_secret(sealed, &about(url))?.to_string()),
            (Some(_), None) => Err(ArtifactError::WrongMasterKey.into()),
        }
    }
}
