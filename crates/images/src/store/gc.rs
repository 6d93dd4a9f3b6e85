//! Removing names, and what nothing refers to any more.

use super::Store;
use super::lock::Lock;
use super::record::Index;
use crate::{Digest, ImageError, ImageRef, Result};
use serde::Serialize;
use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;

/// What a removal did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    pub names: Vec<String>,
    pub images: Vec<Digest>,
    pub layers: u64,
    pub size_bytes: u64,
    /// Layers that a sandbox uses; they go with the next removal or import after its end.
    pub layers_in_use: u64,
    /// The image has no name any more and stays: a service has registered it.
    pub is_kept: bool,
}

impl Store {
    /// Removes a name, or with a digest all names of an image; then whatever nothing refers to.
    pub fn remove(&self, wanted: &ImageRef) -> Result<Removed> {
        let mut removed = Removed::default();
        let lock = self.lock()?;
        let mut index = Index::read(self)?;
        let id = self.resolve(&index, wanted)?;
        removed.names = match wanted {
            ImageRef::Name(name) => vec![name.to_string()],
            ImageRef::Pinned(_) | ImageRef::Digits(_) => index.names_of(id),
        };
        index.names.retain(|name, _| !removed.names.contains(name));
        index.write(self)?;
        removed.is_kept = index.names_of(id).is_empty() && self.pinned()?.contains(&id);
        self.collect(&index, &mut removed)?;
        drop(lock);
        self.sweep_staging()?;
        Ok(removed)
    }

    /// Removes images without a name that nobody keeps, and layers without an image. The caller holds the store's lock.
    pub(super) fn collect(&self, index: &Index, removed: &mut Removed) -> Result<()> {
        let failed = |error| self.failed("removing what is not used", error);
        let mut named: HashSet<Digest> = index.names.values().copied().collect();
        named.extend(self.pinned()?);
        for id in self.digests("images")? {
            if !named.contains(&id) {
                fs::remove_file(self.record_path(id)).map_err(failed)?;
                removed.images.push(id);
            }
        }
        let mut used = HashSet::new();
        for id in named {
            used.extend(self.record(id)?.layers.iter().map(|layer| layer.diff_id));
        }
        for layer in self.digests("layers")? {
            if !used.contains(&layer) {
                self.remove_layer(layer, removed)?;
            }
        }
        Ok(())
    }

    fn remove_layer(&self, layer: Digest, removed: &mut Removed) -> Result<()> {
        let failed = |error| self.failed("removing what is not used", error);
        let path = self.layer_path(layer);
        let Some(_lock) = Lock::try_exclusive(&path).map_err(failed)? else {
            removed.layers_in_use += 1;
            return Ok(());
        };
        // Out of sight first: half a layer must never be found under its name.
        let gone = self.stage()?;
        let size = self.layer_record(layer).map_or(0, |record| record.size_bytes);
        fs::rename(&path, gone.path().join("layer")).map_err(failed)?;
        removed.layers += 1;
        removed.size_bytes += size;
        Ok(())
    }

    /// The digests that files or folders of the store are named by.
    pub(super) fn digests(&self, folder: &'static str) -> Result<Vec<Digest>> {
        let failed = |error| self.failed("looking through it", error);
        let entries = match fs::read_dir(self.folder.join(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed)?,
        };
        let mut digests = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name().into_string().unwrap_or_default();
            let hex = name.strip_suffix(".json").unwrap_or(&name);
            // What is named otherwise is not ours to remove.
            digests.extend(Digest::parse("digest", &format!("sha256:{hex}")));
        }
        Ok(digests)
    }

    /// Removes whatever nothing refers to, as every change of the store does.
    pub(super) fn collect_now(&self) -> Result<Removed> {
        let mut removed = Removed::default();
        let _lock = self.lock()?;
        match Index::read(self).and_then(|index| self.collect(&index, &mut removed)) {
            // An image whose record is gone: nothing can be told to be unused.
            Err(ImageError::NotFound { .. }) | Ok(()) => Ok(removed),
            Err(error) => Err(error),
        }
    }
}
