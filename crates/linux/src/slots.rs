//! Ranges of host user ids: each sandbox has its own while it lives, held by a lock on a file.
//!
//! Pipes, inotify instances and other per-user limits of the kernel are counted per host id, so two sandboxes
//! must never share one. The lock goes with the process that holds it, whatever ends that process.

use crate::sys::{self, Errno, Result};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Ids per sandbox.
pub const IDS_PER_SLOT: u32 = 65_536;

/// The first id: above what distributions, systemd and container tools hand out.
pub const FIRST_ID: u32 = 0x7000_0000;

/// Ranges up to the next reserved id, 0x7FFE_0000.
pub const SLOTS: u32 = 4094;

/// The folder of lock files.
#[derive(Debug)]
pub struct Slots {
    folder: OwnedFd,
    next: u32,
}

/// A range that is held.
#[derive(Debug)]
pub struct Slot {
    pub number: u32,
    lock: OwnedFd,
}

impl Slot {
    pub fn first_id(&self) -> u32 {
        first_id(self.number)
    }

    /// The name of everything on the host that belongs to this sandbox.
    pub fn name(&self) -> String {
        slot_name(self.number)
    }

    pub fn lock(&self) -> &OwnedFd {
        &self.lock
    }
}

/// The first host id of a range.
pub fn first_id(number: u32) -> u32 {
    FIRST_ID + number % SLOTS * IDS_PER_SLOT
}

pub fn slot_name(number: u32) -> String {
    format!("s{number}")
}

impl Slots {
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
        let folder = sys::open(sys::CWD, &path, libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
        // Launchers start looking at different places, so that they seldom meet.
        let next = (sys::getpid() as u32).wrapping_mul(613) % SLOTS;
        Ok(Self { folder, next })
    }

    /// Takes a range that nobody holds.
    pub fn take(&mut self) -> Result<Slot> {
        for _ in 0..SLOTS {
            let number = self.next;
            self.next = (self.next + 1) % SLOTS;
            if let Some(slot) = self.try_take(number)? {
                return Ok(slot);
            }
        }
        Err(Errno(libc::EUSERS))
    }

    fn try_take(&self, number: u32) -> Result<Option<Slot>> {
        let name = CString::new(number.to_string()).map_err(|_| Errno(libc::EINVAL))?;
        let lock = sys::open(self.folder.as_raw_fd(), &name, libc::O_RDWR | libc::O_CREAT, 0o600)?;
        match sys::try_lock(lock.as_raw_fd()) {
            Ok(()) => Ok(Some(Slot { number, lock })),
            Err(Errno(libc::EWOULDBLOCK)) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Whether a range is free, by taking it for a moment.
    pub fn is_free(&self, number: u32) -> bool {
        matches!(self.try_take(number), Ok(Some(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_held_once_and_comes_back() {
        let folder = std::env::temp_dir().join(format!("cofferdam-slots-{}", std::process::id()));
        let mut a = Slots::open(&folder).unwrap();
        let mut b = Slots::open(&folder).unwrap();
        let held = a.take().unwrap();
        assert!(!b.is_free(held.number));
        let other = b.take().unwrap();
        assert_ne!(held.first_id(), other.first_id());
        let number = held.number;
        drop(held);
        assert!(b.is_free(number));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_last_range_stays_below_the_reserved_ids() {
        const { assert!(FIRST_ID + SLOTS * IDS_PER_SLOT <= 0x7FFE_0000) }
    }
}
