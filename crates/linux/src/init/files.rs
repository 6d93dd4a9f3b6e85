//! Opening files for the host, as the sandbox user and inside the sandbox: whatever the guest has planted, no
//! link is followed and nothing is reached that the guest could not reach itself.

use super::InitPlan;
use crate::protocol::{LISTED_ENTRY_BYTES, ListedEntry, MAX_OPENED, Names};
use crate::sys::{self, Errno, Result};
use cofferdam_core::Control;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

const ANCHORED: u64 = sys::RESOLVE_BENEATH | sys::RESOLVE_NO_SYMLINKS | sys::RESOLVE_NO_MAGICLINKS;

/// The longest name that the kernel takes, and its NUL.
const NAME_BYTES: usize = 256;

/// What is left of an absolute path without its leading slashes; `.` for the root.
pub(super) fn below_root(path: &CStr) -> &CStr {
    let bytes = path.to_bytes_with_nul();
    let start = bytes.iter().position(|b| *b != b'/').unwrap_or(0);
    match CStr::from_bytes_with_nul(&bytes[start..]) {
        Ok(rest) if !rest.is_empty() => rest,
        _ => c".",
    }
}

/// Opens a path below `/` with the sandbox user's rights.
pub(super) fn open(
    plan: &InitPlan<'_>,
    path: &CStr,
    flags: i32,
    mode: u32,
    make_parents: bool,
) -> Result<OwnedFd> {
    as_user(plan, || {
        if make_parents {
            make_parents_of(path)?;
        }
        match open_below(sys::CWD, path, flags, mode) {
            // The user's own file, which it has made read-only: replaced, as an editor would.
            Err(Errno(libc::EACCES)) if flags & libc::O_CREAT != 0 => {
                remove(path)?;
                open_below(sys::CWD, path, flags | libc::O_EXCL, mode)
            }
            other => other,
        }
    })
}

/// Opens names of one folder with the sandbox user's rights, until one cannot be; its error, if there is one, and how
/// many came before it.
pub(super) fn open_each(
    plan: &InitPlan<'_>,
    folder: &CStr,
    flags: i32,
    mut names: Names<'_>,
    opened: &mut [Option<OwnedFd>; MAX_OPENED],
) -> (usize, Result<()>) {
    let mut count = 0;
    let done = as_user(plan, || {
        let at = sys::openat2(sys::CWD, folder, libc::O_PATH | libc::O_DIRECTORY, 0, ANCHORED)?;
        while let Some((mode, name)) = names.next_name()? {
            let room = opened.get_mut(count).ok_or(Errno(libc::E2BIG))?;
            *room = Some(open_below(at.as_raw_fd(), name, flags, mode)?);
            count += 1;
        }
        Ok(())
    });
    (count, done)
}

/// Opens a path without following a link or leaving the folder.
fn open_below(folder: RawFd, path: &CStr, flags: i32, mode: u32) -> Result<OwnedFd> {
    // A FIFO that nobody reads must not hold init up. What is only looked at is not opened, and takes no more flags.
    let flags = match flags & libc::O_PATH {
        0 => flags | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW,
        _ => libc::O_PATH | libc::O_NOFOLLOW,
    };
    let fd = sys::openat2(folder, path, flags, mode, ANCHORED)?;
    if flags & libc::O_CREAT != 0 {
        // It may have been there with another mode.
        sys::fchmod(fd.as_raw_fd(), mode)?;
    }
    Ok(fd)
}

pub(super) fn make_folder(plan: &InitPlan<'_>, path: &CStr) -> Result<()> {
    as_user(plan, || make_folders(path))
}

/// Lists a folder, as the sandbox user sees it, into a file in memory.
pub(super) fn list(plan: &InitPlan<'_>, path: &CStr, limit: u32, is_close: bool) -> Result<OwnedFd> {
    let mut listing = Listing { file: sys::memory_file()?, buffer: [0; 8192], filled: 0 };
    let listed = as_user(plan, || {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = sys::openat2(sys::CWD, path, flags, 0, ANCHORED)?;
        if is_close {
            // Attributes are looked at by name alone.
            sys::fchdir(folder.as_raw_fd())?;
        }
        let mut left = limit;
        let mut buffer = [0u8; 8192];
        while left > 0 {
            let n = sys::getdents(folder.as_raw_fd(), &mut buffer)?;
            if n == 0 {
                break;
            }
            left = list_some(&folder, &buffer[..n], &mut listing, left, is_close)?;
        }
        listing.flush()
    });
    if is_close && sys::chdir(c"/").is_err() {
        // Every path that follows would be below another folder.
        sys::exit(2);
    }
    listed.map(|()| listing.file)
}

/// Entries on their way into a file, many in one write.
struct Listing {
    file: OwnedFd,
    buffer: [u8; 8192],
    filled: usize,
}

impl Listing {
    fn add(&mut self, entry: &ListedEntry<'_>) -> Result<()> {
        let mut buffer = [0; LISTED_ENTRY_BYTES];
        let encoded = entry.encode(&mut buffer)?;
        if self.filled + encoded.len() > self.buffer.len() {
            self.flush()?;
        }
        self.buffer[self.filled..][..encoded.len()].copy_from_slice(encoded);
        self.filled += encoded.len();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let filled = std::mem::take(&mut self.filled);
        match sys::write(self.file.as_raw_fd(), &self.buffer[..filled])? {
            n if n == filled => Ok(()),
            _ => Err(Errno(libc::ENOMEM)),
        }
    }
}

/// Lists one buffer full of entries and returns how many more are wanted.
fn list_some(
    folder: &OwnedFd,
    mut entries: &[u8],
    listing: &mut Listing,
    mut left: u32,
    is_close: bool,
) -> Result<u32> {
    while let Some((name, rest)) = sys::next_entry(entries) {
        entries = rest;
        if left == 0 || name == c"." || name == c".." {
            continue;
        }
        // It may be gone again.
        let Ok(stat) = sys::stat_at(folder.as_raw_fd(), name, libc::AT_SYMLINK_NOFOLLOW) else { continue };
        listing.add(&ListedEntry {
            mode: stat.st_mode,
            size_bytes: stat.st_size as u64,
            links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
            has_attributes: is_close && sys::has_attributes(name)?,
            name,
        })?;
        left -= 1;
    }
    Ok(left)
}

pub(super) fn as_user<T>(plan: &InitPlan<'_>, act: impl FnOnce() -> T) -> T {
    sys::setfsgid(plan.payload_id);
    sys::setfsuid(plan.payload_id);
    let result = act();
    sys::setfsuid(plan.init_id);
    sys::setfsgid(plan.init_id);
    if !plan.leaves_out(Control::DiesWithHost) {
        let _ = super::lockdown::die_with_parent();
    }
    result
}

/// Removes a file, or a folder that is empty, with the sandbox user's rights.
pub(super) fn remove_as_user(plan: &InitPlan<'_>, path: &CStr, is_folder: bool) -> Result<()> {
    as_user(plan, || {
        let (folder, name) = parent(path)?;
        match is_folder {
            true => sys::rmdir(folder.as_raw_fd(), name),
            false => sys::unlink(folder.as_raw_fd(), name),
        }
    })
}

/// Renames something with the sandbox user's rights. Neither place is reached through a link.
pub(super) fn rename(plan: &InitPlan<'_>, from: &CStr, to: &CStr) -> Result<()> {
    as_user(plan, || {
        make_parents_of(to)?;
        let ((from, old), (to, new)) = (parent(from)?, parent(to)?);
        sys::rename(from.as_raw_fd(), old, to.as_raw_fd(), new)
    })
}

/// Sets the permission bits of a plain file or a folder, and whether a folder is sticky, with the sandbox user's rights.
/// No bit that would let it run as somebody else is set.
pub(super) fn set_mode(plan: &InitPlan<'_>, path: &CStr, mode: u32) -> Result<()> {
    as_user(plan, || {
        let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
        let fd = sys::openat2(sys::CWD, path, flags, 0, ANCHORED)?;
        match sys::fstat(fd.as_raw_fd())?.st_mode & libc::S_IFMT {
            libc::S_IFREG => sys::fchmod(fd.as_raw_fd(), mode & 0o777),
            libc::S_IFDIR => sys::fchmod(fd.as_raw_fd(), mode & 0o1777),
            _ => Err(Errno(libc::ENXIO)),
        }
    })
}

/// Makes a link with the sandbox user's rights. Its place is not reached through another one.
pub(super) fn link(plan: &InitPlan<'_>, path: &CStr, target: &CStr) -> Result<()> {
    as_user(plan, || {
        make_parents_of(path)?;
        let (folder, name) = parent(path)?;
        sys::symlink_at(target, folder.as_raw_fd(), name)
    })
}

/// Removes a file through its folder, which is opened without following a link.
fn remove(path: &CStr) -> Result<()> {
    let (folder, name) = parent(path)?;
    sys::unlink(folder.as_raw_fd(), name)
}

/// The folder of a path, opened without following a link, and the last name in it.
fn parent(path: &CStr) -> Result<(OwnedFd, &CStr)> {
    let bytes = path.to_bytes_with_nul();
    let cut = bytes.iter().rposition(|b| *b == b'/').ok_or(Errno(libc::EACCES))?;
    let mut folder = [0u8; libc::PATH_MAX as usize];
    folder.get_mut(..cut).ok_or(Errno(libc::ENAMETOOLONG))?.copy_from_slice(&bytes[..cut]);
    let folder = CStr::from_bytes_until_nul(&folder).map_err(|_| Errno(libc::EINVAL))?;
    let name = CStr::from_bytes_with_nul(&bytes[cut + 1..]).map_err(|_| Errno(libc::EINVAL))?;
    let folder = sys::openat2(sys::CWD, folder, libc::O_PATH | libc::O_DIRECTORY, 0, ANCHORED)?;
    Ok((folder, name))
}

fn make_parents_of(path: &CStr) -> Result<()> {
    let bytes = path.to_bytes();
    match bytes.iter().rposition(|b| *b == b'/') {
        Some(end) => walk(&bytes[..end]),
        None => Ok(()),
    }
}

/// Makes every folder of a path that is not there yet.
pub(super) fn make_folders(path: &CStr) -> Result<()> {
    walk(path.to_bytes())
}

fn walk(path: &[u8]) -> Result<()> {
    let mut at = sys::open(sys::CWD, c"/", libc::O_PATH | libc::O_DIRECTORY, 0)?;
    for name in path.split(|b| *b == b'/').filter(|name| !name.is_empty() && *name != b".") {
        let mut buffer = [0u8; NAME_BYTES];
        if name.len() >= NAME_BYTES {
            return Err(Errno(libc::ENAMETOOLONG));
        }
        buffer[..name.len()].copy_from_slice(name);
        let name = CStr::from_bytes_until_nul(&buffer).map_err(|_| Errno(libc::EINVAL))?;
        at = step_into(&at, name)?;
    }
    Ok(())
}

fn step_into(parent: &OwnedFd, name: &CStr) -> Result<OwnedFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    match sys::openat2(parent.as_raw_fd(), name, flags, 0, ANCHORED) {
        Err(Errno(libc::ENOENT)) => {
            match sys::mkdir(parent.as_raw_fd(), name, 0o755) {
                Ok(()) | Err(Errno(libc::EEXIST)) => {}
                Err(errno) => return Err(errno),
            }
            sys::openat2(parent.as_raw_fd(), name, flags, 0, ANCHORED)
        }
        other => other,
    }
}
