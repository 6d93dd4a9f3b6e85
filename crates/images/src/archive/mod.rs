//! Images as files: what `docker save` writes, and OCI layouts in a folder or an archive.
//!
//! Each form comes down to the same: a configuration, and for each of its layers a blob to read. Every digest that
//! the form promises is checked when the bytes are read.

mod docker;
mod index;
pub(crate) mod oci;

use crate::config::ImageConfig;
use crate::limits::MAX_JSON_BYTES;
use crate::{Digest, ImageError, ImageName, Result};
pub(crate) use index::{TarIndex, is_archive_name};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Named blobs: the files of a folder, or the entries of an archive.
pub(crate) trait Blobs {
    fn open(&self, name: &str) -> Result<Box<dyn Read>>;

    fn has(&self, name: &str) -> bool;
}

/// A small file, whole.
fn read_json(blobs: &dyn Blobs, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limited = &mut blobs.open(name)?.take(MAX_JSON_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(|error| ImageError::refused(name, error.to_string()))?;
    if bytes.len() as u64 > MAX_JSON_BYTES {
        return Err(ImageError::refused(
            name,
            "it is larger than 4 MiB, which no manifest or configuration is",
        ));
    }
    Ok(bytes)
}

fn parse_json<'b, T: serde::Deserialize<'b>>(name: &str, bytes: &'b [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| ImageError::refused(name, error.to_string()))
}

fn verify(what: &str, expected: Digest, bytes: &[u8]) -> Result<()> {
    let found = Digest::of(bytes);
    if found == expected {
        Ok(())
    } else {
        Err(ImageError::Digest { what: what.to_owned(), expected, found })
    }
}

/// One layer of an image, not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LayerBlob {
    /// Of the archive, uncompressed.
    pub(crate) diff_id: Digest,
    /// Of the blob as it is, where the form promises that.
    pub(crate) digest: Option<Digest>,
    pub(crate) name: String,
}

/// An image that can be taken in.
pub(crate) struct FoundImage {
    /// Exactly as it was; its digest is the image's id.
    pub(crate) config_bytes: Vec<u8>,
    pub(crate) config: ImageConfig,
    /// The lowest first.
    pub(crate) layers: Vec<LayerBlob>,
}

/// The one image in a set of blobs; of several, the one that has the wanted name.
pub(crate) fn find(blobs: &dyn Blobs, wanted: &ImageName) -> Result<FoundImage> {
    // Newer archives of Docker have both; this form has more digests.
    if blobs.has(oci::LAYOUT) && blobs.has(oci::INDEX) {
        oci::find(blobs)
    } else {
        docker::find(blobs, wanted)
    }
}

fn found(config_bytes: Vec<u8>, names: Vec<(String, Option<Digest>)>) -> Result<FoundImage> {
    let config = ImageConfig::parse(&config_bytes)?;
    let diff_ids = &config.rootfs.diff_ids;
    if diff_ids.len() != names.len() {
        let why = format!("its manifest has {} layers and its configuration {}", names.len(), diff_ids.len());
        return Err(ImageError::refused("the image", why));
    }
    let blob = |(&diff_id, (name, digest))| LayerBlob { diff_id, digest, name };
    let layers = diff_ids.iter().zip(names).map(blob).collect();
    Ok(FoundImage { config_bytes, config, layers })
}

/// The files of an OCI layout. Nothing in it is followed out of it.
pub(crate) struct FolderBlobs {
    path: PathBuf,
    folder: File,
}

impl FolderBlobs {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let folder = File::open(path).map_err(|error| ImageError::source(path, error))?;
        Ok(Self { path: path.to_owned(), folder })
    }

    pub(crate) fn is_image(&self) -> bool {
        self.has(oci::LAYOUT) && self.has(oci::INDEX)
    }

    fn file(&self, name: &str) -> Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = openat2(&self.folder, name, flags, Mode::empty(), resolve);
        opened.map(File::from).map_err(|error| ImageError::source(&self.path.join(name), error))
    }
}

impl Blobs for FolderBlobs {
    fn open(&self, name: &str) -> Result<Box<dyn Read>> {
        Ok(Box::new(self.file(name)?))
    }

    fn has(&self, name: &str) -> bool {
        self.file(name).is_ok_and(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()))
    }
}
