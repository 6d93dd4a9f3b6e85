//! Where the suite runs. What differs between modes is data in the catalogue, under the mode's name; what this
//! file knows is where a mode has its groups and which ids of the host are a sandbox's.

use cofferdam_linux::cgroup::{self, Layout};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_linux::slots::{IDS_PER_SLOT, first_id};
use serde::{Deserialize, Serialize};
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// Who makes the sandboxes, and on which version of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    RootV1,
    RootV2,
    RootlessV2,
}

impl Mode {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 3] = [Self::RootV1, Self::RootV2, Self::RootlessV2];

    /// The mode of this process. Without limits there is none: strict sandboxes cannot be made.
    pub(crate) fn detect() -> Result<Self, String> {
        match (layout(), is_root()) {
            (Layout::V1 { .. }, true) => Ok(Self::RootV1),
            (Layout::V2 { .. }, true) => Ok(Self::RootV2),
            (Layout::V2 { .. }, false) => Ok(Self::RootlessV2),
            (Layout::None { reason }, _) => Err(format!("it needs cgroups: {reason}")),
            (Layout::V1 { .. }, false) => Err("on cgroup v1 it needs root".to_owned()),
        }
    }

    /// How long what was killed may take to be gone: two seconds, unless whoever runs this knows the machine to be
    /// many times slower than others, such as one that is emulated.
    pub(crate) fn patience(self) -> Duration {
        let given = std::env::var("ATTACK_PATIENCE_SECONDS").ok().and_then(|text| text.parse().ok());
        Duration::from_secs(given.unwrap_or(2))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RootV1 => "root-v1",
            Self::RootV2 => "root-v2",
            Self::RootlessV2 => "rootless-v2",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The machine's cgroups, looked at once: without root, this process moves into a leaf of its own group later.
pub(crate) fn layout() -> &'static Layout {
    static LAYOUT: OnceLock<Layout> = OnceLock::new();
    LAYOUT.get_or_init(cgroup::detect)
}

/// The folders in which sandboxes have their groups.
pub(crate) fn group_folders() -> Vec<PathBuf> {
    match layout() {
        Layout::V1 { mounts } => mounts.iter().map(|(_, mount)| mount.join("cofferdam")).collect(),
        Layout::V2 { base } => vec![base.clone()],
        Layout::None { .. } => Vec::new(),
    }
}

/// How the path of every sandbox's group begins in /proc/PID/cgroup.
pub(crate) fn group_path() -> String {
    let top = std::path::Path::new("/sys/fs/cgroup");
    match layout() {
        Layout::V2 { base } => format!("/{}/s", base.strip_prefix(top).unwrap_or(base).display()),
        Layout::V1 { .. } | Layout::None { .. } => "/cofferdam/s".to_owned(),
    }
}

/// Where the locks on slots are.
pub(crate) fn slots_folder() -> PathBuf {
    default_runtime_folder().join("slots")
}

/// The host's ids that are a sandbox's while it has a slot.
pub(crate) fn host_ids(slot: u32) -> Range<u32> {
    if is_root() {
        let first = first_id(slot);
        return first..first + IDS_PER_SLOT;
    }
    let first = subordinate() + slot * 2;
    first..first + 2
}

/// The same as a process inside sees them: as ids of its namespace's parent, which without root is the launcher's.
pub(crate) fn parent_ids(slot: u32) -> Range<u32> {
    if is_root() { host_ids(slot) } else { 1 + slot * 2..3 + slot * 2 }
}

/// The first of this user's subordinate ids; 0 where there are none, which is nobody's.
fn subordinate() -> u32 {
    static FIRST: OnceLock<u32> = OnceLock::new();
    *FIRST.get_or_init(|| {
        let uid = rustix::process::geteuid().as_raw().to_string();
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let passwd = read("/etc/passwd");
        let user = passwd.lines().find(|line| line.split(':').nth(2) == Some(&uid));
        let name = user.and_then(|line| line.split(':').next()).unwrap_or(&uid);
        let ranges = read("/etc/subuid");
        let mut own =
            ranges.lines().filter(|line| line.split(':').next().is_some_and(|o| o == name || o == uid));
        own.find_map(|line| line.split(':').nth(1)?.parse().ok()).unwrap_or(0)
    })
}
