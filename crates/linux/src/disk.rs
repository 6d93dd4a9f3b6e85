//! A filesystem on disk for one sandbox: an image file behind a loop device, mounted and not attached anywhere yet.
//!
//! The device goes with the mount and the image with the device, so nothing has to be cleaned up, whoever is
//! killed. Only this kernel ever writes the filesystem's own structures: no sandbox reaches the device. Where
//! images lie, and what is in them at first, is the caller's to say.

use crate::sys::{self, Errno};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Other processes may take the device that was free a moment ago; so many in a row do not.
const ATTEMPTS: usize = 64;

/// Settings of the filesystem. It never outlives its sandbox, so nothing is written for the sake of a crash: a
/// guest's fsync does not make the host's disk flush, tables are not zeroed in the background, and a file that takes
/// the place of another is not written out first. After an error in it, it can only be read.
const OPTIONS: [(&CStr, Option<&CStr>); 4] = [
    (c"errors", Some(c"remount-ro")),
    (c"noinit_itable", None),
    (c"nobarrier", None),
    (c"noauto_da_alloc", None),
];

/// A step that failed, and why.
pub type DiskError = (&'static str, Errno);

/// Mounts an image; what comes back is a detached mount, which holds device and image.
pub fn mount_image(image: BorrowedFd<'_>) -> Result<OwnedFd, DiskError> {
    // Open until the mount has it: the device is let go of by its last user.
    let (path, _device) = attach(image)?;
    let failed = |errno| ("mounting the disk", errno);
    let filesystem = sys::fsopen(c"ext4").map_err(failed)?;
    let set = |key, value| sys::fsconfig_set(filesystem.as_raw_fd(), key, value).map_err(failed);
    set(c"source", Some(&*path))?;
    for (key, value) in OPTIONS {
        set(key, value)?;
    }
    sys::fsconfig_create(filesystem.as_raw_fd()).map_err(failed)?;
    let flags = sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
    sys::fsmount(filesystem.as_raw_fd(), flags).map_err(failed)
}

/// Puts a loop device before an image.
fn attach(image: BorrowedFd<'_>) -> Result<(CString, OwnedFd), DiskError> {
    let control = sys::open(sys::CWD, c"/dev/loop-control", libc::O_RDWR, 0);
    let control = control.map_err(|errno| ("opening /dev/loop-control", errno))?;
    let failed = |errno| ("attaching a loop device", errno);
    for _ in 0..ATTEMPTS {
        let number = sys::free_loop_device(control.as_raw_fd()).map_err(failed)?;
        let path = CString::new(format!("/dev/loop{number}")).map_err(|_| failed(Errno(libc::EINVAL)))?;
        let device = sys::open(sys::CWD, &path, libc::O_RDWR, 0).map_err(failed)?;
        match sys::configure_loop_device(device.as_raw_fd(), image.as_raw_fd()) {
            Ok(()) => return Ok((path, device)),
            Err(Errno(libc::EBUSY)) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Err(failed(Errno(libc::EBUSY)))
}

/// Gives up a filesystem of which nothing is wanted any more: what is not on disk yet is not written there.
///
/// Without it, the unmount would first write out everything that the sandbox had left in memory.
pub(crate) fn give_up(folder: RawFd) -> sys::Result<()> {
    sys::shut_down_filesystem(folder)
}

/// Copies what a sparse file holds, and leaves its holes to be holes.
pub fn copy_sparse(from: BorrowedFd<'_>, to: BorrowedFd<'_>, bytes: u64) -> sys::Result<()> {
    sys::truncate(to.as_raw_fd(), bytes as i64)?;
    let mut buffer = [0; 64 << 10];
    let mut at = 0;
    loop {
        let start = match sys::seek(from.as_raw_fd(), at, libc::SEEK_DATA) {
            // Only a hole is left.
            Err(Errno(libc::ENXIO)) => return Ok(()),
            other => other?,
        };
        let end = sys::seek(from.as_raw_fd(), start, libc::SEEK_HOLE)?;
        at = start;
        while at < end {
            let want = buffer.len().min((end - at) as usize);
            let n = sys::pread(from.as_raw_fd(), &mut buffer[..want], at)?;
            if n == 0 || sys::pwrite(to.as_raw_fd(), &buffer[..n], at)? != n {
                return Err(Errno(libc::EIO));
            }
            at += n as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileExt, MetadataExt};

    #[test]
    fn holes_stay_holes() {
        let folder = std::env::temp_dir().join(format!("cofferdam-sparse-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let make =
            |name| File::options().read(true).write(true).create_new(true).open(folder.join(name)).unwrap();
        let (from, to) = (make("from"), make("to"));
        from.set_len(64 << 20).unwrap();
        let pieces: [(u64, &[u8]); 3] = [(0, b"first"), (1 << 20, &[7; 100_000]), ((64 << 20) - 4, b"last")];
        for (at, bytes) in pieces {
            from.write_all_at(bytes, at).unwrap();
        }
        copy_sparse(from.as_fd(), to.as_fd(), 64 << 20).unwrap();
        assert!(fs::read(folder.join("from")).unwrap() == fs::read(folder.join("to")).unwrap());
        let held = to.metadata().unwrap().blocks() * 512;
        assert!(held < 1 << 20, "{held} bytes");
        fs::remove_dir_all(folder).unwrap();
    }
}
