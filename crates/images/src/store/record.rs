//! What the store writes down.

use super::Store;
use crate::{Digest, ImageConfig, ImageError, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Changes when an older program could not read what is written.
const VERSION: u32 = 1;

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerRecord {
    pub diff_id: Digest,
    /// The bytes of its files.
    pub size_bytes: u64,
    pub entries: u64,
    /// Devices and pipes of the archive, and what lies in /dev, which are not in the store.
    pub left_out: u64,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The digest of its configuration, which names every layer.
    pub id: Digest,
    /// Milliseconds since 1970.
    pub imported_at_ms: u64,
    /// Where it came from, in words.
    pub source: String,
    pub config: ImageConfig,
    /// The lowest first.
    pub layers: Vec<LayerRecord>,
}

impl Record {
    pub fn size_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.size_bytes).sum()
    }
}

/// A name and its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedImage {
    pub name: String,
    pub image: Record,
}

/// All names.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Index {
    version: u32,
    pub(super) names: BTreeMap<String, Digest>,
}

impl Index {
    /// A store that is not there has no names.
    pub(super) fn read(store: &Store) -> Result<Self> {
        let path = store.folder.join("index.json");
        let index: Self = match fs::read(&path) {
            Ok(bytes) => parse(store, &path, &bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Self { version: VERSION, names: BTreeMap::new() }
            }
            Err(error) => return Err(store.failed("reading its names", error)),
        };
        if index.version != VERSION {
            let why = format!("it is of version {}, and this program knows {VERSION}", index.version);
            return Err(ImageError::refused(path.display().to_string(), why));
        }
        Ok(index)
    }

    pub(super) fn write(&self, store: &Store) -> Result<()> {
        store.write("index.json", self).map_err(|error| store.failed("writing its names", error))
    }

    pub(super) fn names_of(&self, id: Digest) -> Vec<String> {
        self.names.iter().filter(|(_, image)| **image == id).map(|(name, _)| name.clone()).collect()
    }
}

fn parse<T: for<'b> Deserialize<'b>>(store: &Store, path: &Path, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        let what = format!("{} is damaged: {error}", path.display());
        store.failed("reading what it has written", io::Error::new(ErrorKind::InvalidData, what))
    })
}

impl Store {
    pub(super) fn record_path(&self, id: Digest) -> PathBuf {
        self.folder.join("images").join(format!("{}.json", id.hex()))
    }

    pub(super) fn record(&self, id: Digest) -> Result<Record> {
        let path = self.record_path(id);
        let bytes = fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => ImageError::NotFound { name: id.to_string(), folder: self.folder.clone() },
            _ => self.failed("reading an image", error),
        })?;
        parse(self, &path, &bytes)
    }

    pub(super) fn write_record(&self, record: &Record) -> Result<()> {
        let name = format!("images/{}.json", record.id.hex());
        self.write(&name, record).map_err(|error| self.failed("writing an image", error))
    }

    pub(super) fn layer_record(&self, layer: Digest) -> Result<LayerRecord> {
        let path = self.layer_path(layer).join("layer.json");
        let bytes = fs::read(&path).map_err(|error| self.failed("reading a layer", error))?;
        parse(self, &path, &bytes)
    }

    /// Writes a file so that after a crash it is the old or the new one.
    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let path = self.folder.join(name);
        let partial = path.with_extension("partial");
        write_synced(&partial, value)?;
        fs::rename(&partial, &path)?;
        sync_folder(path.parent().unwrap_or(&self.folder))
    }
}

pub(super) fn write_synced(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&serde_json::to_vec_pretty(value)?)?;
    file.sync_all()
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
