//! The walls of a container that somebody else makes: what it is asked for, which is what a native sandbox has, and
//! what is put up last, from inside, as far as no privilege is needed.

use crate::init::{CORE, MASKED_FILES, MASKED_FOLDERS, RLIMITS};
use crate::{seccomp, sys};

/// The resource limits of a process, by the names that they are asked for by: those of a native one, and never more
/// than this process has, since raising one takes a privilege that neither a user namespace nor every daemon has.
pub fn rlimits() -> Vec<(&'static str, u64)> {
    let lowered = |(name, resource, value): (&'static str, libc::__rlimit_resource_t, u64)| {
        let hard = sys::getrlimit(resource as i32).map_or(value, |(_, hard)| hard);
        (name, value.min(hard))
    };
    RLIMITS.into_iter().chain([("core", libc::RLIMIT_CORE, CORE)]).map(lowered).collect()
}

/// What of `/proc` tells of the host and is covered, folders and files.
pub fn masked_in_proc() -> Vec<&'static str> {
    let inside = |path: &&'static std::ffi::CStr| path.to_str().ok()?.strip_prefix("/new");
    MASKED_FOLDERS.iter().chain(MASKED_FILES).filter_map(inside).collect()
}

/// Default signals and the exact filter, for good; then nothing but exec is left to do. The error is an errno.
pub fn lock_down() -> Result<(), i32> {
    sys::reset_signals();
    seccomp::install(seccomp::payload_one_id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_asked_for_what_native_sandboxes_have() {
        let masked = masked_in_proc();
        assert_eq!(masked.len(), MASKED_FOLDERS.len() + MASKED_FILES.len());
        assert!(masked.contains(&"/proc/kallsyms") && masked.contains(&"/proc/sys"), "{masked:?}");
        let limits = rlimits();
        assert_eq!(limits.len(), RLIMITS.len() + 1);
        for (name, at_most) in [("sigpending", 4096), ("core", 1), ("rtprio", 0)] {
            assert!(limits.iter().any(|(known, value)| *known == name && *value <= at_most), "{limits:?}");
        }
    }
}
