//! Images that somebody keeps, whatever names they have: those that a service has registered.
//!
//! Each keeper has a folder with an empty file for each digest. A keeper says again and again which ones it keeps, so
//! what a crash left behind goes with the next time.

use super::Store;
use crate::{Digest, Result};
use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

const FOLDER: &str = "pins";

impl Store {
    fn pins_of(&self, keeper: &str) -> PathBuf {
        self.folder.join(FOLDER).join(keeper)
    }

    /// Keeps an image from being removed, until its keeper lets go of it. `keeper` is a plain word.
    pub fn pin(&self, keeper: &str, digest: Digest) -> Result<()> {
        let failed = |error| self.failed("keeping an image", error);
        let _lock = self.lock()?;
        let folder = self.pins_of(keeper);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let file = File::create(folder.join(digest.hex())).map_err(failed)?;
        file.sync_all().and_then(|()| File::open(&folder)?.sync_all()).map_err(failed)
    }

    /// Keeps these images, and no others for this keeper. What nothing refers to goes with the next change of names.
    pub fn pin_only(&self, keeper: &str, digests: &[Digest]) -> Result<()> {
        for digest in digests {
            self.pin(keeper, *digest)?;
        }
        let wanted: HashSet<String> = digests.iter().map(|digest| digest.hex()).collect();
        let failed = |error| self.failed("letting go of an image", error);
        let folder = self.pins_of(keeper);
        if !folder.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_str().is_none_or(|name| !wanted.contains(name)) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// What anybody keeps, as far as it is there.
    pub(super) fn pinned(&self) -> Result<HashSet<Digest>> {
        let failed = |error| self.failed("looking for what is kept", error);
        let keepers = match fs::read_dir(self.folder.join(FOLDER)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(HashSet::new()),
            other => other.map_err(failed)?,
        };
        let mut kept = HashSet::new();
        for keeper in keepers {
            let entries = match fs::read_dir(keeper.map_err(failed)?.path()) {
                // What is no folder is no keeper's.
                Err(error) if error.kind() == ErrorKind::NotADirectory => continue,
                other => other.map_err(failed)?,
            };
            for entry in entries {
                let name = entry.map_err(failed)?.file_name().into_string().unwrap_or_default();
                let digest = Digest::parse("digest", &format!("sha256:{name}"));
                kept.extend(digest.ok().filter(|digest| self.record_path(*digest).exists()));
            }
        }
        Ok(kept)
    }
}
