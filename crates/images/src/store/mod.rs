//! The store: a folder of layers, images and names.
//!
//! ```text
//! index.json              names, each with the digest of its image
//! images/HEX.json         an image: its configuration and its layers
//! layers/HEX/root         a layer, unpacked
//! layers/HEX/layer.json   what it took
//! downloads/HEX           a blob on its way from a registry; it goes on from here when it was cut
//! pins/KEEPER/HEX         an image that a service keeps, whatever names it has
//! staging/N/              what is being made; its lock is held for as long
//! lock                    held by who changes names, images or the list of layers
//! ```
//!
//! Nothing is changed in place: what is new is made in `staging`, written to the disk, and moved. A process that
//! dies leaves at most a staging folder and layers that no image has; the next one that changes the store removes
//! both. A layer that a sandbox may be using is locked by the process that runs it, and stays.

mod download;
mod export;
mod gc;
mod import;
mod lease;
mod lock;
mod pins;
mod record;
mod staging;

pub use download::Download;
pub use export::Export;
pub use gc::Removed;
pub use import::{Import, Imported};
pub use lease::Lease;
pub use record::{LayerRecord, NamedImage, Record};
pub use staging::Staging;

use crate::{Digest, ImageError, ImageRef, Result};
use lock::Lock;
use record::Index;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A folder of images.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in a folder, which need not be there yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes what is missing, and refuses a folder that others can change: what is in it becomes the root of
    /// sandboxes.
    fn prepare(&self) -> Result<()> {
        for name in ["", "downloads", "images", "layers", "staging"] {
            let folder = self.folder.join(name);
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .map_err(|error| self.failed("making its folders", error))?;
        }
        let metadata = fs::metadata(&self.folder).map_err(|error| self.failed("looking at it", error))?;
        if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
            let why = "it belongs to another user, or others can write to it; use a folder of your own";
            return Err(self.failed("looking at it", io::Error::other(why)));
        }
        Ok(())
    }

    /// Names and their images, sorted by name.
    pub fn list(&self) -> Result<Vec<NamedImage>> {
        let index = Index::read(self)?;
        let mut images = Vec::with_capacity(index.names.len());
        for (name, id) in &index.names {
            images.push(NamedImage { name: name.clone(), image: self.record(*id)? });
        }
        Ok(images)
    }

    /// Every image that is there, also those that somebody keeps without a name.
    pub fn ids(&self) -> Result<Vec<Digest>> {
        self.digests("images")
    }

    /// The image that is meant, and every name that it has.
    pub fn show(&self, wanted: &ImageRef) -> Result<(Record, Vec<String>)> {
        let index = Index::read(self)?;
        let record = self.record(self.resolve(&index, wanted)?)?;
        let names = index.names_of(record.id);
        Ok((record, names))
    }

    fn resolve(&self, index: &Index, wanted: &ImageRef) -> Result<Digest> {
        let missing = |name: String| ImageError::NotFound { name, folder: self.folder.clone() };
        match wanted {
            ImageRef::Name(name) => {
                let name = name.to_string();
                index.names.get(&name).copied().ok_or_else(|| missing(name))
            }
            ImageRef::Pinned(id) => match self.record_path(*id).exists() {
                true => Ok(*id),
                false => Err(missing(id.to_string())),
            },
            ImageRef::Digits(digits) => {
                let mut ids: Vec<Digest> = index.names.values().copied().collect();
                ids.retain(|id| id.hex().starts_with(digits));
                ids.sort_unstable();
                ids.dedup();
                match ids[..] {
                    [id] => Ok(id),
                    [] => Err(missing(format!("sha256:{digits}"))),
                    _ => Err(ImageError::refused(
                        format!("sha256:{digits}"),
                        "several images begin so; write more digits",
                    )),
                }
            }
        }
    }

    fn lock(&self) -> Result<Lock> {
        self.prepare()?;
        Lock::wait(&self.folder.join("lock")).map_err(|error| self.failed("locking it", error))
    }

    fn layer_path(&self, layer: Digest) -> PathBuf {
        self.folder.join("layers").join(layer.hex())
    }

    fn failed(&self, step: &'static str, error: io::Error) -> ImageError {
        ImageError::store(&self.folder, step, error)
    }
}
