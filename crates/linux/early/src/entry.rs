//! The first instructions of the program, before those of glibc.
//!
//! glibc asks the processor what it can do before it calls anything of a program, question by question, and on a
//! virtual machine each one goes to the hypervisor: half a millisecond in which nothing else happens. A network
//! namespace takes about as long and needs nothing but the kernel. So a thread makes one meanwhile, on another
//! processor.
//!
//! Nothing here may call a function of a library: there is no thread-local storage yet, so no `errno`, and what
//! glibc chooses by processor, such as copying memory, is not chosen yet. Hence numbers and system calls only.

use std::arch::{asm, global_asm};
use std::ffi::{CStr, c_long};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

// The kernel starts a program with its arguments on the stack and a function to call at its end in rdx. Both are
// for glibc, and are as they were when it gets to see them.
global_asm!(
    ".pushsection .text.cofferdam_start,\"ax\",@progbits",
    ".globl cofferdam_start",
    ".type cofferdam_start,@function",
    "cofferdam_start:",
    "endbr64",
    "xor %ebp, %ebp",
    "mov %rsp, %rdi",
    "push %rdx",
    "sub $8, %rsp",
    "call {first}",
    "add $8, %rsp",
    "pop %rdx",
    "jmp _start",
    ".size cofferdam_start, . - cofferdam_start",
    ".popsection",
    first = sym first,
    options(att_syntax),
);

/// Whether the thread was started, be it done or not.
pub(crate) fn has_started() -> bool {
    HAS_STARTED.load(Ordering::Relaxed)
}

/// The network namespace that was made, with its loopback up, once. Waits for the thread.
pub fn network() -> Option<OwnedFd> {
    loop {
        let thread = THREAD.load(Ordering::Acquire);
        if thread == 0 {
            break;
        }
        // The kernel wakes all its kinds of waiters on a thread's end, so this one is not marked as private.
        // SAFETY: the number is a static, and there is no time-out to be read.
        unsafe { libc::syscall(libc::SYS_futex, THREAD.as_ptr(), libc::FUTEX_WAIT, thread, null::<u8>()) };
    }
    let network = NETWORK.swap(-1, Ordering::Acquire);
    // SAFETY: the thread opened it and told nobody else.
    (network >= 0).then(|| unsafe { OwnedFd::from_raw_fd(network) })
}

const STACK_BYTES: usize = 16 << 10;

/// The kernel wants a stack to begin at a multiple of 16.
#[repr(C, align(16))]
struct Stack([u8; STACK_BYTES]);

static mut STACK: Stack = Stack([0; STACK_BYTES]);

/// Not 0 while the thread lives. The kernel clears it and wakes whoever waits for that.
static THREAD: AtomicU32 = AtomicU32::new(0);

static HAS_STARTED: AtomicBool = AtomicBool::new(false);

/// The descriptor of the namespace, once there is one.
static NETWORK: AtomicI32 = AtomicI32::new(-1);

/// What `SIOCSIFFLAGS` reads: a name, and flags behind it.
#[repr(C)]
struct InterfaceFlags {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

static LOOPBACK: InterfaceFlags = InterfaceFlags {
    name: *b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    flags: (libc::IFF_UP | libc::IFF_RUNNING) as u16,
    rest: [0; 22],
};

const NAMESPACE: &CStr = c"/proc/thread-self/ns/net";

/// A number above those of the standard streams.
const FIRST_OTHER: usize = 3;

/// A system call with up to three arguments. A negative answer is an error.
///
/// # Safety
/// As of the call.
#[inline(always)]
unsafe fn call(number: c_long, a: usize, b: usize, c: usize) -> isize {
    let answer;
    // SAFETY: promised by the caller. The kernel changes rcx and r11, and memory only as the call says.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// Called with what the kernel put on the stack: the number of arguments, then the arguments.
unsafe extern "C" fn first(stack: *const usize) {
    // SAFETY: that is how the kernel starts a program; each argument ends with a NUL, and there are at least as many
    // as it says.
    unsafe {
        if *stack < 2 {
            return;
        }
        let word = *stack.add(2) as *const u8;
        if *word != b'r' || *word.add(1) != b'u' || *word.add(2) != b'n' || *word.add(3) != 0 {
            return;
        }
        // Without root a namespace needs others first.
        if call(libc::SYS_geteuid, 0, 0, 0) != 0 {
            return;
        }
        // Where a standard stream is closed, the thread's descriptors would pass for it while they are open.
        for stream in 0..FIRST_OTHER {
            if call(libc::SYS_fcntl, stream, libc::F_GETFD as usize, 0) < 0 {
                return;
            }
        }
        start();
    }
}

/// Starts the thread.
///
/// # Safety
/// The process has no other, and this is called once.
#[inline(always)]
unsafe fn start() {
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_CHILD_CLEARTID;
    THREAD.store(1, Ordering::Relaxed);
    let thread: isize;
    // SAFETY: the thread has its own stack and never returns from `make`. The process goes on below, with all its
    // registers but those that a call of a function may change.
    unsafe {
        let top = (&raw mut STACK).cast::<u8>().add(STACK_BYTES);
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "call {make}",
            "ud2",
            "2:",
            make = sym make,
            inlateout("rax") libc::SYS_clone as isize => thread,
            in("rdi") flags as usize,
            in("rsi") top,
            in("rdx") 0usize,
            in("r10") THREAD.as_ptr(),
            in("r8") 0usize,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    if thread < 0 {
        THREAD.store(0, Ordering::Relaxed);
        return;
    }
    HAS_STARTED.store(true, Ordering::Relaxed);
    // SAFETY: the thread was just made.
    unsafe { move_elsewhere(thread as usize) };
}

/// The kernel often queues a new thread where its parent runs, although another processor is idle.
///
/// # Safety
/// It is a thread of this process.
#[inline(always)]
unsafe fn move_elsewhere(thread: usize) {
    let mut processors = [0u64; 16];
    let mut here = 0u32;
    // SAFETY: both live across the calls, which write no more than their sizes.
    unsafe {
        let bytes = size_of::<[u64; 16]>();
        if call(libc::SYS_getcpu, (&raw mut here) as usize, 0, 0) < 0
            || call(libc::SYS_sched_getaffinity, 0, bytes, (&raw mut processors) as usize) < 0
            || here as usize >= 8 * bytes
        {
            return;
        }
        let place = (&raw mut processors).cast::<u64>().add(here as usize / 64);
        *place &= !(1 << (here % 64));
        // Refused where there is no other. It ends soon, so nothing has to be changed back.
        call(libc::SYS_sched_setaffinity, thread, bytes, (&raw const processors) as usize);
    }
}

/// What the thread does.
unsafe extern "C" fn make() -> ! {
    // SAFETY: each call gets numbers and what lives for as long as the program.
    unsafe {
        if call(libc::SYS_unshare, libc::CLONE_NEWNET as usize, 0, 0) == 0 {
            let cloexec = libc::SOCK_CLOEXEC as usize;
            let socket =
                call(libc::SYS_socket, libc::AF_INET as usize, libc::SOCK_DGRAM as usize | cloexec, 0);
            let up = call(
                libc::SYS_ioctl,
                socket as usize,
                libc::SIOCSIFFLAGS as usize,
                &raw const LOOPBACK as usize,
            );
            call(libc::SYS_close, socket as usize, 0, 0);
            if up == 0 {
                let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
                let opened = call(libc::SYS_open, NAMESPACE.as_ptr() as usize, flags, 0);
                let kept =
                    call(libc::SYS_fcntl, opened as usize, libc::F_DUPFD_CLOEXEC as usize, FIRST_OTHER);
                call(libc::SYS_close, opened as usize, 0, 0);
                NETWORK.store(kept as i32, Ordering::Release);
            }
        }
        loop {
            call(libc::SYS_exit, 0, 0, 0);
        }
    }
}
