//! Ranges of host user ids: each sandbox has its own while it lives, held by a lock on a file.
//!
//! Pipes, inotify instances and other per-user limits of the kernel are counted per host id, so two sandboxes
//! must never share one. The lock goes with the process that holds it, whatever ends that process.
//!
//! A range of which something is left that cannot be ended is set aside: its file says so, and nobody takes it
//! again until the machine restarts.

use crate::sys::{self, Errno, Result};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
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

    /// Sets the range aside until the machine restarts.
    pub fn set_aside(&self, reason: &str) -> Result<()> {
        set_aside(self.lock.as_raw_fd(), reason)
    }
}

/// Sets the range of a lock file aside until the machine restarts; the file keeps which boot that was, as it may
/// lie in a folder that outlives it.
pub fn set_aside(lock: RawFd, reason: &str) -> Result<()> {
    let boot = boot_id().unwrap_or([b'?'; BOOT_ID_BYTES]);
    let mut text = boot.to_vec();
    text.push(b' ');
    text.extend(reason.bytes().filter(|b| !b.is_ascii_control()).take(REASON_BYTES));
    sys::truncate(lock, 0)?;
    sys::write(lock, &text).map(drop)
}

/// The length of a boot id, as the kernel writes it.
const BOOT_ID_BYTES: usize = 36;

/// Enough for a sentence.
const REASON_BYTES: usize = 200;

fn boot_id() -> Option<[u8; BOOT_ID_BYTES]> {
    let mut id = [0; BOOT_ID_BYTES];
    let read = sys::read_file(sys::CWD, c"/proc/sys/kernel/random/boot_id", &mut id).ok()?;
    (read.len() == BOOT_ID_BYTES).then_some(id)
}

/// Why a range was set aside since the machine was started, if it was. In doubt it was.
fn reason_of(text: &[u8]) -> Option<String> {
    let (boot, reason) = text.split_at_checked(BOOT_ID_BYTES).unwrap_or((text, b""));
    let is_past = boot_id().is_some_and(|now| boot.len() == BOOT_ID_BYTES && boot[0] != b'?' && boot != now);
    (!text.is_empty() && !is_past).then(|| String::from_utf8_lossy(reason.trim_ascii()).into_owned())
}

/// The ranges that were set aside since the machine was started, and why.
pub fn list_set_aside(folder: &Path) -> Vec<(u32, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        Some((number, reason_of(&fs::read(entry.path()).ok()?)?))
    };
    let mut list: Vec<(u32, String)> = entries.filter_map(read).collect();
    list.sort_unstable();
    list
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

    /// Takes one range, unless somebody holds it or it was set aside.
    pub fn try_take(&self, number: u32) -> Result<Option<Slot>> {
        let name = CString::new(number.to_string()).map_err(|_| Errno(libc::EINVAL))?;
        let lock = sys::open(self.folder.as_raw_fd(), &name, libc::O_RDWR | libc::O_CREAT, 0o600)?;
        match sys::try_lock(lock.as_raw_fd()) {
            Ok(()) => {
                let mut text = [0; BOOT_ID_BYTES + REASON_BYTES + 1];
                let n = sys::pread(lock.as_raw_fd(), &mut text, 0)?;
                if n == 0 {
                    return Ok(Some(Slot { number, lock }));
                }
                if reason_of(&text[..n]).is_some() {
                    return Ok(None);
                }
                sys::truncate(lock.as_raw_fd(), 0)?;
                Ok(Some(Slot { number, lock }))
            }
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
    fn a_range_that_was_set_aside_is_nobodys_until_the_machine_restarts() {
        let folder = std::env::temp_dir().join(format!("cofferdam-aside-{}", std::process::id()));
        let mut slots = Slots::open(&folder).unwrap();
        let held = slots.take().unwrap();
        let number = held.number;
        held.set_aside("init does not\ndie").unwrap();
        drop(held);
        assert!(!slots.is_free(number));
        slots.next = number;
        assert_ne!(slots.take().unwrap().number, number, "it was handed out again");
        assert_eq!(list_set_aside(&folder), [(number, "init does notdie".to_owned())]);
        let file = folder.join(number.to_string());
        // Half of a mark, or one without a boot, is a mark.
        for text in ["x", "????????????????????????????????????", "???????????????????????????????????? why"]
        {
            fs::write(&file, text).unwrap();
            assert!(!slots.is_free(number), "{text}");
        }
        fs::write(&file, "00000000-0000-0000-0000-000000000000 in another life").unwrap();
        assert_eq!(list_set_aside(&folder), []);
        assert!(slots.is_free(number));
        assert_eq!(fs::read(&file).unwrap(), b"");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_last_range_stays_below_the_reserved_ids() {
        const { assert!(FIRST_ID + SLOTS * IDS_PER_SLOT <= 0x7FFE_0000) }
    }
}
