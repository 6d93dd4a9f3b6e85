//! System calls and filters.

use super::{degraded, missing, ok, required};
use cofferdam_core::Check;
use cofferdam_linux::cgroup::Layout;
use cofferdam_linux::features::{self, Feature, KILLED};
use cofferdam_linux::sys::Errno;

const GROUP: &str = "kernel";

/// A kernel's version, as far as it decides anything.
pub(super) type Version = (u32, u32);

pub(super) fn checks(layout: &Layout) -> Vec<Check> {
    let (release, running) = release();
    let probe = |name, feature: Feature, since| call(name, feature.probe(), running, since);
    // On version 1 processes join their group by themselves.
    let into_cgroup = probe("clone into a cgroup", Feature::CloneIntoCgroup, (5, 7));
    vec![
        ok(GROUP, "version", if release.is_empty() { "unknown".to_owned() } else { release }),
        required(probe("clone3", Feature::Clone3, (5, 3))),
        Check { required: matches!(layout, Layout::V2 { .. }), ..into_cgroup },
        required(probe("pidfd", Feature::Pidfd, (5, 3))),
        required(probe("close_range", Feature::CloseRange, (5, 9))),
        required(probe("openat2", Feature::Openat2, (5, 6))),
        required(seccomp(Feature::Seccomp.probe(), running)),
        required(keyrings(Feature::Keyring.probe(), running)),
        landlock(features::landlock(), running),
    ]
}

/// The running kernel's version, as it says it and as far as it matters.
pub(super) fn release() -> (String, Version) {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let running = parse_release(&text).unwrap_or_default();
    (text.trim().to_owned(), running)
}

/// The running kernel's version.
pub(crate) fn version() -> Version {
    release().1
}

/// `6.1.0-18-amd64` as (6, 1).
fn parse_release(text: &str) -> Option<Version> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Why a probe failed, in a few words.
pub(super) fn reason(errno: Errno) -> String {
    match errno {
        KILLED => "the process that tried it was killed".to_owned(),
        Errno(libc::ENOSYS) => "not there (ENOSYS)".to_owned(),
        Errno(libc::ETIMEDOUT) => "it does not come back".to_owned(),
        other => {
            let text = other.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    }
}

/// A kernel that is new enough and still refuses is told to by something around this process.
pub(super) fn call_fix(running: Version, (major, minor): Version) -> String {
    if running < (major, minor) {
        return format!("boot Linux {major}.{minor} or later");
    }
    "the filter of a container or service forbids it; in Docker: docker run --privileged, or --security-opt \
     seccomp=unconfined --security-opt apparmor=unconfined --cap-add SYS_ADMIN"
        .to_owned()
}

pub(super) fn call(name: &str, result: Result<(), Errno>, running: Version, since: Version) -> Check {
    match result {
        Ok(()) => ok(GROUP, name, "works"),
        Err(errno) => missing(GROUP, name, reason(errno), call_fix(running, since)),
    }
}

fn seccomp(result: Result<(), Errno>, running: Version) -> Check {
    match result {
        Ok(()) => ok(GROUP, "seccomp filters", "works"),
        Err(errno @ Errno(libc::EINVAL | libc::ENOSYS)) => {
            let fix = "boot a kernel with CONFIG_SECCOMP_FILTER=y";
            missing(GROUP, "seccomp filters", reason(errno), fix)
        }
        Err(errno) => missing(GROUP, "seccomp filters", reason(errno), call_fix(running, (3, 5))),
    }
}

fn keyrings(result: Result<(), Errno>, running: Version) -> Check {
    match result {
        Ok(()) => ok(GROUP, "keyrings", "a session gets one of its own"),
        Err(errno @ Errno(libc::EDQUOT)) => {
            let fix = "sudo sysctl -w kernel.keys.maxkeys=2000 kernel.keys.maxbytes=200000";
            missing(GROUP, "keyrings", reason(errno), fix)
        }
        Err(errno @ Errno(libc::ENOSYS)) => {
            let fix = format!("boot a kernel with CONFIG_KEYS=y; or {}", call_fix(running, (2, 6)));
            missing(GROUP, "keyrings", reason(errno), fix)
        }
        Err(errno) => missing(GROUP, "keyrings", reason(errno), call_fix(running, (2, 6))),
    }
}

fn landlock(abi: Result<u32, Errno>, running: Version) -> Check {
    let name = "landlock";
    match abi {
        Ok(abi @ ..=2) => {
            let found = format!("ABI {abi}; from 3 on it also guards truncation");
            degraded(GROUP, name, found, "boot Linux 6.2 or later")
        }
        Ok(abi) => ok(GROUP, name, format!("ABI {abi}")),
        Err(Errno(libc::EOPNOTSUPP)) => {
            let fix = "put landlock first in lsm= on the kernel's command line (GRUB_CMDLINE_LINUX in \
                       /etc/default/grub, then sudo update-grub and reboot)";
            missing(GROUP, name, "switched off at boot", fix)
        }
        Err(errno) if running >= (5, 13) => {
            let fix =
                format!("boot a kernel with CONFIG_SECURITY_LANDLOCK=y; or {}", call_fix(running, (5, 13)));
            missing(GROUP, name, reason(errno), fix)
        }
        Err(errno) => missing(GROUP, name, reason(errno), call_fix(running, (5, 13))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::CheckState;

    #[test]
    fn releases_are_read_as_far_as_needed() {
        for (text, version) in [
            ("6.1.0-18-amd64", Some((6, 1))),
            ("5.15", Some((5, 15))),
            ("6.18.44-fc-v490", Some((6, 18))),
            ("", None),
            ("linux", None),
            ("6", None),
        ] {
            assert_eq!(parse_release(text), version, "{text}");
        }
    }

    #[test]
    fn an_old_kernel_and_a_filter_have_different_fixes() {
        let fix = |running| call("clone3", Err(Errno(libc::ENOSYS)), running, (5, 3)).fix.unwrap();
        assert_eq!(fix((4, 19)), "boot Linux 5.3 or later");
        assert!(fix((6, 1)).contains("seccomp=unconfined"));
    }

    #[test]
    fn landlock_is_told_by_its_answer() {
        assert_eq!(landlock(Ok(7), (6, 18)).state, CheckState::Ok);
        assert_eq!(landlock(Ok(2), (6, 1)).state, CheckState::Degraded);
        let off = landlock(Err(Errno(libc::EOPNOTSUPP)), (6, 1));
        assert!(off.state == CheckState::Missing && off.fix.unwrap().contains("lsm="));
        let old = landlock(Err(Errno(libc::ENOSYS)), (5, 10));
        assert_eq!(old.fix.as_deref(), Some("boot Linux 5.13 or later"));
    }
}
