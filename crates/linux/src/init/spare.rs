//! The first process of a sandbox, made while there is nothing else to do: behind every wall already, and waiting
//! for what to execute.
//!
//! Like any process before its exec it shares init's memory, and nothing else runs yet as the sandbox's user, so
//! nobody is there to see or to signal it. A request that it does not fit (a terminal, another folder) ends it, and
//! every later process is made when it is asked for.
//!
//! One of the two always waits while the other works, because they share errno, too.

use super::payload::{self, Command, Scratch, Walls};
use super::serve::{Group, Stdio};
use super::{Failure, InitPlan, Kit, files};
use crate::ControlSet;
use crate::clone::{self, Word};
use crate::protocol::{StartRequest, StdioRequest};
use crate::stage::Stage;
use crate::sys;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_void};
use std::os::fd::AsRawFd;

/// Where jobs run; a process for another folder is made anew.
const WORKDIR: &CStr = c"/workspace";

/// What a spare is at, as the kernel and the spare itself tell: 0 once it shares nothing any more.
static PLACE: Word = Word::new(GONE);
const GONE: u32 = 0;
const AT_WORK: u32 = 1;
const WAITING: u32 = 2;

/// Not 0 when there is an order.
static GO: Word = Word::new(0);

/// What passes between the two; init writes it before `GO`, and reads it after `PLACE`.
struct Desk(UnsafeCell<(Option<Order>, Option<Failure>)>);

// SAFETY: init and its one spare take turns, as told by the words above.
unsafe impl Sync for Desk {}

static DESK: Desk = Desk(UnsafeCell::new((None, None)));

#[derive(Clone, Copy)]
struct Order {
    /// Lives in init's memory, and init waits until it was used.
    command: Command<'static>,
    has_input: bool,
}

/// A process that waits, and what it will have for stdio.
pub(super) struct Spare {
    pid: i32,
    stdio: Stdio,
    /// What it has proven.
    pub(super) seen: ControlSet,
}

struct Making<'l> {
    walls: Walls<'l>,
    failure: Option<Failure>,
}

impl Spare {
    /// Makes one. It fails as a process that is asked for would, and then that one will say why.
    pub(super) fn make(plan: &InitPlan<'_>, group: &Group, kit: &Kit, scratch: &mut Scratch) -> Option<Self> {
        let stdio = files::as_user(plan, || Stdio::open(StdioRequest::Pipes { stdin: true })).ok()?;
        let walls = Walls {
            plan,
            group,
            kit,
            cwd: WORKDIR,
            make_cwd: false,
            stdio: stdio.inside(),
            is_terminal: false,
            seen: ControlSet::EMPTY,
        };
        let mut making = Making { walls, failure: None };
        let arg = (&raw mut making).cast();
        PLACE.put(AT_WORK);
        GO.put(0);
        // SAFETY: the stack is for whichever process is being made, of which there is one at a time: until this
        // one shares nothing any more, no other is made. It uses `making` only until it waits, or is gone.
        let pid = unsafe { clone::beside_on(&mut scratch.stack, group.folder(), &PLACE, enter, arg) }.ok()?;
        let is_waiting = PLACE.wait_while(AT_WORK) == WAITING;
        let spare = Self { pid, stdio, seen: making.walls.seen };
        if is_waiting && making.failure.is_none() {
            return Some(spare);
        }
        spare.end();
        None
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it can become the process that is asked for.
    pub(super) fn fits(&self, request: &StartRequest<'_>) -> bool {
        let has_pipes = matches!(request.stdio, StdioRequest::Pipes { .. });
        has_pipes && request.cwd == WORKDIR && PLACE.get() == WAITING
    }

    /// Becomes that process.
    pub(super) fn start(
        self,
        request: StartRequest<'_>,
        scratch: &mut Scratch,
    ) -> Result<(i32, ControlSet, Stdio), Failure> {
        let has_input = matches!(request.stdio, StdioRequest::Pipes { stdin: true });
        let command = match payload::command(request, &mut scratch.pointers) {
            Ok(command) => command,
            Err(failure) => {
                self.end();
                return Err(failure);
            }
        };
        // SAFETY: the words of the command stay where they are until this function has seen that the spare has
        // executed it or is gone; only the type forgets that.
        let command = unsafe { std::mem::transmute::<Command<'_>, Command<'static>>(command) };
        // SAFETY: the spare waits for `GO` and does not touch the desk.
        unsafe { *DESK.0.get() = (Some(Order { command, has_input }), None) };
        GO.set(1);
        PLACE.wait_while(WAITING);
        // SAFETY: the spare shares nothing any more.
        let (_, failure) = unsafe { *DESK.0.get() };
        match failure {
            None => Ok((self.pid, self.seen, self.stdio.without_unused_input(has_input))),
            Some(failure) => {
                let _ = sys::wait_pid(self.pid);
                Err(failure)
            }
        }
    }

    /// Ends it without a trace.
    pub(super) fn end(self) {
        let _ = sys::kill(self.pid, libc::SIGKILL);
        let _ = sys::wait_pid(self.pid);
    }
}

extern "C" fn enter(arg: *mut c_void) -> ! {
    // SAFETY: `make` passes what it made and waits until this process waits or is gone.
    let making = unsafe { &mut *arg.cast::<Making<'_>>() };
    let plan = making.walls.plan;
    if let Err(failure) = payload::put_up(&mut making.walls) {
        making.failure = Some(failure);
        sys::exit(127);
    }
    PLACE.set(WAITING);
    GO.wait_while(0);
    // SAFETY: init wrote the order before it said so, and waits now.
    let (order, failure) = unsafe { &mut *DESK.0.get() };
    *failure = order.map(|order| obey(plan, order));
    sys::exit(127)
}

/// Comes back only with what failed.
fn obey(plan: &InitPlan<'_>, order: Order) -> Failure {
    if !order.has_input {
        let null = sys::open(sys::CWD, c"/dev/null", libc::O_RDONLY, 0);
        let is_input = null.and_then(|null| sys::dup_to(null.as_raw_fd(), 0, 0));
        if let Err(failure) = plan.at(Stage::PayloadStdio, is_input) {
            return failure;
        }
    }
    payload::execute(plan, order.command)
}
