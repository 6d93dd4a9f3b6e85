//! Folders and names below a root, reached without following a link.

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// A name in a folder that is open.
pub(super) struct Place {
    pub(super) parent: Rc<OwnedFd>,
    /// The same for the same folder, as long as none is renamed, which nothing here does.
    pub(super) parent_id: u64,
    pub(super) name: Vec<u8>,
}

impl Place {
    /// What is there, if anything is.
    pub(super) fn kind(&self) -> Result<Option<FileType>> {
        match fs::statat(&*self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn renamed(&self, name: &[u8]) -> Self {
        Self { parent: Rc::clone(&self.parent), parent_id: self.parent_id, name: name.to_owned() }
    }

    pub(super) fn open_folder(&self) -> Result<OwnedFd> {
        open(&self.parent, &self.name, OFlags::RDONLY)
    }

    pub(super) fn open_parent(&self) -> Result<OwnedFd> {
        open(&self.parent, b".", OFlags::RDONLY)
    }
}

/// The folder below `root` at a path, never outside, never through a link or another mount.
fn open(root: &OwnedFd, path: &[u8], access: OFlags) -> Result<OwnedFd> {
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    fs::openat2(root, path, flags, Mode::empty(), resolve)
}

/// Finds parents, and remembers the last one: entries of one folder follow each other.
pub(super) struct Parents {
    root: Rc<OwnedFd>,
    last: (Vec<u8>, Rc<OwnedFd>, u64),
}

impl Parents {
    pub(super) fn new(root: OwnedFd) -> Self {
        let root = Rc::new(root);
        Self { last: (Vec::new(), Rc::clone(&root), 0), root }
    }

    /// A name in a folder, which is made if it is not there.
    pub(super) fn place(&mut self, parents: &[&[u8]], name: &[u8]) -> Result<Place> {
        match self.existing(parents, name) {
            Err(Errno::NOENT) => {
                self.make(parents)?;
                self.existing(parents, name)
            }
            other => other,
        }
    }

    /// A name in a folder that is there.
    pub(super) fn existing(&mut self, parents: &[&[u8]], name: &[u8]) -> Result<Place> {
        let path = parents.join(&b'/');
        if path.is_empty() {
            return Ok(Place { parent: Rc::clone(&self.root), parent_id: 0, name: name.to_owned() });
        }
        if path != self.last.0 {
            let folder = open(&self.root, &path, OFlags::PATH)?;
            let id = fs::fstat(&folder)?.st_ino;
            self.last = (path, Rc::new(folder), id);
        }
        Ok(Place { parent: Rc::clone(&self.last.1), parent_id: self.last.2, name: name.to_owned() })
    }

    /// Before a folder is removed: it may be the one that is remembered.
    pub(super) fn forget(&mut self) {
        self.last = (Vec::new(), Rc::clone(&self.root), 0);
    }

    /// A folder, to change its own mode and time.
    pub(super) fn folder(&self, names: &[&[u8]]) -> Result<OwnedFd> {
        open(&self.root, &names.join(&b'/'), OFlags::RDONLY)
    }

    /// Makes folders that the archive has no entries for.
    fn make(&self, names: &[&[u8]]) -> Result<()> {
        let mut parent = Rc::clone(&self.root);
        for name in names {
            match fs::mkdirat(&*parent, *name, Mode::from_raw_mode(0o755)) {
                Ok(()) => fs::chmodat(&*parent, *name, Mode::from_raw_mode(0o755), AtFlags::empty())?,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            parent = Rc::new(open(&parent, name, OFlags::PATH)?);
        }
        Ok(())
    }
}
