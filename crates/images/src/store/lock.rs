//! Locks between processes. The kernel lets go of them when their holder dies.

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// A lock on a file or a folder, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Waits until nobody else has it.
    pub(super) fn wait(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { file })
    }

    /// Takes a folder for oneself, if nobody has it.
    pub(super) fn try_exclusive(folder: &Path) -> io::Result<Option<Self>> {
        Self::attempt(folder, FlockOperation::NonBlockingLockExclusive)
    }

    /// Keeps a folder from being removed.
    pub(super) fn shared(folder: &Path) -> io::Result<Option<Self>> {
        Self::attempt(folder, FlockOperation::NonBlockingLockShared)
    }

    fn attempt(folder: &Path, operation: FlockOperation) -> io::Result<Option<Self>> {
        let file = File::open(folder)?;
        match flock(&file, operation) {
            Ok(()) => Ok(Some(Self { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether what was locked is what the path still names.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let same = |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        match (self.file.metadata(), std::fs::symlink_metadata(path)) {
            (Ok(own), Ok(there)) => same(own, there),
            _ => false,
        }
    }
}
