//! Whether a sandbox can have a /proc of its own.

use super::kernel::reason;
use super::{missing, ok, required};
use cofferdam_core::Check;
use cofferdam_linux::features::Feature;

const GROUP: &str = "proc";
const NAME: &str = "a new /proc";

/// More names than this say nothing more.
const NAMED: usize = 3;

pub(super) fn check() -> Check {
    let Err(errno) = Feature::UserProc.probe() else {
        return required(ok(GROUP, NAME, "can be mounted in a user namespace"));
    };
    let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let covers = covers(&mountinfo);
    let row = if covers.is_empty() {
        missing(
            GROUP,
            NAME,
            reason(errno),
            "a container or service around this process forbids it; in Docker: docker run --privileged",
        )
    } else {
        let more = if covers.len() > NAMED { ", …" } else { "" };
        let named = covers[..covers.len().min(NAMED)].join(", ");
        missing(
            GROUP,
            NAME,
            format!("{}: this one is covered at {named}{more}", reason(errno)),
            "let the container have all of /proc: docker run --security-opt systempaths=unconfined, podman run \
             --security-opt unmask=ALL, or procMount: Unmasked in Kubernetes",
        )
    };
    required(row)
}

/// What is mounted below /proc. The kernel takes it for a wish to hide something, except on empty folders.
fn covers(mountinfo: &str) -> Vec<&str> {
    let targets = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    targets.filter(|target| target.starts_with("/proc/") && *target != "/proc/sys/fs/binfmt_misc").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_of_proc_are_found() {
        let text = "\
22 1 0:20 / /proc rw - proc proc rw
23 22 0:20 /kcore /proc/kcore rw - tmpfs tmpfs rw
24 22 0:21 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw
25 1 0:22 / /process rw - tmpfs tmpfs rw
short";
        assert_eq!(covers(text), ["/proc/kcore"]);
    }
}
