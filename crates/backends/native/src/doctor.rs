//! What `cofferdam doctor` looks at: everything on this machine that sandboxes are made of, and what to do about
//! the rest. It changes nothing, and takes what it says from probes, not from version numbers.
//!
//! Required is what strict sandboxes cannot be made without; it differs between root and other users.

mod cgroups;
mod disk;
mod helpers;
mod identity;
mod kernel;
mod namespaces;
mod proc;
mod programs;
mod runtimes;

pub(crate) use kernel::version as kernel_version;
pub(crate) use programs::find_anywhere;

use cofferdam_core::{Check, CheckState};
use cofferdam_linux::cgroup;

/// Looks at everything that sandboxes need on this machine.
pub fn doctor() -> Vec<Check> {
    let identity = identity::Identity::of_this_process();
    let layout = cgroup::detect();
    let mut checks = kernel::checks(&layout);
    let spaces = namespaces::UserNamespaces::probe(&identity);
    checks.extend(namespaces::checks(&spaces, &identity));
    checks.extend(cgroups::checks(&layout, &identity));
    checks.extend(identity::checks(&identity));
    checks.push(spaces.with_mounts(proc::check));
    checks.extend(runtimes::checks());
    checks.extend(disk::checks(&identity));
    checks.extend(helpers::checks(&identity));
    checks
}

fn check(group: &'static str, name: &str, state: CheckState, found: impl Into<String>) -> Check {
    Check { group, name: name.to_owned(), state, found: found.into(), fix: None, required: false }
}

fn ok(group: &'static str, name: &str, found: impl Into<String>) -> Check {
    check(group, name, CheckState::Ok, found)
}

fn degraded(group: &'static str, name: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { fix: Some(fix.into()), ..check(group, name, CheckState::Degraded, found) }
}

fn missing(group: &'static str, name: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { fix: Some(fix.into()), ..check(group, name, CheckState::Missing, found) }
}

fn required(check: Check) -> Check {
    Check { required: true, ..check }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    #[test]
    fn this_machine_is_described_and_every_gap_has_a_fix() {
        let start = Instant::now();
        let checks = doctor();
        let took = start.elapsed();
        let mut names = HashSet::new();
        for check in &checks {
            assert!(names.insert((check.group, &check.name)), "twice: {check:?}");
            assert!(!check.found.is_empty(), "{check:?}");
            if check.state == CheckState::Missing {
                assert!(check.fix.as_ref().is_some_and(|fix| !fix.is_empty()), "{check:?}");
            }
            if check.state == CheckState::Ok {
                assert_eq!(check.fix, None, "{check:?}");
            }
        }
        for group in ["kernel", "cgroup", "identity", "proc", "runtimes", "disk", "helpers"] {
            assert!(checks.iter().any(|check| check.group == group), "nothing about {group}");
        }
        if cofferdam_linux::sys::geteuid() == 0 {
            let broken: Vec<_> =
                checks.iter().filter(|c| c.required && c.state == CheckState::Missing).collect();
            assert!(broken.is_empty(), "sandboxes can be made here, yet: {broken:#?}");
        }
        // It takes a fraction of that; the rest is for a busy machine.
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
}
