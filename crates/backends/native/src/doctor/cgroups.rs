//! Limits: which version of cgroups there is, and whether this user may set limits with it.

mod v1;
mod v2;

use super::identity::Identity;
use super::{missing, ok, required};
use cofferdam_core::Check;
use cofferdam_linux::cgroup::{Layout, detect_from};
use std::fs;
use std::path::{Path, PathBuf};

const GROUP: &str = "cgroup";

/// A scope of the user's own systemd, with a group that is the user's.
const SCOPE: &str = "systemd-run --user --scope -p Delegate=yes cofferdam run …";

pub(super) fn checks(layout: &Layout, identity: &Identity) -> Vec<Check> {
    match layout {
        Layout::V1 { mounts } => {
            let mut checks = vec![required(ok(GROUP, "layout", "version 1, a mount for each controller"))];
            checks.extend(v1::checks(mounts));
            checks
        }
        Layout::V2 { base } => {
            let found = format!("version 2, sandboxes in {}", base.display());
            let mut checks = vec![required(ok(GROUP, "layout", found))];
            if !identity.is_root() {
                checks.push(required(ok(
                    GROUP,
                    "delegation",
                    "memory, pids and cpu are this user's to limit",
                )));
            }
            checks.extend(v2::checks(base, identity));
            checks
        }
        Layout::None { reason } => {
            let read = |path| fs::read_to_string(path).unwrap_or_default();
            let as_root = detect_from(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"), true);
            none(reason, &as_root, identity)
        }
    }
}

/// No limits for this user. What helps depends on what root would find.
fn none(reason: &str, as_root: &Layout, identity: &Identity) -> Vec<Check> {
    if identity.is_root() || matches!(as_root, Layout::None { .. }) {
        let fix = "sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup";
        return vec![required(missing(GROUP, "layout", reason, fix))];
    }
    let (layout, fix) = match as_root {
        Layout::V2 { .. } if reason.contains("controller") => ("version 2", delegate_controllers()),
        Layout::V2 { .. } => ("version 2", SCOPE.to_owned()),
        _ => (
            "version 1",
            format!(
                "sudo cofferdam run …; or, to do without root, boot version 2 (systemd.unified_cgroup_hierarchy=1 \
                 on the kernel's command line) and use {SCOPE}"
            ),
        ),
    };
    let delegation = required(missing(GROUP, "delegation", reason, fix));
    vec![required(ok(GROUP, "layout", layout)), delegation]
}

/// Older versions of systemd hand a user's manager no CPU controller.
fn delegate_controllers() -> String {
    format!(
        "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' | sudo \
         tee /etc/systemd/system/user@.service.d/cofferdam.conf && sudo systemctl daemon-reload && sudo systemctl \
         restart user@$(id -u).service, and then {SCOPE}"
    )
}

/// What helps where a group cannot be made or limited.
fn refused_fix(error: &std::io::Error, mount: &Path) -> String {
    if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem {
        return format!(
            "sudo mount -o remount,rw {}; in a container: docker run --privileged",
            mount.display()
        );
    }
    "run as root of the machine itself; in a container: docker run --privileged".to_owned()
}

/// A group that is gone when this is dropped. It is empty all the time.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn make(parent: &Path) -> std::io::Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("cofferdam-doctor-{}-{number}", std::process::id()));
        fs::create_dir(&path).map(|()| Self(path))
    }

    fn has(&self, file: &str) -> bool {
        self.0.join(file).exists()
    }

    /// Sets a limit and reads it back.
    fn takes(&self, file: &str, value: &str) -> std::io::Result<()> {
        let path = self.0.join(file);
        fs::write(&path, value)?;
        let seen = fs::read_to_string(&path)?;
        if seen.trim() == value {
            return Ok(());
        }
        Err(std::io::Error::other(format!("{file} reads {} after {value} was written", seen.trim())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::CheckState;

    #[test]
    fn the_fix_for_no_limits_fits_what_the_machine_has() {
        let user = Identity::for_tests(1000);
        let fix = |reason, as_root: &Layout| {
            let checks = none(reason, as_root, &user);
            let last = checks.last().cloned().unwrap();
            assert!(last.required && last.state == CheckState::Missing && last.found == reason);
            last.fix.unwrap()
        };
        let v2 = Layout::V2 { base: "/sys/fs/cgroup/cofferdam".into() };
        assert_eq!(fix("this user's cgroup is not delegated to it", &v2), SCOPE);
        assert!(
            fix("the cpu controller is not delegated to this user", &v2).contains("Delegate=cpu memory pids")
        );
        let v1 = Layout::V1 { mounts: Vec::new() };
        assert!(fix("cgroup version 1 cannot be used without root", &v1).starts_with("sudo cofferdam run"));
        let nothing = Layout::None { reason: "no cgroup filesystem is mounted".to_owned() };
        assert!(fix("no cgroup filesystem is mounted", &nothing).starts_with("sudo mount -t cgroup2"));
    }
}
