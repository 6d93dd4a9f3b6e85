//! Files, as the sandbox's user and without following a link: names in a sandbox are chosen by its code.

use crate::SECRETS;
use crate::protocol::{ListEntry, Stat};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, fstat, futimens,
    mkdirat, openat, readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is in a sandbox from the start.
pub(super) fn prepare() -> Result<(), Errno> {
    rustix::process::umask(Mode::from_raw_mode(0o022));
    // Runtimes give it the mode that an image has there.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fchmod(openat(CWD, SECRETS, flags, Mode::empty())?, Mode::from_raw_mode(0o700))?;
    match mkdirat(CWD, "/workspace/.artifacts", Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A name in the way of a path: a link, or not a folder at all.
fn explain(folder: &OwnedFd, name: &str, errno: Errno) -> Errno {
    let is_link = || {
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    };
    match errno {
        Errno::NOTDIR | Errno::LOOP if is_link() => Errno::LOOP,
        errno => errno,
    }
}

/// Goes down a path name by name; with `make`, folders that are missing are made.
pub(super) fn walk(path: &str, make: bool) -> Result<OwnedFd, Errno> {
    let mut at = openat(CWD, "/", FOLDER, Mode::empty())?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at = match openat(&at, name, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                match mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
                openat(&at, name, FOLDER, Mode::empty())
            }
            opened => opened,
        }
        .map_err(|errno| explain(&at, name, errno))?;
    }
    Ok(at)
}

fn parent(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A plain file, for reading.
pub(super) fn open(path: &str) -> Result<OwnedFd, Errno> {
    let (folder, name) = parent(path);
    let folder = walk(folder, false)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = openat(&folder, name, flags, Mode::empty()).map_err(|errno| explain(&folder, name, errno))?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        _ => Err(Errno::NXIO),
    }
}

pub(super) fn make_folder(path: &str) -> Result<(), Errno> {
    walk(path, true).map(drop)
}

pub(super) fn list(path: &str, limit: usize) -> Result<Vec<ListEntry>, Errno> {
    let folder = walk(path, false)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = openat(&folder, ".", flags, Mode::empty())?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&open)? {
        let entry = entry?;
        let name = entry.file_name();
        if entries.len() >= limit {
            break;
        }
        if [&b"."[..], b".."].contains(&name.to_bytes()) {
            continue;
        }
        // It may be gone by now.
        let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let (kind, size) = (kind(stat.st_mode), stat.st_size as u64);
        entries.push(ListEntry { name: name.to_bytes().to_vec(), kind, size });
    }
    Ok(entries)
}

fn kind(mode: u32) -> char {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => 'f',
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        _ => 'o',
    }
}

pub(super) fn stat(path: &str) -> Result<Stat, Errno> {
    let (folder, name) = parent(path);
    let folder = walk(folder, false)?;
    let stat = match name {
        "" => fstat(&folder)?,
        name => statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?,
    };
    let modified_ms = stat.st_mtime as i64 * 1000 + stat.st_mtime_nsec as i64 / 1_000_000;
    let mode = stat.st_mode & 0o7777;
    Ok(Stat { kind: kind(stat.st_mode), size: stat.st_size as u64, mode, modified_ms })
}

/// The folder of a path and the last name in it, which the root does not have.
fn place(path: &str, make: bool) -> Result<(OwnedFd, &str), Errno> {
    let (folder, name) = parent(path);
    if name.is_empty() { Err(Errno::ACCESS) } else { Ok((walk(folder, make)?, name)) }
}

pub(super) fn remove(path: &str, is_folder: bool) -> Result<(), Errno> {
    let (folder, name) = place(path, false)?;
    unlinkat(&folder, name, if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() })
}

pub(super) fn rename(from: &str, to: &str) -> Result<(), Errno> {
    let (to, new) = place(to, true)?;
    let (from, old) = place(from, false)?;
    renameat(&from, old, &to, new)
}

pub(super) fn set_mode(path: &str, mode: u32) -> Result<(), Errno> {
    let (folder, name) = place(path, false)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = openat(&folder, name, flags, Mode::empty()).map_err(|errno| explain(&folder, name, errno))?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile | FileType::Directory => fchmod(&file, Mode::from_raw_mode(mode & 0o777)),
        _ => Err(Errno::NXIO),
    }
}

/// Sets when something was last changed. A filesystem that does not keep that keeps the rest.
fn set_modified(file: &OwnedFd, modified_ms: i64) {
    let (seconds, rest) = (modified_ms.div_euclid(1000), modified_ms.rem_euclid(1000));
    let last_modification = Timespec { tv_sec: seconds, tv_nsec: rest * 1_000_000 };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let _ = futimens(file, &Timestamps { last_access, last_modification });
}

/// Before its mode, which may be one that lets nobody in. The sticky bit is kept; set-id bits are not.
pub(super) fn restore_folder(path: &str, mode: u32, modified_ms: i64) -> Result<(), Errno> {
    let (folder, name) = place(path, false)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened =
        openat(&folder, name, flags, Mode::empty()).map_err(|errno| explain(&folder, name, errno))?;
    fchmod(&opened, Mode::from_raw_mode(mode & 0o1777))?;
    set_modified(&opened, modified_ms);
    Ok(())
}

pub(super) fn make_link(path: &str, target: &str) -> Result<(), Errno> {
    let (folder, name) = place(path, true)?;
    symlinkat(target, &folder, name)
}

pub(super) fn read_link(path: &str) -> Result<Vec<u8>, Errno> {
    let (folder, name) = place(path, false)?;
    Ok(readlinkat(&folder, name, Vec::new())?.into_bytes())
}

/// A file that becomes visible when it is whole. Whatever had its name before is replaced, not written to.
#[derive(Debug)]
pub(super) struct NewFile {
    folder: OwnedFd,
    name: String,
    hidden: String,
    file: OwnedFd,
    mode: u32,
    modified_ms: Option<i64>,
    bytes: u64,
    is_done: bool,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl NewFile {
    pub(super) fn create(path: &str, mode: u32, modified_ms: Option<i64>) -> Result<Self, Errno> {
        let (folder, name) = parent(path);
        let folder = walk(folder, true)?;
        // A folder or a link in its place is known before the bytes come.
        let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
        match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Directory) => return Err(Errno::ISDIR),
            Ok(FileType::Symlink) => return Err(Errno::LOOP),
            _ => {}
        }
        let hidden = format!(".cofferdam-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || openat(&folder, &*hidden, flags, Mode::from_raw_mode(0o600));
        let file = match create() {
            Err(Errno::EXIST) => {
                unlinkat(&folder, &*hidden, AtFlags::empty())?;
                create()?
            }
            created => created?,
        };
        let name = name.to_owned();
        Ok(Self { folder, name, hidden, file, mode, modified_ms, bytes: 0, is_done: false })
    }

    pub(super) fn write(&mut self, mut content: &[u8]) -> Result<(), Errno> {
        while !content.is_empty() {
            let written = match rustix::io::write(&self.file, content) {
                Err(Errno::INTR) => 0,
                written => written?,
            };
            content = &content[written..];
            self.bytes += written as u64;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<u64, Errno> {
        fchmod(&self.file, Mode::from_raw_mode(self.mode & 0o7777))?;
        if let Some(modified_ms) = self.modified_ms {
            set_modified(&self.file, modified_ms);
        }
        renameat(&self.folder, &*self.hidden, &self.folder, &*self.name)?;
        self.is_done = true;
        Ok(self.bytes)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = unlinkat(&self.folder, &*self.hidden, AtFlags::empty());
        }
    }
}
