//! Cgroups, version 1 and 2: one group per sandbox, which holds its processes but not its init.
//!
//! Init is outside because an out-of-memory kill must not take it, and because the limits are the user's, to
//! the last byte and process. A process joins its group before it runs a program, in the only two ways that do
//! not wait for an RCU grace period: on version 2 it is cloned into the group, on version 1 it writes `0` to
//! descriptors of `tasks` files that the launcher opened.

mod detect;
mod files;
mod v1;
mod v2;

pub use detect::{Layout, detect, detect_from, is_v1};
pub use files::Usage;

use crate::sys::{Errno, Result};
use crate::{ControlSet, Stage};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The folder that holds every sandbox's group.
pub(crate) const BASE: &str = "cofferdam";

/// What a group enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CgroupLimits {
    pub memory_bytes: u64,
    pub pids: u32,
    pub cpu_millis: u32,
    /// Whether an out-of-memory kill takes every process of the group.
    pub oom_group: bool,
    /// Whether its files are on a disk, where what it writes waits in memory.
    pub files_on_disk: bool,
    /// Whether it can be paused; on version 1 that takes a group of its own.
    pub pausable: bool,
    /// Controls that a test leaves out.
    pub leave_out: ControlSet,
    /// Where a test makes it fail.
    pub fail_at: Option<Stage>,
}

/// The period of the CPU quota; the kernel's default.
pub(crate) const CPU_PERIOD_US: u64 = 100_000;

impl CgroupLimits {
    /// A failpoint, behind a step that worked.
    pub(crate) fn point(&self, stage: Stage) -> std::result::Result<(), (Stage, Errno)> {
        let fails = cfg!(feature = "leave-out") && self.fail_at == Some(stage);
        if fails { Err((stage, Errno(libc::EIO))) } else { Ok(()) }
    }

    pub(crate) fn cpu_quota_us(&self) -> u64 {
        u64::from(self.cpu_millis) * CPU_PERIOD_US / 1000
    }
}

/// The machine's cgroups, opened and ready for sandboxes.
#[derive(Debug)]
pub enum Cgroups {
    V1(v1::Tree),
    V2(v2::Tree),
    /// None that this user may use; the reason is for the report.
    None {
        reason: String,
    },
}

/// How a process gets into a sandbox's group.
#[derive(Debug)]
pub enum Entry {
    /// Write `0` to each.
    Tasks(Vec<OwnedFd>),
    /// Clone into it.
    Folder(OwnedFd),
    /// There is none.
    Nowhere,
}

impl Entry {
    pub fn raw(&self) -> Vec<RawFd> {
        match self {
            Self::Tasks(fds) => fds.iter().map(AsRawFd::as_raw_fd).collect(),
            Self::Folder(fd) => vec![fd.as_raw_fd()],
            Self::Nowhere => Vec::new(),
        }
    }
}

/// A sandbox's group, made and limited.
#[derive(Debug)]
pub struct Group {
    pub entry: Entry,
    /// Raised at an out-of-memory kill, where init has to end the rest.
    pub oom: Option<OwnedFd>,
    /// What was read back as set.
    pub proven: ControlSet,
}

impl Cgroups {
    /// Opens the machine's cgroups for making groups. Allocates; for use at start only.
    pub fn open(layout: &Layout) -> Self {
        match layout {
            Layout::V1 { mounts } => match v1::Tree::open(mounts) {
                Ok(tree) => Self::V1(tree),
                Err(reason) => Self::None { reason },
            },
            Layout::V2 { base } => match v2::Tree::open(base) {
                Ok(tree) => Self::V2(tree),
                Err(reason) => Self::None { reason },
            },
            Layout::None { reason } => Self::None { reason: reason.clone() },
        }
    }

    pub fn create(&self, name: &str, limits: &CgroupLimits) -> std::result::Result<Group, (Stage, Errno)> {
        let name = CString::new(name).map_err(|_| (Stage::Cgroup, Errno(libc::EINVAL)))?;
        match self {
            Self::V1(tree) => tree.create(&name, limits),
            Self::V2(tree) => tree.create(&name, limits),
            Self::None { .. } => Ok(Group { entry: Entry::Nowhere, oom: None, proven: ControlSet::EMPTY }),
        }
    }

    /// Removes a group whose processes are gone.
    pub fn remove(&self, name: &str) -> Result<()> {
        let name = CString::new(name).map_err(|_| Errno(libc::EINVAL))?;
        match self {
            Self::V1(tree) => tree.remove(&name),
            Self::V2(tree) => tree.remove(&name),
            Self::None { .. } => Ok(()),
        }
    }

    /// The folders that groups lie in, and the one that inits must be cloned into, if any.
    pub fn folders(&self) -> (Vec<RawFd>, Option<RawFd>) {
        match self {
            Self::V1(tree) => (tree.folders(), None),
            Self::V2(tree) => (vec![tree.base()], Some(tree.init_group())),
            Self::None { .. } => (Vec::new(), None),
        }
    }
}
