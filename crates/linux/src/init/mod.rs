//! PID 1 of a sandbox.
//!
//! The launcher's child becomes it without exec, so nothing of ours has to exist in the root filesystem. It
//! builds the sandbox from inside, proves it, and then serves one socket until that closes. From the clone on
//! nothing is allocated: the plan was made by the launcher, and every buffer is fixed.
//!
//! It deliberately does not decide anything: what to mount, which limits hold and what is required are in the
//! plan, and a step that fails ends it.

mod files;
mod lockdown;
mod mounts;
mod payload;
mod probe;
mod serve;
mod spare;

pub(crate) use lockdown::{CORE, RLIMITS};
pub(crate) use mounts::{MASKED_FILES, MASKED_FOLDERS};

use crate::protocol::{EVENT_BYTES, Event};
use crate::seccomp::Program;
use crate::stage::Stage;
use crate::sys::{self, Errno};
use crate::{ControlSet, socket};
use cofferdam_core::Control;
use std::ffi::CString;
use std::os::fd::RawFd;

/// The inode numbers of the launcher's namespaces, which a sandbox's must all differ from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NamespaceIds {
    pub(crate) user: u64,
    pub(crate) pid: u64,
    pub(crate) mount: u64,
    pub(crate) net: u64,
    pub(crate) ipc: u64,
    pub(crate) uts: u64,
    pub(crate) cgroup: u64,
}

impl NamespaceIds {
    pub(crate) const BYTES: usize = 7 * 8;

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let each = [self.user, self.pid, self.mount, self.net, self.ipc, self.uts, self.cgroup];
        for (place, id) in bytes.chunks_exact_mut(8).zip(each) {
            place.copy_from_slice(&id.to_ne_bytes());
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let id = |i: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
            u64::from_ne_bytes(word)
        };
        let [user, pid, mount, net, ipc, uts, cgroup] = std::array::from_fn(id);
        Self { user, pid, mount, net, ipc, uts, cgroup }
    }
}

/// An overlay: where it goes and the kernel's options for it.
#[derive(Debug)]
pub(crate) struct Overlay {
    pub(crate) target: CString,
    pub(crate) options: CString,
    /// A host folder to bind instead, where a test leaves the overlay out.
    pub(crate) plain: CString,
    /// The device of that folder, which the overlay's must differ from.
    pub(crate) plain_device: u64,
    /// The folders for what is written to it, if it can be.
    pub(crate) upper: Option<Upper>,
}

/// The folders of an overlay's own in the sandbox's files.
#[derive(Debug)]
pub(crate) struct Upper {
    pub(crate) folder: CString,
    pub(crate) upper: CString,
    pub(crate) work: CString,
}

/// Everything that init needs, made before the clone.
#[derive(Debug)]
pub(crate) struct InitPlan<'l> {
    pub(crate) control: RawFd,
    /// Says, when the launcher has mapped the ids, which namespaces are its own, and is at its end when the launcher
    /// is gone, however it went.
    pub(crate) sync: RawFd,
    /// Whether the network namespace was made ahead, with its loopback up.
    pub(crate) has_network: bool,
    /// A filesystem on disk for the files, not attached yet; else they are in memory.
    pub(crate) disk: Option<RawFd>,
    /// Whether that has the files of another sandbox already.
    pub(crate) has_files: bool,
    /// Whether the kernel counts what is made here against the user who runs the launcher, with all others of it.
    pub(crate) shares_counts: bool,
    /// Descriptors that stay open, sorted; one may be there twice.
    pub(crate) keep: [RawFd; 6],
    pub(crate) hostname: CString,
    /// The folder of the image in the launcher's own mount namespace.
    pub(crate) image_folder: CString,
    pub(crate) overlays: Vec<Overlay>,
    /// Options of the tmpfs that holds workspace, /tmp, /run and /dev/shm.
    pub(crate) files_options: CString,
    pub(crate) files_bytes: u64,
    pub(crate) files_inodes: u64,
    pub(crate) writable_root: bool,
    pub(crate) terminal: bool,
    pub(crate) landlock_abi: u32,
    pub(crate) last_capability: u32,
    pub(crate) launcher_keyring: usize,
    pub(crate) init_filter: &'l Program,
    pub(crate) payload_filter: &'l Program,
    /// Init's and the payload's ids inside; the same where only one could be mapped.
    pub(crate) init_id: u32,
    pub(crate) payload_id: u32,
    /// Controls without which nothing may run.
    pub(crate) required: ControlSet,
    /// What the launcher has proven already.
    pub(crate) proven: ControlSet,
    pub(crate) leave_out: ControlSet,
    pub(crate) fail_at: Option<Stage>,
}

/// A step that failed, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) errno: Errno,
    pub(crate) missing: ControlSet,
}

pub(crate) type StageResult<T = ()> = Result<T, Failure>;

impl InitPlan<'_> {
    pub(crate) fn leaves_out(&self, control: Control) -> bool {
        cfg!(feature = "leave-out") && self.leave_out.has(control)
    }

    /// Names the step that a call belongs to. A failpoint makes it fail whatever the call did.
    pub(crate) fn at<T>(&self, stage: Stage, result: sys::Result<T>) -> StageResult<T> {
        let fails = cfg!(feature = "leave-out") && self.fail_at == Some(stage);
        let errno = match result {
            Ok(value) if !fails => return Ok(value),
            Ok(_) => Errno(libc::EIO),
            Err(errno) => errno,
        };
        Err(Failure { stage, errno, missing: ControlSet::EMPTY })
    }
}

/// Builds the sandbox and serves it. Runs in the cloned child; never returns.
pub(crate) fn run(plan: &InitPlan<'_>) -> ! {
    match build(plan) {
        Ok((controls, kit)) => serve::serve(plan, &kit, controls),
        Err(Failure { stage, errno, missing }) => {
            send(plan.control, Event::Failed { stage, errno: errno.0, missing });
            sys::exit(1)
        }
    }
}

/// What init holds on to after the set-up.
#[derive(Debug)]
pub(crate) struct Kit {
    pub(crate) launcher_cgroups: u64,
    pub(crate) landlock: Option<RawFd>,
    /// A folder outside of the root, with a file that only Landlock keeps from being written.
    pub(crate) canary: Option<RawFd>,
    pub(crate) bounding_empty: bool,
    pub(crate) signals: RawFd,
    /// For the host, which asks its filesystem what is left of it.
    pub(crate) workspace: RawFd,
}

fn build(plan: &InitPlan<'_>) -> StageResult<(ControlSet, Kit)> {
    let mut seen = plan.proven;
    lockdown::early(plan, &mut seen)?;
    mounts::before_ids(plan)?;
    let outside = lockdown::become_root(plan)?;
    lockdown::through_host_proc(plan, outside, &mut seen)?;
    let canary = mounts::with_ids(plan)?;
    let kit = Kit { canary, launcher_cgroups: outside.cgroup, ..lockdown::late(plan)? };
    probe::init(plan, &mut seen);
    let missing = plan.required.minus(seen).minus(payload::CONTROLS).minus(serve::CONTROLS);
    if missing.is_empty() {
        plan.at(Stage::InitProbe, Ok((seen, kit)))
    } else {
        Err(Failure { stage: Stage::InitProbe, errno: Errno(libc::EPERM), missing })
    }
}

/// Tells the host. An error means that it is gone, which the next read will show as well.
pub(crate) fn send(control: RawFd, event: Event) {
    send_with(control, event, &[]);
}

pub(crate) fn send_with(control: RawFd, event: Event, fds: &[RawFd]) {
    let mut buffer = [0; EVENT_BYTES];
    if let Ok(message) = event.encode(&mut buffer) {
        let sent = socket::send(control, message, fds);
        // So many descriptors of this user may be on their way. Whoever asked must not wait for an answer for good.
        if let (Err(Errno(libc::ETOOMANYREFS)), Event::Reply { request, .. }) = (sent, event) {
            send(control, Event::Reply { request, errno: libc::ETOOMANYREFS });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_cross_the_pipe_each_in_its_place() {
        let ids = NamespaceIds { user: 1, pid: 2, mount: 3, net: 4, ipc: 5, uts: 6, cgroup: u64::MAX };
        assert_eq!(NamespaceIds::from_bytes(ids.to_bytes()), ids);
    }
}
