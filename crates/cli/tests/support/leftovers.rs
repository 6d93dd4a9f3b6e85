//! What sandboxes leave on the host: processes, cgroups, locks and disks. Other sandboxes of this machine come and go
//! meanwhile, so only what nobody holds any more counts as left.

use super::{Folder, program, wait_until};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const SLOTS: &str = "/run/cofferdam/slots";

/// The first host id of the first range, and how many ids each has.
const FIRST_ID: u32 = 0x7000_0000;
const IDS_PER_SLOT: u32 = 65_536;

/// A copy of the program under a path of its own, by which its processes can be told from all others: its
/// launcher and its inits are forked from it without exec.
pub(crate) struct OwnProgram {
    folder: Folder,
}

impl OwnProgram {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        // By a process of its own: what this one writes, a child of another test may hold open at that moment, and
        // nothing that is open for writing can be executed.
        let mut copy = Command::new("cp");
        let copied = copy.arg(program()).arg(folder.0.join("cofferdam")).status();
        assert!(copied.expect("cp starts").success());
        Self { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.0.join("cofferdam")
    }

    /// Waits until no process of this copy is left; its locks are gone with them.
    pub(crate) fn wait_until_gone(&self) {
        let path = self.path();
        wait_until("no process of the program is left", || !processes().any(|exe| exe == path));
    }
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").expect("/proc can be listed");
    entries.filter_map(|entry| fs::read_link(entry.ok()?.path().join("exe")).ok())
}

/// The groups of sandboxes that nobody holds the lock of.
pub(crate) fn orphaned_groups() -> BTreeSet<PathBuf> {
    groups().into_iter().filter(|path| slot_of(path).is_some_and(|slot| !is_held(slot))).collect()
}

/// `s123` in each controller's folder, or in the one folder of version 2.
fn groups() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let bases = fs::read_dir("/sys/fs/cgroup").expect("cgroups are mounted").flatten();
    let bases = bases.map(|entry| entry.path().join("cofferdam"));
    for base in bases.chain([PathBuf::from("/sys/fs/cgroup/cofferdam")]) {
        let entries = fs::read_dir(base).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| entry.path()).filter(|path| slot_of(path).is_some()));
    }
    found
}

fn slot_of(group: &Path) -> Option<u32> {
    group.file_name()?.to_str()?.strip_prefix('s')?.parse().ok()
}

fn is_held(slot: u32) -> bool {
    match File::open(Path::new(SLOTS).join(slot.to_string())) {
        Ok(file) => file.try_lock().is_err(),
        Err(_) => false,
    }
}

/// The range of a sandbox, by what `/proc/self/uid_map` said inside.
pub(crate) fn slot_in(uid_map: &str) -> u32 {
    let first: u32 = uid_map.split_whitespace().nth(1).and_then(|id| id.parse().ok()).expect("an id map");
    assert!(first >= FIRST_ID, "{uid_map}");
    (first - FIRST_ID) / IDS_PER_SLOT
}

/// Waits until a range is free and has no group.
pub(crate) fn wait_until_free(slot: u32) {
    let name = format!("s{slot}");
    wait_until(&format!("slot {slot} is free and has no group"), || {
        !is_held(slot) && !groups().iter().any(|path| path.ends_with(&name))
    });
}

/// The loop devices whose images lie, or lay, in a folder.
pub(crate) fn loop_devices(folder: &Path) -> Vec<PathBuf> {
    let devices = fs::read_dir("/sys/block").expect("devices can be listed").flatten();
    let backing = |path: &Path| fs::read_to_string(path.join("loop/backing_file")).unwrap_or_default();
    let is_in = |path: &PathBuf| Path::new(&backing(path)).starts_with(folder);
    devices.map(|entry| entry.path()).filter(is_in).collect()
}

/// Waits until nothing of a disk is left: no device, and no file in its folder.
pub(crate) fn wait_until_no_disk(folder: &Path) {
    wait_until("no loop device is left", || loop_devices(folder).is_empty());
    assert_eq!(fs::read_dir(folder).expect("a folder").count(), 0, "{}", folder.display());
}

/// Removes the groups of a range, as soon as nothing is in them.
pub(crate) fn remove_groups(slot: u32) {
    let name = format!("s{slot}");
    wait_until(&format!("the groups of slot {slot} are removed"), || {
        groups().iter().filter(|path| path.ends_with(&name)).all(|path| fs::remove_dir(path).is_ok())
    });
}
