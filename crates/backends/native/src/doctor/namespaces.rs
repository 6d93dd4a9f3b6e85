//! User namespaces, what may be done in them, and the switches that distributions put in front of them.

use super::identity::Identity;
use super::kernel::{call, reason, release};
use super::{missing, ok, required};
use cofferdam_core::{Check, CheckState};
use cofferdam_linux::features::Feature;
use cofferdam_linux::sys::Errno;

const GROUP: &str = "kernel";

const MAX: &str = "user.max_user_namespaces";
/// Debian's and Arch's.
const UNPRIVILEGED: &str = "kernel.unprivileged_userns_clone";
/// Ubuntu's, from 23.10 on: namespaces can be made, and then nothing may be done in them.
const APPARMOR: &str = "kernel.apparmor_restrict_unprivileged_userns";

/// The switches, where the kernel has them.
#[derive(Debug, Default, Clone, Copy)]
struct Switches {
    max: Option<u64>,
    unprivileged: Option<u64>,
    apparmor: Option<u64>,
}

/// What was seen of user namespaces; other checks need to know why theirs cannot work.
#[derive(Debug)]
pub(super) struct UserNamespaces {
    made: Result<(), Errno>,
    mounts: Result<(), Errno>,
    fix: String,
    switches: Switches,
}

impl UserNamespaces {
    pub(super) fn probe(identity: &Identity) -> Self {
        let switches = Switches {
            max: read_sysctl(MAX),
            unprivileged: read_sysctl(UNPRIVILEGED),
            apparmor: read_sysctl(APPARMOR),
        };
        let (made, mounts) = (Feature::UserNamespace.probe(), Feature::UserMount.probe());
        let fix = made.and(mounts).map_or_else(|errno| fix(switches, identity, errno), |()| String::new());
        Self { made, mounts, fix, switches }
    }

    /// A row for what only works in a user namespace with mounts: without those, nothing else is to blame.
    pub(super) fn with_mounts(&self, row: impl FnOnce() -> Check) -> Check {
        self.unless_broken(self.made.and(self.mounts), "needs mounts in user namespaces", row)
    }

    fn alone(&self, row: impl FnOnce() -> Check) -> Check {
        self.unless_broken(self.made, "needs user namespaces", row)
    }

    fn unless_broken(&self, base: Result<(), Errno>, why: &str, row: impl FnOnce() -> Check) -> Check {
        let row = row();
        if base.is_ok() || row.state == CheckState::Ok {
            return row;
        }
        Check { found: why.to_owned(), fix: Some(self.fix.clone()), ..row }
    }
}

pub(super) fn checks(spaces: &UserNamespaces, identity: &Identity) -> Vec<Check> {
    let (_, running) = release();
    let row = |name, result: Result<(), Errno>, found: &str| match result {
        Ok(()) => required(ok(GROUP, name, found)),
        Err(errno) => required(missing(GROUP, name, reason(errno), spaces.fix.clone())),
    };
    let call = |name, feature: Feature, since| {
        spaces.with_mounts(|| required(call(name, feature.probe(), running, since)))
    };
    let mut checks = vec![
        row("user namespaces", spaces.made, "can be made"),
        spaces.alone(|| others(&OTHERS.map(|(kind, feature)| (kind, feature.probe())))),
        spaces.alone(|| cgroup_namespace(Feature::CgroupNamespace.probe())),
        row("mounts in them", spaces.mounts, "work"),
        spaces.with_mounts(|| overlay(Feature::UserOverlay.probe())),
        call("open_tree", Feature::OpenTree, (5, 2)),
        call("move_mount", Feature::MoveMount, (5, 2)),
        call("mount_setattr", Feature::MountSetattr, (5, 12)),
    ];
    let works = spaces.made.and(spaces.mounts).is_ok();
    let Switches { max, unprivileged, apparmor } = spaces.switches;
    let switches = [(MAX, max), (UNPRIVILEGED, unprivileged), (APPARMOR, apparmor)];
    checks
        .extend(switches.into_iter().filter_map(|(name, value)| Some(switch(name, value?, works, identity))));
    checks
}

fn read_sysctl(name: &str) -> Option<u64> {
    parse_number(&std::fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?)
}

fn parse_number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Those that every sandbox has besides.
const OTHERS: [(&str, Feature); 5] = [
    ("pid", Feature::PidNamespace),
    ("mount", Feature::MountNamespace),
    ("net", Feature::NetNamespace),
    ("ipc", Feature::IpcNamespace),
    ("uts", Feature::UtsNamespace),
];

fn others(probed: &[(&str, Result<(), Errno>)]) -> Check {
    let name = "other namespaces";
    let failed: Vec<_> = probed
        .iter()
        .filter_map(|(kind, result)| result.err().map(|errno| format!("{kind}: {}", reason(errno))))
        .collect();
    if failed.is_empty() {
        let kinds: Vec<_> = probed.iter().map(|(kind, _)| *kind).collect();
        return required(ok(GROUP, name, kinds.join(", ")));
    }
    let fix = "boot a kernel with CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS and CONFIG_UTS_NS; or raise the limit \
               that is reached: sysctl user | grep namespaces";
    required(missing(GROUP, name, failed.join("; "), fix))
}

fn overlay(result: Result<(), Errno>) -> Check {
    let name = "overlay in them";
    let fix = match result {
        Ok(()) => return required(ok(GROUP, name, "works")),
        Err(Errno(libc::ENODEV)) => {
            "sudo modprobe overlay; to keep it: echo overlay | sudo tee /etc/modules-load.d/overlay.conf"
        }
        Err(_) => "boot Linux 5.11 or later",
    };
    required(missing(GROUP, name, result.map_or_else(reason, |()| String::new()), fix))
}

/// Sandboxes are made without it, and say so.
fn cgroup_namespace(result: Result<(), Errno>) -> Check {
    match result {
        Ok(()) => ok(GROUP, "cgroup namespaces", "can be made"),
        Err(errno) => {
            let fix = "boot a kernel with CONFIG_CGROUPS=y, Linux 4.6 or later";
            missing(GROUP, "cgroup namespaces", reason(errno), fix)
        }
    }
}

/// What stands in the way, and the line that moves it.
fn fix(switches: Switches, identity: &Identity, errno: Errno) -> String {
    if switches.max == Some(0) || errno == Errno(libc::ENOSPC) {
        return set(MAX, 15_000);
    }
    if !identity.is_root() && switches.unprivileged == Some(0) {
        return set(UNPRIVILEGED, 1);
    }
    if !identity.is_root() && switches.apparmor.is_some_and(|value| value != 0) {
        return allow_in_apparmor();
    }
    if matches!(errno, Errno(libc::EINVAL | libc::ENOSYS)) {
        return "boot a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS and CONFIG_UTS_NS"
            .to_owned();
    }
    "a container or service around this process forbids it; in Docker: docker run --privileged, or --security-opt \
     seccomp=unconfined --security-opt apparmor=unconfined --cap-add SYS_ADMIN"
        .to_owned()
}

/// Now, and after the next boot.
fn set(name: &str, value: u64) -> String {
    format!("echo {name}={value} | sudo tee -a /etc/sysctl.d/90-cofferdam.conf && sudo sysctl --system")
}

/// Lets this one program make namespaces; the switch stays on for all others.
fn allow_in_apparmor() -> String {
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_else(|_| "/usr/local/bin/cofferdam".into());
    format!(
        "printf 'abi <abi/4.0>,\\nprofile cofferdam {} flags=(unconfined) {{\\n userns,\\n}}\\n' | sudo tee \
         /etc/apparmor.d/cofferdam && sudo apparmor_parser -r /etc/apparmor.d/cofferdam; or, for every program: {}",
        program.display(),
        set(APPARMOR, 0)
    )
}

/// A switch is only to blame where the probes failed: a profile or a capability may be above it.
fn switch(name: &'static str, value: u64, works: bool, identity: &Identity) -> Check {
    let (is_open, wanted) = match name {
        MAX => (value > 0, 15_000),
        UNPRIVILEGED => (value != 0, 1),
        _ => (value == 0, 0),
    };
    let binds = name == MAX || !identity.is_root();
    if is_open || !binds {
        let found = if is_open { value.to_string() } else { format!("{value}; it does not bind root") };
        return ok(GROUP, name, found);
    }
    if works {
        return ok(GROUP, name, format!("{value}; this program is exempt"));
    }
    let fix = if name == APPARMOR { allow_in_apparmor() } else { set(name, wanted) };
    required(missing(GROUP, name, value.to_string(), fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPERM: Errno = Errno(libc::EPERM);

    #[test]
    fn numbers_of_sysctls_are_read() {
        assert_eq!(parse_number("0\n"), Some(0));
        assert_eq!(parse_number(" 63420 \n"), Some(63420));
        assert_eq!(parse_number("yes\n"), None);
    }

    #[test]
    fn the_fix_names_the_switch_that_is_off() {
        let user = Identity::for_tests(1000);
        let max = fix(Switches { max: Some(0), unprivileged: Some(0), apparmor: None }, &user, EPERM);
        assert!(max.starts_with("echo user.max_user_namespaces=15000 | "), "{max}");
        let debian = fix(Switches { max: Some(9), unprivileged: Some(0), apparmor: None }, &user, EPERM);
        assert!(debian.contains("kernel.unprivileged_userns_clone=1"), "{debian}");
        let ubuntu = Switches { max: Some(9), unprivileged: Some(1), apparmor: Some(1) };
        let ubuntu = fix(ubuntu, &user, Errno(libc::EACCES));
        assert!(ubuntu.contains(r"flags=(unconfined) {\n userns,\n}\n"), "{ubuntu}");
        assert!(ubuntu.contains("kernel.apparmor_restrict_unprivileged_userns=0"), "{ubuntu}");
        assert!(fix(Switches::default(), &user, Errno(libc::EINVAL)).contains("CONFIG_USER_NS"));
        assert!(fix(Switches::default(), &user, EPERM).contains("docker run"));
    }

    #[test]
    fn switches_of_ordinary_users_do_not_bind_root() {
        let root = Identity::for_tests(0);
        assert!(
            fix(Switches { unprivileged: Some(0), ..Switches::default() }, &root, EPERM).contains("docker")
        );
        assert_eq!(switch(UNPRIVILEGED, 0, false, &root).state, CheckState::Ok);
        assert_eq!(switch(MAX, 0, false, &root).state, CheckState::Missing);
    }

    #[test]
    fn a_switch_is_not_blamed_for_what_works() {
        let user = Identity::for_tests(1000);
        assert_eq!(switch(APPARMOR, 1, true, &user).state, CheckState::Ok);
        let blamed = switch(APPARMOR, 1, false, &user);
        assert!(blamed.required && blamed.state == CheckState::Missing && blamed.fix.is_some());
    }

    #[test]
    fn a_missing_module_is_told_from_an_old_kernel() {
        let module = overlay(Err(Errno(libc::ENODEV)));
        assert!(module.fix.unwrap().starts_with("sudo modprobe overlay"));
        assert_eq!(overlay(Err(EPERM)).fix.as_deref(), Some("boot Linux 5.11 or later"));
    }

    #[test]
    fn what_needs_user_namespaces_has_their_fix() {
        let broken = UserNamespaces {
            made: Ok(()),
            mounts: Err(EPERM),
            fix: "open the switch".to_owned(),
            switches: Switches::default(),
        };
        let row = broken.with_mounts(|| overlay(Err(EPERM)));
        assert_eq!(row.fix.as_deref(), Some("open the switch"));
        assert_eq!(broken.alone(|| others(&[("pid", Ok(()))])).state, CheckState::Ok);
        let net = broken.alone(|| others(&[("pid", Ok(())), ("net", Err(Errno(libc::ENOSPC)))]));
        assert_eq!(net.found, "net: No space left on device");
    }
}
