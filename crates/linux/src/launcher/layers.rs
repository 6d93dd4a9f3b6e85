//! Layers for a root that can be written: what the host's root owns in them belongs to the sandbox's user.
//!
//! Modes decide who may change a file, and the files of an image are root's. So each sandbox with a writable root
//! has mounts of its own of the layers, with other owners; on disk nothing changes, and the mounts stay read-only.
//! They are attached here while the sandbox is cloned, as its mount namespace is a copy of this one.

use super::create::PAYLOAD_ID;
use crate::clone::{self, Forked};
use crate::slots::IDS_PER_SLOT;
use crate::sys::{self, Errno, Result};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

/// Where the layers are attached, until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Staged {
    targets: Vec<CString>,
}

impl Drop for Staged {
    fn drop(&mut self) {
        for target in &self.targets {
            // It cannot fail for a mount of our own, and one too many would only be in the way of the next.
            let _ = sys::umount(target, libc::MNT_DETACH);
        }
    }
}

/// The folder that the layers of an image are attached in.
pub(super) fn folder(image: u32) -> String {
    format!("/w{image}")
}

/// Attaches an image's layers, for a sandbox whose ids begin at `first`.
pub(super) fn stage(image: u32, names: &[String], first: u32) -> Result<Staged> {
    let c = |text: String| CString::new(text).map_err(|_| Errno(libc::EINVAL));
    let ids = user_namespace(&id_map(first))?;
    let folder = folder(image);
    make(&c(folder.clone())?)?;
    make(&c(format!("{folder}/empty"))?)?;
    let mut staged = Staged::default();
    for name in names {
        let layer = sys::clone_mount(sys::CWD, &c(format!("/i{image}/{name}"))?)?;
        sys::mount_setattr(layer.as_raw_fd(), sys::MOUNT_ATTR_IDMAP, ids.as_raw_fd())?;
        let target = c(format!("{folder}/{name}"))?;
        make(&target)?;
        sys::attach_mount(layer.as_raw_fd(), &target)?;
        staged.targets.push(target);
    }
    Ok(staged)
}

/// Has the files of a disk, which belong to a sandbox whose ids began at `from`, look like those of one whose ids begin
/// at `to`. On the disk nothing changes.
pub(super) fn map_disk(mount: &OwnedFd, from: u32, to: u32) -> Result<()> {
    let ids = user_namespace(&format!("{from} {to} {IDS_PER_SLOT}\n"))?;
    sys::mount_setattr(mount.as_raw_fd(), sys::MOUNT_ATTR_IDMAP, ids.as_raw_fd())
}

fn make(folder: &CString) -> Result<()> {
    match sys::mkdir(sys::CWD, folder, 0o755) {
        Ok(()) | Err(Errno(libc::EEXIST)) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Ids of the layers, and what they become outside: root and the sandbox's user change places, all others are the
/// sandbox's own of the same number.
fn id_map(first: u32) -> String {
    let (user, rest) = (PAYLOAD_ID, PAYLOAD_ID + 1);
    format!(
        "0 {} 1\n1 {} {}\n{user} {first} 1\n{rest} {} {}\n",
        first + user,
        first + 1,
        user - 1,
        first + rest,
        IDS_PER_SLOT - rest,
    )
}

/// A user namespace with a map, which nothing lives in.
fn user_namespace(map: &str) -> Result<OwnedFd> {
    let (wait, done) = sys::pipe()?;
    // SAFETY: the launcher has one thread, and the child only waits.
    match unsafe { clone::fork_into(libc::CLONE_NEWUSER as u64, None) }? {
        Forked::Child => {
            sys::close(done.as_raw_fd());
            let _ = sys::read(wait.as_raw_fd(), &mut [0; 1]);
            sys::exit(0)
        }
        Forked::Parent { pid, .. } => {
            let path =
                |file: &str| CString::new(format!("/proc/{pid}/{file}")).map_err(|_| Errno(libc::EINVAL));
            let write = |file: &str| sys::write_file(sys::CWD, &path(file)?, map.as_bytes());
            let mapped = write("uid_map").and_then(|()| write("gid_map"));
            let opened = mapped.and_then(|()| sys::open(sys::CWD, &path("ns/user")?, libc::O_RDONLY, 0));
            drop(done);
            sys::wait_pid(pid)?;
            opened
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_its_own_and_root_is_the_user() {
        let map = id_map(70_000);
        let lines = map.lines().map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<u32>>());
        let mut seen: Vec<(u32, u32)> = Vec::new();
        for line in lines {
            seen.extend((0..line[2]).map(|i| (line[0] + i, line[1] + i)));
        }
        assert_eq!((seen[0], seen[1000]), ((0, 71_000), (1000, 70_000)));
        assert_eq!(seen.len(), IDS_PER_SLOT as usize);
        assert!(seen.iter().enumerate().all(|(i, (inner, _))| i as u32 == *inner));
        let mut outer: Vec<u32> = seen.iter().map(|(_, outer)| *outer).collect();
        outer.sort_unstable();
        assert!(outer.iter().enumerate().all(|(i, outer)| 70_000 + i as u32 == *outer));
    }
}
