//! The files of a sandbox for another one, without copying them: its image is cloned, where the host's filesystem can
//! have two files share what is the same in them.
//!
//! A clone is the whole filesystem as it is, and a copy of a workspace is not: names of the same file become files of
//! their own in it, pipes and sockets are left out, and so are attributes and set-id bits. So it is looked first
//! whether both would be the same. Where they would not, nothing is shared, and whoever asked makes a copy.

use crate::disk::DiskImage;
use crate::listing::{Listed, list};
use crate::sandbox::{NativeSandbox, READ, open};
use cofferdam_backend::{BackendError, EntryKind, Result, Sandbox, SharedFiles};
use cofferdam_core::GuestPath;
use cofferdam_linux::sys;
use std::io;
use std::sync::Arc;
use tokio::task::JoinSet;

/// A sandbox stands still while all its folders are looked at, and cannot be ended meanwhile.
const MAX_ENTRIES: u64 = 250_000;

/// Folders that init is asked for at once, so that it has the next while the last is looked at.
const AT_ONCE: usize = 4;

/// What is left in /tmp is removed again, a message for each.
const MAX_LEFTOVERS: usize = 1000;

/// What an empty disk has: ten inodes that ext4 keeps for itself, its `lost+found`, and what init makes outside of the
/// workspace, the workspace included.
const OWN_INODES: u64 = 10 + 1 + 7;

/// A disk as it was, and what a new sandbox does not want of it.
#[derive(Debug)]
pub(crate) struct SharedDisk {
    pub(crate) image: DiskImage,
    leftovers: Vec<(GuestPath, EntryKind)>,
}

impl SharedDisk {
    pub(crate) fn of(files: &SharedFiles) -> Result<Arc<Self>> {
        let held = Arc::clone(&files.held).downcast().ok();
        held.ok_or(BackendError::Unsupported { backend: "native", what: "take files of another backend" })
    }

    /// Removes what the other sandbox had in /tmp.
    pub(crate) async fn tidy(&self, sandbox: &NativeSandbox) -> Result<()> {
        for (path, kind) in &self.leftovers {
            sandbox.remove(path, *kind).await?;
        }
        Ok(())
    }
}

fn cannot(what: &'static str) -> BackendError {
    BackendError::Unsupported { backend: "native", what }
}

fn at(path: &str) -> Result<GuestPath> {
    Ok(GuestPath::parse("path", path)?)
}

/// What there is in a folder and below it.
#[derive(Default)]
struct Found {
    entries: u64,
    bytes: u64,
    depth: usize,
}

impl NativeSandbox {
    pub(crate) async fn share(&self) -> Result<SharedFiles> {
        // Nothing of it goes on before this is dropped.
        let paused = self.paused.lock().await;
        if paused.is_none() {
            return Err(cannot("share the files of a sandbox that is not paused"));
        }
        // Nor does the host change anything in it.
        let still = self.changes.try_write();
        let still = still.map_err(|_| cannot("share files while some of them are written"))?;
        let disk = self.disk().ok_or(cannot("share files in memory"))?;
        let root = self.spec.workspace_root.clone();
        // Most filesystems cannot, and say so at once.
        let (image, folder) = (Arc::clone(&disk), root.clone());
        blocking(move || image.copy(&folder).map(drop)).await?;

        let found = self.walk_workspace().await?;
        let leftovers = self.leftovers(at("/tmp")?).await?;
        if !list(&self.connection, &at("/run/secrets")?, 1, false).await?.is_empty() {
            return Err(cannot("share files beside which there are secrets"));
        }
        let files = self.connection.files().ok_or(cannot("look at its disk"))?;
        if files.flags as u64 & libc::ST_RDONLY != 0 {
            return Err(cannot("share a disk after an error on it"));
        }
        if files.inodes - files.inodes_free != OWN_INODES + found.entries + leftovers.len() as u64 {
            // Such as one that was removed while it is open, or one in /dev/shm. They would take up room in the other.
            return Err(cannot("share a disk that has more files than these"));
        }

        let workspace =
            open(&self.connection, &at("/workspace")?, READ | libc::O_DIRECTORY, 0, false).await?;
        let image = blocking(move || {
            let mut names = [0; 1024];
            let listed = rustix::fs::flistxattr(&workspace, &mut names)?;
            if sys::names_attributes(&names[..listed]) {
                return Err(io::Error::other("the workspace has attributes"));
            }
            // From here on the image has everything, as nothing changes any of it.
            rustix::fs::syncfs(&workspace)?;
            disk.copy(&root)
        });
        let image = image.await?;
        drop((still, paused));
        let held = Arc::new(SharedDisk { image, leftovers });
        Ok(SharedFiles { entries: found.entries, bytes: found.bytes, depth: found.depth, held })
    }

    /// Counts what is in the workspace. What would not be the same in a copy is an error.
    async fn walk_workspace(&self) -> Result<Found> {
        let (mut found, mut waiting) = (Found::default(), vec![(at("/workspace")?, 1)]);
        let mut looking = JoinSet::new();
        loop {
            while looking.len() < AT_ONCE
                && let Some((folder, depth)) = waiting.pop()
            {
                let connection = Arc::clone(&self.connection);
                looking.spawn(async move {
                    let listed = list(&connection, &folder, usize::MAX, true).await;
                    listed.map(|listed| (folder, depth, listed))
                });
            }
            let Some(looked) = looking.join_next().await else { return Ok(found) };
            let lost = |error| BackendError::failed("looking at the files", io::Error::other(error));
            let (folder, depth, listed) = looked.map_err(lost)??;
            found.depth = found.depth.max(depth);
            for listed in &listed {
                found.entries += 1;
                found.bytes = found.bytes.saturating_add(like_a_copy(listed)?);
                let name = name(&listed.entry.name)?;
                if listed.entry.kind == EntryKind::Folder {
                    waiting.push((folder.join(name)?, depth + 1));
                }
            }
            if found.entries > MAX_ENTRIES {
                return Err(cannot("share so many files"));
            }
        }
    }

    /// Everything below a folder. What is in another comes before that.
    async fn leftovers(&self, top: GuestPath) -> Result<Vec<(GuestPath, EntryKind)>> {
        let (mut left, mut waiting) = (Vec::new(), vec![top]);
        while let Some(folder) = waiting.pop() {
            for listed in list(&self.connection, &folder, MAX_LEFTOVERS, false).await? {
                let path = folder.join(name(&listed.entry.name)?)?;
                if listed.entry.kind == EntryKind::Folder {
                    waiting.push(path.clone());
                }
                left.push((path, listed.entry.kind));
            }
            if left.len() >= MAX_LEFTOVERS {
                return Err(cannot("share a disk with so many files outside of the workspace"));
            }
        }
        left.reverse();
        Ok(left)
    }
}

/// Refuses what would be another thing in a copy; says how many bytes a file has.
fn like_a_copy(listed: &Listed) -> Result<u64> {
    let (bytes, is_alike) = match listed.entry.kind {
        // One that its owner may not read cannot be copied, which whoever tries says.
        EntryKind::File => (listed.entry.size_bytes, listed.links == 1 && listed.mode & 0o7400 == 0o400),
        EntryKind::Folder => (0, listed.mode & 0o6000 == 0),
        EntryKind::Link => (0, listed.links == 1),
        EntryKind::Other => (0, false),
    };
    match is_alike && !listed.has_attributes {
        true => Ok(bytes),
        false => Err(cannot("share files that a copy would change")),
    }
}

fn name(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| cannot("share files whose names are not UTF-8"))
}

/// Does what may wait for the disk.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(act).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| BackendError::failed("sharing the files", error))
}
