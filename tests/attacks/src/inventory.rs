//! What there is on the host because of sandboxes, so that before and after can be compared.
//!
//! Other programs on the machine may make sandboxes at the same time, so a group counts only if nobody holds
//! the lock on its slot, and a process only if its ids are of such a slot that this run has used.

use crate::mode;
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_linux::slots::Slots;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inventory {
    pub(crate) processes: BTreeSet<u32>,
    pub(crate) groups: BTreeSet<String>,
    pub(crate) mounts: usize,
    pub(crate) descriptors: usize,
    pub(crate) launcher_descriptors: usize,
    pub(crate) launcher_children: usize,
    pub(crate) folders: BTreeSet<String>,
}

impl Inventory {
    pub(crate) fn take(slots: &BTreeSet<u32>, launchers: &[u32]) -> Self {
        let count = |path: String| fs::read_dir(path).map_or(0, Iterator::count);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let folders = fs::read_dir(default_runtime_folder()).into_iter().flatten().flatten();
        Self {
            processes: processes(&free(slots)),
            groups: orphans(),
            mounts: mounts.lines().count(),
            descriptors: count("/proc/self/fd".to_owned()),
            launcher_descriptors: launchers.iter().map(|pid| count(format!("/proc/{pid}/fd"))).sum(),
            launcher_children: launchers.iter().map(|pid| children(*pid).len()).sum(),
            folders: folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
        }
    }

    /// What a case has left on the host, in words.
    pub(crate) fn left_since(&self, before: &Self) -> Vec<String> {
        let mut more: Vec<String> = Vec::new();
        more.extend(self.processes.difference(&before.processes).map(|pid| format!("process {pid}")));
        more.extend(self.groups.difference(&before.groups).map(|group| format!("cgroup {group}")));
        more.extend(self.folders.difference(&before.folders).map(|folder| format!("folder {folder}")));
        if self.mounts > before.mounts {
            more.push(format!("mounts: {} before, {} now", before.mounts, self.mounts));
        }
        more
    }

    /// The same, with what launchers and this program hold.
    pub(crate) fn since(&self, before: &Self) -> Vec<String> {
        let mut more = self.left_since(before);
        for (what, now, then) in [
            ("descriptors here", self.descriptors, before.descriptors),
            ("descriptors of launchers", self.launcher_descriptors, before.launcher_descriptors),
            ("sandboxes of launchers", self.launcher_children, before.launcher_children),
        ] {
            if now > then {
                more.push(format!("{what}: {then} before, {now} now"));
            }
        }
        more
    }
}

/// The slots that nobody holds now: a process in one of them belongs to nobody any more.
fn free(slots: &BTreeSet<u32>) -> BTreeSet<u32> {
    let Ok(locks) = Slots::open(&mode::slots_folder()) else { return BTreeSet::new() };
    slots.iter().copied().filter(|slot| locks.is_free(*slot)).collect()
}

/// Processes whose owner is an id of one of the slots.
pub(crate) fn processes(slots: &BTreeSet<u32>) -> BTreeSet<u32> {
    let is_ours = |uid: u32| slots.iter().any(|slot| mode::host_ids(*slot).contains(&uid));
    all_processes()
        .filter(|pid| fs::metadata(format!("/proc/{pid}")).is_ok_and(|m| is_ours(m.uid())))
        .collect()
}

pub(crate) fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Processes whose command line has the text in it.
pub(crate) fn marked(marker: &str) -> Vec<u32> {
    let has = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(marker.len()).any(|window| window == marker.as_bytes()))
    };
    all_processes().filter(has).collect()
}

/// Whether a process runs; one that is dead and waits for its parent to notice does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The direct children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let parent = |child: &u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    all_processes().filter(|child| parent(child) == Some(pid)).collect()
}

/// Groups of sandboxes whose slot nobody holds.
fn orphans() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let Ok(slots) = Slots::open(&mode::slots_folder()) else { return found };
    for folder in mode::group_folders() {
        for group in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = group.file_name().to_string_lossy().into_owned();
            let slot: Option<u32> = name.strip_prefix('s').and_then(|number| number.parse().ok());
            if slot.is_some_and(|slot| slots.is_free(slot)) && group.path().exists() {
                found.insert(group.path().display().to_string());
            }
        }
    }
    found
}
