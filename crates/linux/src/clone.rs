//! clone3, in the forms that are needed: a fork into new namespaces, and children that share memory and have a
//! stack of their own, with the parent suspended or not.

use crate::sys::{Errno, Result};
use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// `clone_args` of clone3(2), up to the cgroup field (kernel 5.7).
#[repr(C)]
#[derive(Debug, Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

fn with_cgroup(mut args: CloneArgs, cgroup: Option<RawFd>) -> CloneArgs {
    if let Some(fd) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = fd as u64;
    }
    args
}

/// What a fork returns.
#[derive(Debug)]
pub(crate) enum Forked {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// Forks with clone3 and the given namespace flags, into a cgroup where one is given.
///
/// # Safety
/// The process has one thread. The child goes on with a copy of this memory, so it must not rely on
/// anything that another thread would have had to finish.
pub(crate) unsafe fn fork_into(flags: u64, cgroup: Option<RawFd>) -> Result<Forked> {
    let mut pidfd: RawFd = -1;
    let args = CloneArgs {
        flags: flags | libc::CLONE_PIDFD as u64,
        pidfd: &raw mut pidfd as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    let args = with_cgroup(args, cgroup);
    // SAFETY: args lives across the call and its size is right; without CLONE_VM the child has its own copy of
    // this stack, so both returns are sound.
    match unsafe { libc::syscall(libc::SYS_clone3, &args, size_of::<CloneArgs>()) } {
        0 => Ok(Forked::Child),
        pid if pid > 0 => {
            // SAFETY: the kernel has just put a new descriptor there.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Forked::Parent { pid: pid as i32, pidfd })
        }
        _ => Err(Errno::last()),
    }
}

/// Runs `entry(arg)` in a child that shares this memory, and waits until it has exec'd or ended.
///
/// Nothing is copied, so the child starts several times sooner than after a fork, and it can leave an
/// error code in memory instead of sending it.
///
/// # Safety
/// `stack` is unused by anyone else and large enough; `entry` never returns, and touches nothing that the
/// suspended parent would not expect to change.
pub(crate) unsafe fn vfork_on(
    stack: &mut [u8],
    cgroup: Option<RawFd>,
    entry: extern "C" fn(*mut c_void) -> !,
    arg: *mut c_void,
) -> Result<i32> {
    let args = CloneArgs {
        flags: (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..on_stack(stack)
    };
    let args = with_cgroup(args, cgroup);
    // SAFETY: the caller upholds what the function asks for.
    let ret = unsafe { clone3_call(&args, entry, arg) };
    if ret < 0 { Err(Errno(-ret as i32)) } else { Ok(ret as i32) }
}

/// Runs `entry(arg)` in a child that shares this memory, beside the parent. When the child has exec'd or ended,
/// the kernel sets `shares` to 0 and wakes who waits for that.
///
/// # Safety
/// `stack` and whatever `arg` points to are not used by anyone else until `shares` is 0, and `entry` never
/// returns. While the child runs, the parent must not use what both have, errno among it: it waits on a
/// [`Word`] whenever the child does not.
pub(crate) unsafe fn beside_on(
    stack: &mut [u8],
    cgroup: Option<RawFd>,
    shares: &'static Word,
    entry: extern "C" fn(*mut c_void) -> !,
    arg: *mut c_void,
) -> Result<i32> {
    let args = CloneArgs {
        flags: (libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID) as u64,
        exit_signal: libc::SIGCHLD as u64,
        child_tid: shares.0.as_ptr() as u64,
        ..on_stack(stack)
    };
    let args = with_cgroup(args, cgroup);
    // SAFETY: the caller upholds what the function asks for, and the word lives for ever.
    let ret = unsafe { clone3_call(&args, entry, arg) };
    if ret < 0 { Err(Errno(-ret as i32)) } else { Ok(ret as i32) }
}

fn on_stack(stack: &mut [u8]) -> CloneArgs {
    // The stack grows down from an address that the ABI wants to be a multiple of 16.
    let base = stack.as_mut_ptr() as u64;
    let size = (base + stack.len() as u64) / 16 * 16 - base;
    CloneArgs { stack: base, stack_size: size, ..CloneArgs::default() }
}

/// A number that processes which share memory wait on. Its calls leave errno alone, which they share, too.
#[derive(Debug)]
pub(crate) struct Word(AtomicU32);

impl Word {
    pub(crate) const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Changes the number without waking anyone.
    pub(crate) fn put(&self, value: u32) {
        self.0.store(value, Ordering::Release);
    }

    pub(crate) fn set(&self, value: u32) {
        self.put(value);
        self.futex(libc::FUTEX_WAKE, i32::MAX as u32);
    }

    /// Waits for as long as the number is this one, and returns what it became.
    pub(crate) fn wait_while(&self, value: u32) -> u32 {
        loop {
            match self.get() {
                now if now == value => self.futex(libc::FUTEX_WAIT, value),
                now => return now,
            }
        }
    }

    /// Not the private form: the kernel itself wakes with the other when a child lets go of the memory.
    #[cfg(target_arch = "x86_64")]
    fn futex(&self, operation: i32, value: u32) {
        // SAFETY: the word is alive, there is no time-out, and the kernel clobbers only what is named.
        unsafe {
            std::arch::asm!(
                "syscall",
                inout("rax") libc::SYS_futex => _,
                in("rdi") self.0.as_ptr(),
                in("rsi") operation,
                in("rdx") value,
                in("r10") 0,
                out("rcx") _,
                out("r11") _,
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn clone3_call(args: &CloneArgs, entry: extern "C" fn(*mut c_void) -> !, arg: *mut c_void) -> isize {
    let ret: isize;
    // SAFETY: the parent comes back behind the block with every register but those named as outputs unchanged.
    // The child comes back on the new stack, where it only calls entry, which does not return.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, {arg}",
            "call {entry}",
            "ud2",
            "2:",
            arg = in(reg) arg,
            entry = in(reg) entry,
            inout("rax") libc::SYS_clone3 => ret,
            in("rdi") args,
            in("rsi") size_of::<CloneArgs>(),
            out("rcx") _,
            out("r11") _,
        );
    }
    ret
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    extern "C" fn store_and_exit(arg: *mut c_void) -> ! {
        // SAFETY: the parent is suspended and owns the number that arg points to.
        unsafe { *arg.cast::<u32>() = 42 };
        sys::exit(7)
    }

    static SHARES: Word = Word::new(0);
    static GO: Word = Word::new(0);
    const SHARED: u32 = 1;

    extern "C" fn wait_and_exit(arg: *mut c_void) -> ! {
        SHARES.set(SHARED + 1);
        // SAFETY: the parent waits for the end of this process before it looks at the number.
        unsafe { *arg.cast::<u32>() = GO.wait_while(0) };
        sys::exit(7)
    }

    #[test]
    fn a_child_beside_waits_and_its_end_is_seen() {
        let mut stack = vec![0u8; 64 << 10];
        let mut seen = 0u32;
        SHARES.put(SHARED);
        // SAFETY: the stack and the number are left alone until the child is seen to have ended.
        let child = unsafe { beside_on(&mut stack, None, &SHARES, wait_and_exit, (&raw mut seen).cast()) };
        let pid = child.unwrap();
        assert_eq!(SHARES.wait_while(SHARED), SHARED + 1);
        GO.set(42);
        assert_eq!(SHARES.wait_while(SHARED + 1), 0);
        assert_eq!(seen, 42);
        assert_eq!(libc::WEXITSTATUS(sys::wait_pid(pid).unwrap()), 7);
    }

    #[test]
    fn a_vforked_child_shares_memory_and_is_waited_for() {
        let mut stack = vec![0u8; 64 << 10];
        let mut seen = 0u32;
        // SAFETY: the stack is ours alone, and the child only stores a number and exits.
        let pid = unsafe { vfork_on(&mut stack, None, store_and_exit, (&raw mut seen).cast()) }.unwrap();
        assert_eq!(seen, 42);
        assert_eq!(libc::WEXITSTATUS(sys::wait_pid(pid).unwrap()), 7);
    }
}
