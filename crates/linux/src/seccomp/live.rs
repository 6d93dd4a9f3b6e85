//! For tests: what the running kernel makes of the filters. An off-by-one jump in a filter once left AF_VSOCK
//! open while every language's smoke test passed, so each decision is asked for, not only those that programs
//! meet.
//!
//! A child first installs a filter that answers every call with an error of its own, then the filter under
//! test. The kernel asks the newest first and keeps an older one's answer only if it is stricter, so the
//! child sees the refusals of the filter under test, and that error where it allows. No probed call is ever
//! carried out.

use std::ptr;

use libc::{c_int, c_long, sock_filter};

use super::assemble::Verdict;
use super::naive::{self, OwnedRule};
use super::program::{Program, install};
use super::table::{Action, table};
use super::{Profile, nr};

/// The errno that means "the filter under test allows it"; no kernel function returns it.
const ALLOWED: i32 = 4000;

type Probe = (u32, [u64; 6]);

#[test]
fn the_kernel_answers_as_the_table_says() {
    for profile in Profile::ALL {
        let (table, probes) = (table(profile), probes(profile));
        for ((nr, args), errno) in probes.iter().zip(ask(Some(profile.program()), &probes)) {
            let expected = match naive::verdict(&table, *nr, args) {
                Verdict::Eperm => [libc::EPERM; 2],
                Verdict::Enosys => [libc::ENOSYS; 2],
                // The only one that is carried out; it has no filter to install.
                Verdict::Allow if *nr == nr::SYS_seccomp as u32 => [libc::EFAULT, libc::EINVAL],
                Verdict::Allow => [ALLOWED; 2],
                Verdict::Kill => panic!("cannot be asked for in passing"),
            };
            assert!(expected.contains(&errno), "{profile:?} {nr} {args:x?}: {errno}, not {expected:?}");
        }
    }
}

/// The control: without the filter under test nothing is refused, so the refusals are its own.
#[test]
fn the_probes_alone_are_allowed() {
    let mut probes = probes(Profile::Payload);
    probes.retain(|(nr, _)| *nr != nr::SYS_seccomp as u32);
    assert!(probes.len() > 100_000);
    assert!(ask(None, &probes).iter().all(|errno| *errno == ALLOWED));
}

#[test]
fn foreign_numbers_and_architectures_are_killed() {
    for profile in Profile::ALL {
        for number in [0x4000_0000, 0x4000_0027, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe_u32] {
            assert_eq!(
                death_by(profile, || raw((number, [0; 6]))),
                Some(libc::SIGSYS),
                "{profile:?} {number:#x}"
            );
        }
        let unharmed = || raw((u32::MAX, [0; 6]));
        assert_eq!(death_by(profile, unharmed), None, "{profile:?} -1");
        // A kernel without 32-bit calls kills by SIGSEGV before it asks a filter.
        let signal = death_by(profile, getpid_of_i386);
        assert!(matches!(signal, Some(libc::SIGSYS | libc::SIGSEGV)), "{profile:?} int 0x80: {signal:?}");
    }
}

#[test]
fn without_no_new_privs_or_privilege_the_error_is_eacces() {
    let program = Profile::Payload.program();
    let status = in_child(|| {
        // SAFETY: no memory is involved; the child has one thread, and as root it only gives up its ids.
        unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        install(program).err().unwrap_or(0)
    });
    assert_eq!(libc::WEXITSTATUS(status), libc::EACCES);
}

/// Every number; for each argument rule the arguments that may matter to it; and whole sweeps where the
/// values are few.
fn probes(profile: Profile) -> Vec<Probe> {
    // The first is how the child ends. For the others the kernel asks no filter, and sends SIGILL.
    let not_asked = [nr::SYS_exit_group, nr::SYS_uretprobe, nr::SYS_uprobe].map(|nr| nr as u32);
    let mut probes: Vec<Probe> =
        (0..1024).filter(|nr| !not_asked.contains(nr)).map(|nr| (nr, [0; 6])).collect();
    for entry in table(profile) {
        if let Action::Rule(rule) = entry.action {
            let args = OwnedRule::from(rule).interesting_args();
            probes.extend(args.into_iter().map(|args| (entry.call.nr, args)));
        }
    }
    for family in 0..64 {
        for kind in 0..12 {
            for flags in [0, libc::SOCK_CLOEXEC as u64, libc::SOCK_NONBLOCK as u64, 1 << 20, 1 << 32] {
                for protocol in [0, 1, 2, 6, 12, 15, 17, 33, 58, 132, 136, 255, 262, 0x0300] {
                    let args = [family, kind | flags, protocol, 0, 0, 0];
                    probes.extend([(nr::SYS_socket as u32, args), (nr::SYS_socketpair as u32, args)]);
                }
            }
        }
    }
    probes.extend((0..0x1_0000).map(|request| (nr::SYS_ioctl as u32, [0, request, 0, 0, 0, 0])));
    probes.extend((0..64).map(|bit| (nr::SYS_clone as u32, [1 << bit, 0, 0, 0, 0, 0])));
    probes.extend((0..256).map(|option| (nr::SYS_prctl as u32, [option, 0, 0, 0, 0, 0])));
    for level in 0..300 {
        probes.extend((0..128).map(|option| (nr::SYS_setsockopt as u32, [3, level, option, 0, 0, 0])));
    }
    probes
}

/// The errno of each probe, in a child under `program`.
fn ask(program: Option<&Program>, probes: &[Probe]) -> Vec<i32> {
    let bytes = size_of_val(probes);
    // SAFETY: a fresh mapping, whose address the kernel chooses.
    let shared = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(shared, libc::MAP_FAILED);
    // SAFETY: the mapping is as long as `probes`, hence longer than as many i32, aligned to a page, zeroed,
    // and unmapped only below. The child writes to it, but has ended when the parent reads.
    let errors = unsafe { std::slice::from_raw_parts_mut(shared.cast::<i32>(), probes.len()) };
    let blanket = blanket();
    let status = in_child(|| {
        if !no_new_privs() || install(&blanket).is_err() || program.is_some_and(|p| install(p).is_err()) {
            return 1;
        }
        for (error, probe) in errors.iter_mut().zip(probes) {
            *error = raw(*probe);
        }
        0
    });
    assert_eq!(status, 0, "the child failed");
    let errors = errors.to_vec();
    // SAFETY: nothing refers to the mapping any more.
    unsafe { libc::munmap(shared, bytes) };
    errors
}

/// Refuses all with ALLOWED, but lets the child install a second filter and end.
fn blanket() -> Program {
    let jump_if = |nr: c_long, jt| sock_filter { code: 0x15, jt, jf: 0, k: nr as u32 };
    let plain = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    Program::new(vec![
        plain(0x20, 0),
        jump_if(libc::SYS_seccomp, 2),
        jump_if(libc::SYS_exit_group, 1),
        plain(0x06, libc::SECCOMP_RET_ERRNO | ALLOWED as u32),
        plain(0x06, libc::SECCOMP_RET_ALLOW),
    ])
}

/// The signal that ends a child which does `what` under the filter.
fn death_by(profile: Profile, what: impl FnOnce() -> i32) -> Option<c_int> {
    let program = profile.program();
    let status = in_child(|| {
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `no_core` is a valid rlimit that the call only reads.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core) };
        if !no_new_privs() || install(program).is_err() {
            return 1;
        }
        what();
        0
    });
    assert!(libc::WIFSIGNALED(status) || status == 0, "the child failed");
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

/// Runs `what` in a forked child and returns its wait status; the exit code is what `what` returns. The test
/// process has threads, so `what` must neither allocate, lock nor panic.
fn in_child(what: impl FnOnce() -> i32) -> c_int {
    // SAFETY: the child only runs `what`, which by the contract above needs nothing that another thread may
    // have held at the fork, and ends without running destructors.
    match unsafe { libc::fork() } {
        -1 => panic!("fork failed"),
        0 => {
            let code = what();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: `status` is valid for the write.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            status
        }
    }
}

fn no_new_privs() -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 }
}

/// The errno of a call, 0 on success.
fn raw((nr, [a, b, c, d, e, f]): Probe) -> i32 {
    // SAFETY: called only under a filter that refuses the call, or that kills.
    match unsafe { libc::syscall(c_long::from(nr), a, b, c, d, e, f) } {
        -1 => std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(target_arch = "x86_64")]
fn getpid_of_i386() -> i32 {
    let pid;
    // SAFETY: getpid touches no memory; the 32-bit entry leaves all but eax and r8 to r11 as they were.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") 20 => pid,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    pid
}
