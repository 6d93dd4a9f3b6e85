//! Blobs on their way from a registry. What was cut stays for a while, so that the next attempt goes on from there.

use super::Store;
use super::lock::Lock;
use super::staging::Staging;
use crate::digest::Hashing;
use crate::{Digest, ImageError, Result};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long a part of a blob waits for the rest.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// A blob that this process is getting; nobody else does meanwhile.
#[derive(Debug)]
pub struct Download {
    store: Store,
    digest: Digest,
    path: PathBuf,
    file: File,
    bytes: u64,
    _lock: Lock,
}

impl Store {
    /// Begins a blob, or goes on with it. Waits for another process that gets the same one.
    pub fn download(&self, digest: Digest) -> Result<Download> {
        self.prepare()?;
        let failed = |error| self.failed("opening a download", error);
        let path = self.folder.join("downloads").join(digest.hex());
        loop {
            let lock = Lock::wait(&path).map_err(failed)?;
            // The other one may have come to its end and taken the file away.
            if !lock.is_at(&path) {
                continue;
            }
            let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
            let bytes = file.metadata().map_err(failed)?.len();
            return Ok(Download { store: self.clone(), digest, path, file, bytes, _lock: lock });
        }
    }

    /// Whether a layer need not be got.
    pub fn has_layer(&self, diff_id: Digest) -> Result<bool> {
        Ok(self.hold(diff_id)?.is_some())
    }

    /// Removes parts of blobs that nobody has come back for.
    pub fn sweep_downloads(&self) -> Result<()> {
        self.prepare()?;
        let failed = |error| self.failed("removing old downloads", error);
        for entry in fs::read_dir(self.folder.join("downloads")).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let changed = fs::metadata(&path).and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
            if age.is_some_and(|age| age > KEPT)
                && let Ok(Some(_lock)) = Lock::try_exclusive(&path)
            {
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// What came from a registry as an OCI layout, ready to be imported. Blobs that are not among the downloads are
    /// of layers that the store has.
    pub fn layout(&self, manifest: &[u8], config: &[u8], blobs: Vec<Download>) -> Result<Staging> {
        let failed = |error| self.failed("putting downloads together", error);
        let staging = self.work_folder()?;
        let folder = staging.path().join("blobs/sha256");
        fs::create_dir_all(&folder).map_err(failed)?;
        for download in blobs {
            let to = folder.join(download.digest.hex());
            download.place(&to)?;
        }
        let write = |path: &Path, bytes: &[u8]| fs::write(path, bytes).map_err(failed);
        for bytes in [manifest, config] {
            write(&folder.join(Digest::of(bytes).hex()), bytes)?;
        }
        let index = json!({ "schemaVersion": 2, "manifests": [{ "digest": Digest::of(manifest) }] });
        write(&staging.path().join("index.json"), index.to_string().as_bytes())?;
        write(&staging.path().join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        Ok(staging)
    }
}

impl Download {
    /// How much of it is there.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            let error = self.store.failed("keeping a download", error);
            // Where there is no room, a part of a blob is in the way.
            if matches!(error, ImageError::StoreFull { .. }) {
                self.discard();
            }
            return Err(error);
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Begins anew.
    pub fn restart(&mut self) -> Result<()> {
        self.file.set_len(0).map_err(|error| self.store.failed("beginning a download anew", error))?;
        self.bytes = 0;
        Ok(())
    }

    /// Whether it is what it was asked for. What is not is removed.
    pub fn verify(&self) -> Result<()> {
        let failed = |error: io::Error| self.store.failed("reading a download", error);
        let (found, _, _) = Hashing::new(File::open(&self.path).map_err(failed)?).finish().map_err(failed)?;
        if found == self.digest {
            return Ok(());
        }
        self.discard();
        Err(ImageError::Digest { what: "what was got".to_owned(), expected: self.digest, found })
    }

    /// Moves what was got to where it is needed, in the store.
    pub fn place(self, to: &Path) -> Result<()> {
        fs::rename(&self.path, to).map_err(|error| self.store.failed("moving a download", error))
    }

    fn discard(&self) {
        let _ = fs::remove_file(&self.path);
    }
}
