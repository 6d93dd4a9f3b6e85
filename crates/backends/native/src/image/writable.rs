//! Whether a layer can be shown with other owners, which a writable root needs.

use crate::doctor::kernel_version;
use cofferdam_linux::sys;
use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::path::Path;

const OVERLAYFS: i64 = 0x794c_7630;
const TMPFS: i64 = 0x0102_1994;

/// Whether the filesystem of a folder has id-mapped mounts, as far as that is known without trying.
pub(super) fn can_change_owners(folder: &Path) -> bool {
    let kind = || -> Option<i64> {
        let path = CString::new(folder.as_os_str().as_encoded_bytes()).ok()?;
        let fd = sys::open(sys::CWD, &path, libc::O_PATH | libc::O_DIRECTORY, 0).ok()?;
        sys::fstatfs(fd.as_raw_fd()).ok().map(|stat| stat.kind)
    };
    // A folder that is not there is somebody else's error to tell.
    kind().is_none_or(|kind| has_id_mapped_mounts(kind, kernel_version()))
}

/// Overlays take such layers from Linux 5.19 on.
fn has_id_mapped_mounts(kind: i64, version: (u32, u32)) -> bool {
    match kind {
        OVERLAYFS => false,
        TMPFS => version >= (6, 3),
        _ => version >= (5, 19),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_depends_on_filesystem_and_kernel() {
        const EXT4: i64 = 0xEF53;
        assert!(has_id_mapped_mounts(EXT4, (5, 19)) && !has_id_mapped_mounts(EXT4, (5, 15)));
        assert!(has_id_mapped_mounts(TMPFS, (6, 12)) && !has_id_mapped_mounts(TMPFS, (6, 1)));
        assert!(!has_id_mapped_mounts(OVERLAYFS, (6, 18)));
        assert!(can_change_owners(Path::new("/no/such/folder")));
    }
}
