//! Version 2: at the top as root, in the own group otherwise.

use super::{GROUP, Scratch, refused_fix};
use crate::doctor::identity::Identity;
use crate::doctor::{check, degraded, missing, ok, required};
use cofferdam_core::{Check, CheckState};
use std::fs;
use std::path::{Path, PathBuf};

const NEEDED: [(&str, &str, &str); 3] =
    [("memory", "memory.max", "67108864"), ("pids", "pids.max", "100"), ("cpu", "cpu.max", "50000 100000")];

pub(super) fn checks(base: &Path, identity: &Identity) -> Vec<Check> {
    // Root makes the base in the topmost group; anybody else's base is there already.
    let parent = if identity.is_root() { base.parent().unwrap_or(base) } else { base };
    let read = |file: &str| fs::read_to_string(parent.join(file)).unwrap_or_default();
    let (available, enabled) = (read("cgroup.controllers"), read("cgroup.subtree_control"));
    let scratch = Scratch::make(parent);
    let mut checks: Vec<Check> = NEEDED
        .iter()
        .map(|(name, file, value)| {
            let row = if !has_word(&available, name) {
                missing(GROUP, name, "not there", controller_fix(name))
            } else {
                match &scratch {
                    Ok(scratch) if has_word(&enabled, name) => {
                        limit(name, parent, scratch.takes(file, value))
                    }
                    Ok(_) => not_enabled(name, parent, identity.is_root() && is_stuck(parent)),
                    Err(error) => limit(name, parent, Err(copy(error))),
                }
            };
            required(row)
        })
        .collect();
    checks.push(ok(GROUP, "cpuacct", "part of cpu"));
    if let Ok(scratch) = &scratch {
        checks.push(freezer(scratch));
    }
    let found = "version 2 has none; devices are kept out by nodev and the user namespace";
    checks.push(check(GROUP, "devices", CheckState::Degraded, found));
    let group = observed(scratch.as_ref().ok(), parent);
    checks.push(required(swap(group.as_deref())));
    checks.push(peak("memory peak", "memory.peak", "5.19", group.as_deref()));
    checks.push(peak("process peak", "pids.peak", "6.1", group.as_deref()));
    checks
}

/// An error once more, for each controller that it keeps from being used.
fn copy(error: &std::io::Error) -> std::io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), std::io::Error::from_raw_os_error)
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|have| have == word)
}

fn controller_fix(name: &str) -> String {
    format!(
        "take cgroup_disable={name} off the kernel's command line, or put cgroup_enable={name} on it; where version 1 \
         has the controller, boot with systemd.unified_cgroup_hierarchy=1"
    )
}

fn limit(name: &str, parent: &Path, set: std::io::Result<()>) -> Check {
    match set {
        Ok(()) => ok(GROUP, name, "a limit was set"),
        Err(error) => {
            let fix = refused_fix(&error, parent);
            missing(GROUP, name, error.to_string(), fix)
        }
    }
}

/// A group other than the machine's topmost cannot hand on controllers while it has processes of its own. Of
/// a user's group the launcher takes them out; root finds itself in such a one only in a container.
fn is_stuck(parent: &Path) -> bool {
    let procs = fs::read_to_string(parent.join("cgroup.procs")).unwrap_or_default();
    parent.join("cgroup.type").exists() && !procs.trim().is_empty()
}

fn not_enabled(name: &str, parent: &Path, is_stuck: bool) -> Check {
    if !is_stuck {
        return ok(GROUP, name, "there, to be switched on by the first sandbox");
    }
    let top = parent.display();
    let fix = format!(
        "as root, in this container: mkdir -p {top}/init && for p in $(cat {top}/cgroup.procs); do echo $p > \
         {top}/init/cgroup.procs; done; echo +memory +pids +cpu > {top}/cgroup.subtree_control"
    );
    missing(GROUP, name, "cannot be switched on: the topmost group has processes of its own", fix)
}

fn freezer(scratch: &Scratch) -> Check {
    if scratch.has("cgroup.freeze") {
        return ok(GROUP, "freezer", "cgroup.freeze");
    }
    degraded(GROUP, "freezer", "none: sandboxes cannot be paused", "boot Linux 5.2 or later")
}

/// A group with a memory controller: files of controllers are in no other.
fn observed(scratch: Option<&Scratch>, parent: &Path) -> Option<PathBuf> {
    let has_memory = |path: &PathBuf| path.join("memory.current").exists();
    let first =
        scratch.map(|scratch| scratch.0.clone()).into_iter().chain([parent.to_owned()]).find(has_memory);
    first.or_else(|| fs::read_dir(parent).ok()?.flatten().map(|entry| entry.path()).find(has_memory))
}

fn swap(group: Option<&Path>) -> Check {
    if group.is_some_and(|group| group.join("memory.swap.max").exists()) {
        return ok(GROUP, "swap limit", "memory.swap.max");
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() <= 1 {
        return ok(GROUP, "swap limit", "not needed: there is no swap in use");
    }
    if group.is_none() {
        return ok(GROUP, "swap limit", "cannot be told before the first sandbox");
    }
    missing(GROUP, "swap limit", "no memory.swap.max", "put swapaccount=1 on the kernel's command line")
}

fn peak(name: &'static str, file: &str, since: &str, group: Option<&Path>) -> Check {
    match group {
        Some(group) if group.join(file).exists() => ok(GROUP, name, file),
        Some(_) => degraded(GROUP, name, "not measured", format!("boot Linux {since} or later")),
        None => ok(GROUP, name, "cannot be told before the first sandbox"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_whole_words() {
        assert!(has_word("cpuset cpu io\n", "cpu"));
        assert!(!has_word("cpuset io", "cpu"));
    }

    #[test]
    fn a_container_whose_top_group_is_in_use_has_its_own_fix() {
        assert_eq!(not_enabled("cpu", Path::new("/sys/fs/cgroup"), false).state, CheckState::Ok);
        let stuck = not_enabled("cpu", Path::new("/sys/fs/cgroup"), true);
        assert!(stuck.fix.unwrap().contains("/sys/fs/cgroup/init/cgroup.procs"));
    }

    #[test]
    fn what_cannot_be_seen_is_not_called_missing() {
        assert_eq!(peak("memory peak", "memory.peak", "5.19", None).state, CheckState::Ok);
        let old = peak("memory peak", "memory.peak", "5.19", Some(Path::new("/proc")));
        assert_eq!(old.fix.as_deref(), Some("boot Linux 5.19 or later"));
    }
}
