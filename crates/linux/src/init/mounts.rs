//! The sandbox's filesystem, from the launcher's staged layers to a root of its own.
//!
//! Paths here are in a copy of the launcher's private mount namespace, of which nothing stays but what is put below
//! `/new`. That becomes the root. Names given to the kernel are relative to the image's folder, so that no
//! host path shows in mountinfo.

use super::{InitPlan, StageResult};
use crate::stage::Stage;
use crate::sys::{self, Errno};
use cofferdam_core::Control;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

const BIND: u64 = libc::MS_BIND;

/// What tells about the host, or about other sandboxes, more than about the process that reads it.
///
/// What the kernel lets only its own root read (kcore, kmsg, slabinfo and the like) is not in it: no id of a
/// sandbox is that root, and a cover takes as long as any other mount.
pub(crate) const MASKED_FOLDERS: &[&CStr] = &[
    c"/new/proc/acpi",
    c"/new/proc/asound",
    c"/new/proc/bus",
    c"/new/proc/fs",
    c"/new/proc/irq",
    c"/new/proc/scsi",
    c"/new/proc/sys",
];

pub(crate) const MASKED_FILES: &[&CStr] = &[
    c"/new/proc/cmdline",
    c"/new/proc/config.gz",
    c"/new/proc/diskstats",
    c"/new/proc/interrupts",
    c"/new/proc/iomem",
    c"/new/proc/ioports",
    c"/new/proc/kallsyms",
    c"/new/proc/key-users",
    c"/new/proc/keys",
    c"/new/proc/locks",
    c"/new/proc/modules",
    c"/new/proc/partitions",
    c"/new/proc/sched_debug",
];

/// The mounts on which nothing is made, and which need no ids: done while the launcher maps those.
pub(super) fn before_ids(plan: &InitPlan<'_>) -> StageResult {
    if !plan.writable_root {
        root(plan)?;
        dev(plan)?;
        proc(plan)?;
    }
    Ok(())
}

/// The rest, up to the change of the root. Where that can be written, Landlock's canary must lie outside of it.
pub(super) fn with_ids(plan: &InitPlan<'_>) -> StageResult<Option<RawFd>> {
    files(plan)?;
    let mut canary = None;
    if plan.writable_root {
        uppers(plan)?;
        root(plan)?;
        dev(plan)?;
        proc(plan)?;
        let folder = sys::open(sys::CWD, c"/files/run", libc::O_PATH | libc::O_DIRECTORY, 0);
        canary = Some(plan.at(Stage::FilesLayout, folder)?.into_raw_fd());
    }
    place(plan)?;
    pivot(plan).map(|()| canary)
}

/// The folders that hold what is written to the root. The upper one is the root to look at, so it is the user's.
fn uppers(plan: &InitPlan<'_>) -> StageResult {
    for upper in plan.overlays.iter().filter_map(|overlay| overlay.upper.as_ref()) {
        for folder in [&upper.folder, &upper.upper, &upper.work] {
            plan.at(Stage::FilesLayout, sys::mkdir(sys::CWD, folder, 0o755))?;
        }
        plan.at(Stage::FilesLayout, sys::chown(&upper.upper, plan.payload_id, plan.payload_id))?;
    }
    Ok(())
}

fn flags(plan: &InitPlan<'_>) -> u64 {
    if plan.leaves_out(Control::MountFlags) { 0 } else { libc::MS_NOSUID | libc::MS_NODEV }
}

fn bind(source: &CStr, target: &CStr) -> sys::Result<()> {
    sys::mount(Some(source), target, None, BIND, None)
}

/// One filesystem for everything that can be written, so that one limit covers it.
fn files(plan: &InitPlan<'_>) -> StageResult {
    let mounted = match plan.disk {
        Some(disk) => sys::attach_mount(disk, c"/files").inspect(|()| sys::close(disk)),
        None => {
            let options = Some(&*plan.files_options);
            sys::mount(Some(c"files"), c"/files", Some(c"tmpfs"), flags(plan), options)
        }
    };
    plan.at(Stage::Files, mounted)?;
    if plan.has_files {
        // The init of the other sandbox has made the same folders, and nobody but it could reach their names. What is
        // in the workspace comes along; its own mode is the only thing here that a guest can change.
        let workspace = sys::open(sys::CWD, c"/files/workspace", libc::O_RDONLY | libc::O_DIRECTORY, 0);
        let opened = workspace.and_then(|workspace| sys::fchmod(workspace.as_raw_fd(), 0o755));
        return plan.at(Stage::FilesLayout, opened);
    }
    let own = plan.payload_id;
    let folders: [(&CStr, u32, u32); 7] = [
        (c"/files/workspace", 0o755, own),
        (c"/files/workspace/.artifacts", 0o755, own),
        (c"/files/tmp", 0o1777, plan.init_id),
        (c"/files/run", 0o755, plan.init_id),
        // Written to for the host alone: Landlock keeps the payload from it.
        (c"/files/run/secrets", 0o700, own),
        (c"/files/shm", 0o1777, plan.init_id),
        (c"/files/root", 0o755, plan.init_id),
    ];
    for (path, mode, owner) in folders {
        plan.at(Stage::FilesLayout, sys::mkdir(sys::CWD, path, mode))?;
        if owner != plan.init_id {
            plan.at(Stage::FilesLayout, sys::chown(path, owner, owner))?;
        }
    }
    // Writable for everyone as far as modes go: that it cannot be written shows that Landlock holds.
    let canary = sys::mknod(c"/files/run/.landlock", libc::S_IFREG | 0o666, 0);
    plan.at(Stage::FilesLayout, canary)
}

fn root(plan: &InitPlan<'_>) -> StageResult {
    plan.at(Stage::Root, sys::chdir(&plan.image_folder))?;
    let flags = if plan.writable_root { flags(plan) } else { flags(plan) | libc::MS_RDONLY };
    for (i, overlay) in plan.overlays.iter().enumerate() {
        let stage = if i == 0 { Stage::Root } else { Stage::RootPart };
        if plan.leaves_out(Control::PrivateRoot) && i > 0 {
            plan.at(stage, bind(&overlay.plain, &overlay.target))?;
            continue;
        }
        let mounted =
            sys::mount(Some(c"root"), &overlay.target, Some(c"overlay"), flags, Some(&overlay.options));
        plan.at(stage, mounted)?;
    }
    Ok(())
}

/// The launcher staged one read-only folder with the devices that every program may expect.
fn dev(plan: &InitPlan<'_>) -> StageResult {
    let source = if plan.leaves_out(Control::MinimalDev) { c"/host-dev" } else { c"/nodes" };
    plan.at(Stage::Dev, sys::mount(Some(source), c"/new/dev", None, BIND | libc::MS_REC, None))?;
    if plan.terminal {
        let options = Some(c"newinstance,ptmxmode=0666,mode=0620,max=64");
        let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
        let mounted = sys::mount(Some(c"devpts"), c"/new/dev/pts", Some(c"devpts"), flags, options);
        plan.at(Stage::Terminals, mounted)?;
    }
    Ok(())
}

/// All of /proc, because ps, free and many runtimes need it; what tells about the host is covered.
fn proc(plan: &InitPlan<'_>) -> StageResult {
    let options = if plan.leaves_out(Control::ProcHidden) { c"" } else { c"hidepid=2" };
    let mut flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    if !plan.leaves_out(Control::ProcReadOnly) {
        flags |= libc::MS_RDONLY;
    }
    let mounted = sys::mount(Some(c"proc"), c"/new/proc", Some(c"proc"), flags, Some(options));
    plan.at(Stage::Proc, mounted)?;
    if plan.leaves_out(Control::ProcMasked) {
        return Ok(());
    }
    // The staged /dev is read-only and has an empty folder and an empty file.
    for (cover, targets) in [(c"/nodes/pts", MASKED_FOLDERS), (c"/nodes/null", MASKED_FILES)] {
        for target in targets {
            match bind(cover, target) {
                // Not every kernel has every one.
                Err(Errno(libc::ENOENT)) => {}
                other => plan.at(Stage::ProcMask, other)?,
            }
        }
    }
    plan.at(Stage::ProcMask, Ok(()))
}

fn place(plan: &InitPlan<'_>) -> StageResult {
    for (source, target) in
        [(c"/files/workspace", c"/new/workspace"), (c"/files/tmp", c"/new/tmp"), (c"/files/run", c"/new/run")]
    {
        plan.at(Stage::Workspace, bind(source, target))?;
    }
    plan.at(Stage::Shm, bind(c"/files/shm", c"/new/dev/shm"))
}

/// Makes `/new` the root and lets go of everything that was there before.
fn pivot(plan: &InitPlan<'_>) -> StageResult {
    plan.at(Stage::Pivot, sys::chdir(c"/new"))?;
    plan.at(Stage::Pivot, sys::pivot_root(c".", c"."))?;
    if !plan.leaves_out(Control::HostRootDetached) {
        plan.at(Stage::Detach, sys::umount(c".", libc::MNT_DETACH))?;
    }
    plan.at(Stage::Pivot, sys::chdir(c"/"))?;
    let mut buffer = [0u8; 16];
    let is_root = sys::getcwd(&mut buffer).is_ok_and(|cwd| cwd == b"/");
    plan.at(Stage::Pivot, if is_root { Ok(()) } else { Err(Errno(libc::EXDEV)) })
}
