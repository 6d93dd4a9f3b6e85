//! Words for what the launcher and init report: errors that say what to do, and the isolation report.

use cofferdam_backend::{BackendError, ProcessSpec, SandboxSpec};
use cofferdam_core::{Control, ControlState, Disk, GuestPath, IsolationReport, IsolationRow};
use cofferdam_linux::cgroup::Layout;
use cofferdam_linux::{ControlSet, Stage};
use std::io;

/// What strict mode asks for.
pub(crate) fn required() -> ControlSet {
    let mut required = ControlSet::EMPTY;
    for control in Control::ALL.into_iter().filter(|control| control.mandatory()) {
        required.insert(control);
    }
    required
}

pub(crate) fn step_failed(stage: Stage, errno: i32) -> String {
    format!("{} failed: {}", stage.text(), io::Error::from_raw_os_error(errno))
}

/// Why there are no limits, and what gives them.
pub(crate) fn no_limits(reason: &str) -> BackendError {
    BackendError::Refused {
        reason: format!("memory, process and CPU limits cannot be enforced: {reason}"),
        fix: "run as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes cofferdam …; \
              or accept that with --isolation best-effort"
            .to_owned(),
    }
}

pub(crate) fn create_error(stage: Stage, errno: i32, layout: &Layout) -> BackendError {
    match (stage, layout) {
        (Stage::Cgroup | Stage::CgroupLimit, Layout::None { reason }) => no_limits(reason),
        (Stage::Layers, _) if errno == libc::EINVAL => BackendError::Refused {
            reason: "the root cannot be writable: its filesystem has no id-mapped mounts".to_owned(),
            fix: "use a --rootfs on ext4, xfs or btrfs, or leave --writable-root out".to_owned(),
        },
        _ => BackendError::failed(stage.text(), io::Error::from_raw_os_error(errno)),
    }
}

pub(crate) fn ready_error(stage: Stage, errno: i32, missing: ControlSet, layout: &Layout) -> BackendError {
    if missing.is_empty() {
        return create_error(stage, errno, layout);
    }
    if let (Layout::None { reason }, true) = (layout, missing.has(Control::MemoryLimit)) {
        return no_limits(reason);
    }
    not_enforced(missing)
}

/// Refuses a group that does not limit everything that it has to.
pub(crate) fn check_group_limits(proven: ControlSet) -> Result<(), BackendError> {
    let limits = [Control::MemoryLimit, Control::SwapOff, Control::PidsLimit, Control::CpuLimit];
    match ControlSet::of(&limits).minus(proven) {
        ControlSet::EMPTY => Ok(()),
        missing => Err(not_enforced(missing)),
    }
}

fn not_enforced(missing: ControlSet) -> BackendError {
    let names: Vec<String> = missing.iter().map(Control::name).collect();
    BackendError::Refused {
        reason: format!("this machine does not enforce {}", names.join(", ")),
        fix: "see `cofferdam doctor`, or accept that with --isolation best-effort".to_owned(),
    }
}

/// Why a process did not start, in the caller's terms.
pub(crate) fn start_error(spec: &ProcessSpec, stage: Stage, errno: i32, missing: ControlSet) -> BackendError {
    let program = spec.argv.first().cloned().unwrap_or_default();
    let text = |errno| io::Error::from_raw_os_error(errno).to_string();
    match (stage, errno) {
        (Stage::PayloadExec, libc::ENOENT | libc::ENOTDIR) => BackendError::NotFound { path: program },
        (Stage::PayloadExec, libc::ENOEXEC) => BackendError::NotPermitted {
            path: program,
            reason: "not a program: neither a binary for this machine nor a script with #!".to_owned(),
        },
        (Stage::PayloadExec, libc::E2BIG) => BackendError::NotPermitted {
            path: program,
            reason: "the arguments are longer than the kernel takes".to_owned(),
        },
        (Stage::PayloadExec, _) => BackendError::NotPermitted {
            path: program,
            reason: format!("cannot be executed: {}", text(errno)),
        },
        (Stage::PayloadWorkdir, libc::ENOENT) => BackendError::NotFound { path: spec.cwd.to_string() },
        (Stage::PayloadWorkdir, _) => BackendError::NotPermitted {
            path: spec.cwd.to_string(),
            reason: format!("cannot be the working directory: {}", text(errno)),
        },
        _ => probe_error(stage, errno, missing),
    }
}

/// Why the walls around a process could not be proven.
pub(crate) fn probe_error(stage: Stage, errno: i32, missing: ControlSet) -> BackendError {
    if missing.is_empty() {
        BackendError::failed(stage.text(), io::Error::from_raw_os_error(errno))
    } else {
        not_enforced(missing)
    }
}

/// Why a file could not be opened, in the caller's terms.
pub(crate) fn file_error(path: &GuestPath, errno: i32) -> BackendError {
    let path = path.to_string();
    match errno {
        libc::ENOENT => BackendError::NotFound { path },
        libc::ELOOP => {
            BackendError::NotPermitted { path, reason: "a link, or behind one: not followed".to_owned() }
        }
        libc::ENXIO => BackendError::NotPermitted { path, reason: "not a plain file".to_owned() },
        libc::ENOSPC | libc::EDQUOT => {
            BackendError::failed(format!("writing {path}"), io::Error::from_raw_os_error(errno))
        }
        _ => BackendError::NotPermitted { path, reason: io::Error::from_raw_os_error(errno).to_string() },
    }
}

/// Something of a sandbox could not be ended or removed.
pub(crate) fn set_aside(slot: u32, errno: i32) -> BackendError {
    let step = format!(
        "cleaning up: something of the sandbox is left, so its range of user ids, number {slot}, is set aside until \
         the machine restarts; `cofferdam doctor` lists such ranges"
    );
    BackendError::failed(step, io::Error::from_raw_os_error(errno))
}

pub(crate) fn not_plain(path: &GuestPath) -> BackendError {
    BackendError::NotPermitted { path: path.to_string(), reason: "not a plain file".to_owned() }
}

/// The isolation report of a sandbox, from what was proven.
pub(crate) fn isolation(spec: &SandboxSpec, proven: ControlSet, layout: &Layout) -> IsolationReport {
    let row = |control| {
        let (state, note) = if proven.has(control) && control == Control::Landlock && spec.writable_root {
            let note = "it allows writing anywhere in the root, as a writable root was asked for";
            (ControlState::Degraded, note.to_owned())
        } else if proven.has(control) {
            (ControlState::Enforced, evidence(control, spec).to_owned())
        } else {
            absence(control, spec, layout)
        };
        IsolationRow { control, state, note }
    };
    IsolationReport {
        backend: "native".to_owned(),
        mode: spec.isolation,
        controls: Control::ALL.into_iter().map(row).collect(),
    }
}

/// What the probe looked at.
fn evidence(control: Control, spec: &SandboxSpec) -> &'static str {
    match control {
        Control::UserNamespace
        | Control::PidNamespace
        | Control::MountNamespace
        | Control::NetNamespace
        | Control::IpcNamespace
        | Control::UtsNamespace
        | Control::CgroupNamespace => "another one than the host's",
        Control::OwnHostUids => "a range of its own, without host uid 0",
        Control::SeparateInitUid => "init is uid 0, processes are uid 1000",
        Control::Capabilities => "none held, none in the bounding set",
        Control::NoNewPrivs => "set",
        Control::Securebits => "locked",
        Control::Groups => "no supplementary groups",
        Control::Seccomp => "the filter answered a probe",
        Control::InitSeccomp => "init's filter answered a probe",
        Control::Landlock => "a write that modes allow was refused",
        Control::ClosedFds => "only stdin, stdout and stderr are open",
        Control::Keyring => "a session keyring of its own",
        Control::Rlimits => "open files and more are limited",
        Control::ReadOnlyRoot => "mounted read-only",
        Control::PrivateRoot => "an overlay of its own",
        Control::MountFlags => "nosuid and nodev on every mount but /dev",
        Control::ProcMasked => "addresses, keys, hardware and settings of the host are covered",
        Control::ProcReadOnly => "mounted read-only",
        Control::ProcHidden => "other users' processes do not show",
        Control::MinimalDev => "only null, zero, full, random, urandom and tty",
        Control::HostRootDetached => "nothing above the root",
        Control::CleanEnvironment => "the launcher's environment and command line are blank",
        Control::MemoryLimit | Control::PidsLimit | Control::CpuLimit => "read back from its cgroup",
        Control::SwapOff => "no swap for its cgroup",
        Control::DiskLimit => match spec.limits.disk {
            Disk::Memory { .. } => "the size of its filesystem; files in memory count as memory",
            Disk::OnDisk { .. } => "the size of its filesystem, an image on disk",
        },
        Control::InodeLimit => "the number of files that its filesystem holds",
        Control::DevicesLimit => "only the devices in /dev can be used",
        Control::NamespaceLimits => "no further user namespaces",
        Control::InitProtected => "init's memory cannot be read",
        Control::DiesWithHost => "killed when the launcher ends",
        Control::OwnSession => "a session of its own",
        Control::CoreDumpsOff => "a core file can have no size",
        Control::LoopbackOnly => "loopback has the only address",
        Control::OomVictim => "chosen first when the machine is out of memory",
    }
}

fn absence(control: Control, spec: &SandboxSpec, layout: &Layout) -> (ControlState, String) {
    let is_about_ids = matches!(control, Control::OwnHostUids | Control::SeparateInitUid);
    if is_about_ids && cofferdam_linux::sys::geteuid() != 0 {
        let note = "one user id for everything; install newuidmap and a range in /etc/subuid and /etc/subgid";
        return (ControlState::Degraded, note.to_owned());
    }
    (ControlState::Absent, why_absent(control, spec, layout))
}

fn why_absent(control: Control, spec: &SandboxSpec, layout: &Layout) -> String {
    match (control, layout) {
        (
            Control::MemoryLimit
            | Control::PidsLimit
            | Control::CpuLimit
            | Control::SwapOff
            | Control::DevicesLimit,
            Layout::None { reason },
        ) => reason.clone(),
        (Control::DevicesLimit, Layout::V2 { .. }) => {
            "cgroup version 2 has no devices controller; /dev and nodev limit devices".to_owned()
        }
        (Control::ReadOnlyRoot, _) if spec.writable_root => "a writable root was asked for".to_owned(),
        (Control::Landlock, _) => "this kernel has no Landlock, or no process was started yet".to_owned(),
        _ => "not proven: no process was started yet, or the control is missing".to_owned(),
    }
}
