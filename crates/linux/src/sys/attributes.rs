//! Extended attributes of files.

use super::{Errno, Result, check, ptr};
use std::ffi::CStr;

/// Whether a file has attributes of a user's, or rights for more than its owner, its group and everyone else. A link is
/// not followed.
pub fn has_attributes(path: &CStr) -> Result<bool> {
    let mut names = [0u8; 1024];
    // SAFETY: the path is NUL-terminated, the buffer is as long as is said, and both live across the call.
    let listed =
        check(unsafe { libc::syscall(libc::SYS_llistxattr, ptr(path), names.as_mut_ptr(), names.len()) });
    match listed {
        Ok(n) => Ok(names_attributes(&names[..n])),
        // More than fit: whoever has so many has set some.
        Err(Errno(libc::ERANGE)) => Ok(true),
        Err(Errno(libc::EOPNOTSUPP)) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Whether there is one of those in a list of names, as the kernel writes it. Others are the machine's, such as labels.
pub fn names_attributes(names: &[u8]) -> bool {
    names.split(|b| *b == 0).any(|name| name.starts_with(b"user.") || name.starts_with(b"system."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_the_machine_are_not_counted() {
        assert!(!names_attributes(b"") && !names_attributes(b"security.selinux\0trusted.x\0"));
        assert!(names_attributes(b"security.selinux\0user.x\0"));
        assert!(names_attributes(b"system.posix_acl_access\0"));
    }
}
