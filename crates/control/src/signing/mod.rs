//! The keys that the service signs with: one that is current, and the public halves of those before it.
//!
//! They lie in a folder of their own, in one file that is only ever replaced whole. Whoever rotates writes the file;
//! a server that runs sees before each signature whether it was replaced. What is signed is not in the way of jobs.

mod file;
mod settings;

pub use file::{Rotated, SigningError, rotate_signing_key, sign_head, signing_key_list};
pub use settings::SigningSettings;

use crate::{Control, ControlError, Result};
use cofferdam_proof::{KeyList, SigningKey};
use file::{KeyFile, Version};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Keys, as they were last read.
#[derive(Debug)]
pub(crate) struct Signing {
    folder: Option<PathBuf>,
    last: Mutex<Option<(Version, Arc<Keys>)>>,
}

#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) current: SigningKey,
    pub(crate) list: KeyList,
}

impl Signing {
    /// Makes the first key where there is none.
    pub(crate) fn open(settings: &SigningSettings) -> std::result::Result<Self, SigningError> {
        if let Some(folder) = &settings.folder {
            KeyFile::open_or_make(folder)?;
        }
        Ok(Self { folder: settings.folder.clone(), last: Mutex::new(None) })
    }

    /// The keys as they are now.
    fn keys(&self) -> std::result::Result<Arc<Keys>, SigningError> {
        let folder = self.folder.as_deref().ok_or(SigningError::NoFolder)?;
        let version = KeyFile::version(folder)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, keys)) = &*last
            && *known == version
        {
            return Ok(Arc::clone(keys));
        }
        let keys = Arc::new(KeyFile::read(folder)?.keys(folder)?);
        *last = Some((version, Arc::clone(&keys)));
        Ok(keys)
    }
}

impl Control {
    pub(crate) fn signing(&self) -> Result<Arc<Keys>> {
        self.parts.signing.keys().map_err(|error| {
            // Where the keys lie is for the operator, not for a caller.
            tracing::error!(error = error.to_string(), "the signing keys cannot be read");
            ControlError::Unavailable("the service has no key to sign with".to_owned())
        })
    }

    /// The public halves of all keys. They are for everybody: without them nothing can be checked.
    pub fn signing_keys(&self) -> Result<KeyList> {
        Ok(self.signing()?.list.clone())
    }
}
