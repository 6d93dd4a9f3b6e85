//! Folders in which something is being made.

use super::Store;
use super::lock::Lock;
use crate::Result;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder of one's own, gone when this is dropped, or with the next import when the process died.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
    _lock: Lock,
}

impl Staging {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What stays is swept by the next process.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Store {
    /// A folder beside the layers, to make something in that is to be imported.
    pub fn work_folder(&self) -> Result<Staging> {
        self.prepare()?;
        self.stage()
    }

    pub(super) fn stage(&self) -> Result<Staging> {
        let failed = |error| self.failed("making a folder to work in", error);
        loop {
            let mut number = [0; 8];
            getrandom(&mut number, GetRandomFlags::empty()).map_err(|error| failed(error.into()))?;
            let path = self.folder.join("staging").join(format!("{:016x}", u64::from_le_bytes(number)));
            fs::create_dir(&path).map_err(failed)?;
            // Whoever sweeps may have come between.
            match Lock::try_exclusive(&path) {
                Ok(Some(lock)) if lock.is_at(&path) => return Ok(Staging { path, _lock: lock }),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Removes what processes left that died.
    pub(super) fn sweep_staging(&self) -> Result<()> {
        let failed = |error| self.failed("removing what a process left", error);
        for entry in fs::read_dir(self.folder.join("staging")).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if let Ok(Some(_lock)) = Lock::try_exclusive(&path) {
                let _ = fs::remove_dir_all(&path);
            }
        }
        Ok(())
    }
}
