//! Mounts at places of our own, for a daemon that is told of nothing but paths: folders that were opened before, and
//! memory. Whoever may write above such a place decides what the daemon finds there, so it has to be root's alone.

use crate::sys;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A mount that is there until this is dropped. Copies that somebody made of it stay.
#[derive(Debug)]
pub struct Attached {
    at: PathBuf,
}

impl Attached {
    /// Attaches the very folder that was opened, whatever has its path by now, and nothing that is mounted below it.
    pub fn folder(folder: BorrowedFd<'_>, at: &Path, read_only: bool) -> io::Result<Self> {
        let mount = sys::clone_mount(folder.as_raw_fd(), c"")?;
        let also = if read_only { sys::MOUNT_ATTR_RDONLY } else { 0 };
        let set = sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV | also;
        // The descriptor is for id-mapped mounts only.
        sys::mount_setattr(mount.as_raw_fd(), set, -1)?;
        attach(mount.as_raw_fd(), at)
    }

    /// Attaches a filesystem in memory that holds at most so many bytes and files, and belongs to a user.
    pub fn memory(at: &Path, bytes: u64, files: u64, user: u32) -> io::Result<Self> {
        let filesystem = sys::fsopen(c"tmpfs")?;
        let settings = [
            (c"size", bytes.to_string()),
            (c"nr_inodes", files.to_string()),
            (c"mode", "0755".to_owned()),
            (c"uid", user.to_string()),
            (c"gid", user.to_string()),
        ];
        for (key, value) in settings {
            sys::fsconfig_set(filesystem.as_raw_fd(), key, Some(&CString::new(value)?))?;
        }
        sys::fsconfig_create(filesystem.as_raw_fd())?;
        let attributes = sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
        attach(sys::fsmount(filesystem.as_raw_fd(), attributes)?.as_raw_fd(), at)
    }
}

fn attach(mount: std::os::fd::RawFd, at: &Path) -> io::Result<Attached> {
    sys::attach_mount(mount, &CString::new(at.as_os_str().as_bytes())?)?;
    Ok(Attached { at: at.to_owned() })
}

impl Drop for Attached {
    fn drop(&mut self) {
        // What cannot be detached now is found by the next one that looks for what was left.
        let _ = detach(&self.at);
    }
}

/// Takes away the mount at a place, if there is one. A link there is not followed.
pub fn detach(at: &Path) -> io::Result<()> {
    let path = CString::new(at.as_os_str().as_bytes())?;
    Ok(sys::umount(&path, libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW)?)
}
