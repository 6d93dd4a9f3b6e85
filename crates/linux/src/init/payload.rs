//! A process of the user's: from init's clone to exec, every wall in its place, the filter last.
//!
//! The child shares init's memory until it execs (init is suspended meanwhile), so that nothing is copied and
//! it can leave what it saw, or what failed, where init finds it.

use super::serve::Group;
use super::{Failure, InitPlan, Kit, StageResult, probe};
use crate::protocol::{MAX_STRINGS, StartRequest, StdioRequest};
use crate::stage::Stage;
use crate::sys::{self, Errno};
use crate::wire::MALFORMED;
use crate::{ControlSet, caps, clone, landlock, seccomp};
use cofferdam_core::Control;
use libc::c_char;
use std::ffi::{CStr, c_void};
use std::os::fd::{AsRawFd, RawFd};

/// The controls that each process proves for itself.
pub(super) const CONTROLS: ControlSet = ControlSet::of(&[
    Control::CgroupNamespace,
    Control::SeparateInitUid,
    Control::Capabilities,
    Control::NoNewPrivs,
    Control::Securebits,
    Control::Groups,
    Control::Seccomp,
    Control::Landlock,
    Control::ClosedFds,
    Control::Rlimits,
    Control::CoreDumpsOff,
    Control::ProcHidden,
    Control::OwnSession,
]);

/// The child's stack. Its deepest call is exec's path search, with a buffer of PATH_MAX.
const STACK_BYTES: usize = 64 << 10;

/// Room for pointers to every argument and variable, and the two nulls behind them.
const POINTERS: usize = MAX_STRINGS + 2;

/// Memory for starting processes, untouched until the first start.
#[derive(Debug)]
#[repr(C, align(16))]
pub(super) struct Scratch {
    pub(super) stack: [u8; STACK_BYTES],
    pub(super) pointers: [*const c_char; POINTERS],
}

impl Scratch {
    pub(super) const EMPTY: Self = Self { stack: [0; STACK_BYTES], pointers: [std::ptr::null(); POINTERS] };
}

/// Where walls are put up, and what was seen of them.
pub(super) struct Walls<'l> {
    pub(super) plan: &'l InitPlan<'l>,
    pub(super) group: &'l Group,
    pub(super) kit: &'l Kit,
    pub(super) cwd: &'l CStr,
    pub(super) make_cwd: bool,
    pub(super) stdio: [RawFd; 3],
    pub(super) is_terminal: bool,
    pub(super) seen: ControlSet,
}

/// What is executed behind them. Everything points into init's memory.
#[derive(Clone, Copy)]
pub(super) struct Command<'m> {
    argv: *const *const c_char,
    envp: *const *const c_char,
    program: &'m CStr,
    search: Option<&'m CStr>,
}

/// What the child needs and what it leaves behind.
struct Launch<'l> {
    walls: Walls<'l>,
    /// None for a child that only proves its walls.
    command: Option<Command<'l>>,
    failure: Option<Failure>,
}

/// Starts a process and returns its pid and what it proved.
pub(super) fn start(
    plan: &InitPlan<'_>,
    group: &Group,
    kit: &Kit,
    scratch: &mut Scratch,
    request: StartRequest<'_>,
    stdio: [RawFd; 3],
) -> Result<(i32, ControlSet), Failure> {
    let is_terminal = matches!(request.stdio, StdioRequest::Terminal { .. });
    let StartRequest { make_cwd, cwd, .. } = request;
    let Scratch { stack, pointers } = scratch;
    let command = Some(command(request, pointers)?);
    let walls = Walls { plan, group, kit, cwd, make_cwd, stdio, is_terminal, seen: ControlSet::EMPTY };
    run(stack, Launch { walls, command, failure: None })
}

/// Puts every wall up around a child that then ends, and returns what it proved.
pub(super) fn prove(
    plan: &InitPlan<'_>,
    group: &Group,
    kit: &Kit,
    scratch: &mut Scratch,
) -> Result<(i32, ControlSet), Failure> {
    let (stdio, seen) = ([0, 1, 2], ControlSet::EMPTY);
    let walls = Walls { plan, group, kit, cwd: c"/", make_cwd: false, stdio, is_terminal: false, seen };
    run(&mut scratch.stack, Launch { walls, command: None, failure: None })
}

fn run(stack: &mut [u8], mut launch: Launch<'_>) -> Result<(i32, ControlSet), Failure> {
    let plan = launch.walls.plan;
    let cgroup = launch.walls.group.folder();
    // SAFETY: the stack is used by nobody else while init is suspended in this call; `enter` never returns and
    // changes nothing but the launch, which outlives it.
    let pid = unsafe { clone::vfork_on(stack, cgroup, enter, (&raw mut launch).cast()) };
    let pid = plan.at(Stage::PayloadCgroup, pid)?;
    match launch.failure {
        None => Ok((pid, launch.walls.seen)),
        Some(failure) => {
            let _ = sys::wait_pid(pid);
            Err(failure)
        }
    }
}

/// The command of a request, whose words stay where they came in.
pub(super) fn command<'m>(
    request: StartRequest<'m>,
    pointers: &mut [*const c_char; POINTERS],
) -> Result<Command<'m>, Failure> {
    let malformed = |errno| Failure { stage: Stage::Start, errno, missing: ControlSet::EMPTY };
    let StartRequest { argc, envc, strings, .. } = request;
    let Found { program, search } = point_to(strings, argc, envc, pointers).map_err(malformed)?;
    let (argv, envp) = (pointers.as_ptr(), pointers[argc as usize + 1..].as_ptr());
    Ok(Command { argv, envp, program, search })
}

struct Found<'m> {
    program: &'m CStr,
    search: Option<&'m CStr>,
}

/// Fills in the pointers to arguments and variables, which stay where they came in.
fn point_to<'m>(
    mut strings: crate::protocol::Strings<'m>,
    argc: u32,
    envc: u32,
    pointers: &mut [*const c_char; POINTERS],
) -> sys::Result<Found<'m>> {
    let (argc, envc) = (argc as usize, envc as usize);
    let mut program = None;
    let mut search = None;
    for pointer in &mut pointers[..argc] {
        let text = strings.next_text()?;
        program = program.or(Some(text));
        *pointer = text.as_ptr();
    }
    pointers[argc] = std::ptr::null();
    for pointer in &mut pointers[argc + 1..][..envc] {
        let text = strings.next_text()?;
        let value = text.to_bytes_with_nul().strip_prefix(b"PATH=");
        search = search.or(value.and_then(|value| CStr::from_bytes_with_nul(value).ok()));
        *pointer = text.as_ptr();
    }
    pointers[argc + 1 + envc] = std::ptr::null();
    strings.end()?;
    Ok(Found { program: program.ok_or(MALFORMED)?, search })
}

extern "C" fn enter(arg: *mut c_void) -> ! {
    // SAFETY: `start` passes its launch, which lives until this child has exec'd or exited.
    let launch = unsafe { &mut *arg.cast::<Launch<'_>>() };
    let done = put_up(&mut launch.walls);
    launch.failure = match (done, launch.command) {
        (Ok(()), None) => sys::exit(0),
        (Ok(()), Some(command)) => Some(execute(launch.walls.plan, command)),
        (Err(failure), _) => Some(failure),
    };
    sys::exit(127)
}

/// Puts every wall up around this process.
pub(super) fn put_up(walls: &mut Walls<'_>) -> StageResult {
    let plan = walls.plan;
    join_cgroup(walls)?;
    if !plan.leaves_out(Control::CgroupNamespace) {
        match sys::unshare(libc::CLONE_NEWCGROUP) {
            // Not mandatory: the probe says that it is missing.
            Err(_) if !plan.required.has(Control::CgroupNamespace) => {}
            other => plan.at(Stage::PayloadCgroupNamespace, other)?,
        }
    }
    connect(walls)?;
    let early_filters = plan.leaves_out(Control::NoNewPrivs);
    if early_filters {
        // Without no_new_privs a filter takes privilege, so a test that leaves it out filters first.
        restrict(walls)?;
        filter(plan)?;
    }
    drop_privileges(plan)?;
    enter_workdir(walls)?;
    if !early_filters {
        plan.at(Stage::PayloadNoNewPrivs, sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0))?;
        restrict(walls)?;
    }
    probe::payload(plan, walls.kit, &mut walls.seen);
    if !plan.leaves_out(Control::ClosedFds) {
        plan.at(Stage::PayloadFds, sys::close_range(3, u32::MAX))?;
    }
    sys::unblock_signals();
    if !early_filters {
        filter(plan)?;
    }
    probe::payload_last(&mut walls.seen);
    let missing = ControlSet(plan.required.0 & CONTROLS.0).minus(walls.seen);
    if !missing.is_empty() {
        return Err(Failure { stage: Stage::PayloadProbe, errno: Errno(libc::EPERM), missing });
    }
    plan.at(Stage::PayloadProbe, Ok(()))
}

fn join_cgroup(walls: &Walls<'_>) -> StageResult {
    for fd in walls.group.tasks() {
        walls.plan.at(Stage::PayloadCgroup, sys::write(fd, b"0"))?;
    }
    walls.plan.at(Stage::PayloadCgroup, Ok(()))
}

/// A session of its own, and stdio on descriptors 0, 1 and 2.
fn connect(walls: &Walls<'_>) -> StageResult {
    let plan = walls.plan;
    if !plan.leaves_out(Control::OwnSession) {
        plan.at(Stage::PayloadSession, sys::setsid())?;
    }
    if walls.is_terminal {
        plan.at(Stage::PayloadTerminal, sys::ioctl_number(walls.stdio[0], libc::TIOCSCTTY, 0))?;
    }
    for (target, fd) in walls.stdio.into_iter().enumerate() {
        if fd == target as RawFd {
            continue;
        }
        plan.at(Stage::PayloadStdio, sys::dup_to(fd, target as RawFd, 0))?;
    }
    Ok(())
}

fn drop_privileges(plan: &InitPlan<'_>) -> StageResult {
    let keeps_caps = plan.leaves_out(Control::Capabilities);
    if keeps_caps {
        plan.at(Stage::PayloadCapabilities, sys::prctl(libc::PR_SET_KEEPCAPS, 1, 0))?;
    } else if !plan.leaves_out(Control::Securebits) {
        plan.at(Stage::PayloadSecurebits, sys::prctl(libc::PR_SET_SECUREBITS, caps::LOCKED_SECUREBITS, 0))?;
    }
    plan.at(Stage::PayloadGroups, Ok(()))?;
    let id = if plan.leaves_out(Control::SeparateInitUid) { plan.init_id } else { plan.payload_id };
    plan.at(Stage::PayloadIdentity, sys::setgid_all(id))?;
    plan.at(Stage::PayloadIdentity, sys::setuid_all(id))?;
    // Until exec this memory is init's, and the id is that of every other process here. The kernel hides it at a
    // change of ids, unless the host's fs.suid_dumpable says otherwise.
    if !plan.leaves_out(Control::InitProtected) {
        plan.at(Stage::PayloadIdentity, sys::prctl(libc::PR_SET_DUMPABLE, 0, 0))?;
    }
    // Explicit, because the kernel's own drop does not happen for every pair of ids.
    if !keeps_caps {
        plan.at(Stage::PayloadCapabilities, caps::set(0))?;
    }
    // A change of ids clears it, so it comes after.
    plan.at(Stage::PayloadDeathSignal, sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as usize, 0))
        .map(drop)
}

/// The guest, or an image, may have made the folder a link to anything. Until the descriptors are closed some of
/// them are folders of the host (on cgroup version 2 the sandbox's group is), so that a link through
/// /proc/self/fd would lead out.
fn enter_workdir(walls: &Walls<'_>) -> StageResult {
    let plan = walls.plan;
    let entered = match enter_folder(walls.cwd) {
        Err(Errno(libc::ENOENT)) if walls.make_cwd => {
            let relative = super::files::below_root(walls.cwd);
            super::files::make_folders(relative).and_then(|()| enter_folder(walls.cwd))
        }
        other => other,
    };
    plan.at(Stage::PayloadWorkdir, entered)
}

fn enter_folder(path: &CStr) -> sys::Result<()> {
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    let folder = sys::openat2(sys::CWD, path, flags, 0, sys::RESOLVE_NO_MAGICLINKS)?;
    sys::fchdir(folder.as_raw_fd())?;
    // What is outside the root has no path that begins with a slash.
    let mut buffer = [0u8; libc::PATH_MAX as usize];
    let is_inside = sys::getcwd(&mut buffer)?.starts_with(b"/");
    if is_inside { Ok(()) } else { Err(Errno(libc::EXDEV)) }
}

fn restrict(walls: &Walls<'_>) -> StageResult {
    match walls.kit.landlock {
        Some(ruleset) => walls.plan.at(Stage::PayloadLandlock, landlock::restrict_self(ruleset)),
        None => Ok(()),
    }
}

fn filter(plan: &InitPlan<'_>) -> StageResult {
    if plan.leaves_out(Control::Seccomp) {
        return Ok(());
    }
    plan.at(Stage::PayloadSeccomp, seccomp::install(plan.payload_filter).map_err(Errno))
}

/// Executes the program, and comes back only with what failed.
pub(super) fn execute(plan: &InitPlan<'_>, command: Command<'_>) -> Failure {
    match plan.at(Stage::PayloadExec, Ok(())) {
        Ok(()) => Failure { stage: Stage::PayloadExec, errno: search(command), missing: ControlSet::EMPTY },
        Err(failure) => failure,
    }
}

/// A file that the host has just written may still be open in a process that the host is forking at this moment:
/// until that executes its own program, this one is busy.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE_MS: i32 = 2;

/// Executes the program: as it is with a slash in its name, else from the first folder of `PATH` that has it.
fn search(command: Command<'_>) -> Errno {
    let exec = |path: *const c_char| {
        for _ in 0..BUSY_TRIES {
            // SAFETY: path, argv and envp are NUL- and null-terminated and live in init's memory.
            unsafe { libc::syscall(libc::SYS_execve, path, command.argv, command.envp) };
            match Errno::last() {
                Errno(libc::ETXTBSY) => drop(sys::poll(&mut [], BUSY_PAUSE_MS)),
                errno => return errno,
            }
        }
        Errno(libc::ETXTBSY)
    };
    let name = command.program.to_bytes();
    if name.contains(&b'/') {
        return exec(command.program.as_ptr());
    }
    let mut denied = None;
    let search = command.search.map_or(&b"/usr/local/bin:/usr/bin:/bin"[..], CStr::to_bytes);
    for folder in search.split(|b| *b == b':').filter(|folder| !folder.is_empty()) {
        let mut path = [0u8; libc::PATH_MAX as usize];
        let len = folder.len() + 1 + name.len();
        if name.is_empty() || len >= path.len() {
            continue;
        }
        path[..folder.len()].copy_from_slice(folder);
        path[folder.len()] = b'/';
        path[folder.len() + 1..len].copy_from_slice(name);
        match exec(path.as_ptr().cast()) {
            Errno(libc::ENOENT | libc::ENOTDIR) => {}
            Errno(libc::EACCES) => denied = Some(Errno(libc::EACCES)),
            errno => return errno,
        }
    }
    denied.unwrap_or(Errno(libc::ENOENT))
}
