//! An image in use: its layers cannot be removed meanwhile.

use super::Store;
use super::lock::Lock;
use super::record::{Index, Record};
use crate::{Digest, ImageError, ImageRef, Result};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Holds an image's layers in the store, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lease {
    pub image: Record,
    /// Folders of the layers, the uppermost first; each is there once.
    pub layers: Vec<PathBuf>,
    _locks: Vec<Lock>,
}

impl Store {
    /// Takes an image into use.
    pub fn open(&self, wanted: &ImageRef) -> Result<Lease> {
        let image = self.record(self.resolve(&Index::read(self)?, wanted)?)?;
        let mut seen = HashSet::new();
        let (mut layers, mut locks) = (Vec::new(), Vec::new());
        for layer in image.layers.iter().rev() {
            // A layer that comes again says nothing that its upper place does not say.
            if !seen.insert(layer.diff_id) {
                continue;
            }
            locks.push(self.hold(layer.diff_id)?.ok_or_else(|| ImageError::NotFound {
                name: image.id.to_string(),
                folder: self.folder.clone(),
            })?);
            layers.push(self.layer_path(layer.diff_id).join("root"));
        }
        Ok(Lease { image, layers, _locks: locks })
    }

    /// Holds a layer, if it is there.
    pub(super) fn hold(&self, layer: Digest) -> Result<Option<Lock>> {
        let path = self.layer_path(layer);
        match Lock::shared(&path) {
            Ok(lock) => Ok(lock.filter(|lock| lock.is_at(&path))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("locking a layer", error)),
        }
    }
}
