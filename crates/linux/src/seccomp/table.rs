//! The table: every system call of Linux 6.18 that all architectures have, and what becomes of it. Calls that
//! only one architecture has, and its numbering, are in that architecture's file.
//!
//! ALLOW: what compilers, language runtimes, shells and databases use, as far as it acts on the caller
//! itself, on its own files or on processes that it could signal anyway. The kernel's own checks hold there.
//! ENOSYS: calls that software probes for, so that it falls back, and everything that is not in the table.
//! EPERM: calls that need privileges which no payload has, or whose refusal should be seen.

use super::rules::{self, Rule};
use super::{Profile, arch};

/// What the filter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Allow,
    Eperm,
    Enosys,
    Rule(&'static Rule),
}

/// A system call of this architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) constant: &'static str,
    pub(super) nr: u32,
}

impl Call {
    pub(super) fn name(self) -> &'static str {
        self.constant.strip_prefix("SYS_").unwrap_or(self.constant)
    }
}

/// Calls that are treated alike.
pub(super) type Group = (Action, &'static [Call]);

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) call: Call,
    pub(super) action: Action,
}

macro_rules! calls {
    ($($name:ident)*) => {
        &[$($crate::seccomp::table::Call {
            constant: stringify!($name),
            nr: $crate::seccomp::nr::$name as u32,
        }),*]
    };
}
pub(super) use calls;

/// The table of a profile, in order of number, each number at most once.
pub(super) fn table(profile: Profile) -> Vec<Entry> {
    let changes = match profile {
        Profile::Payload => &[],
        Profile::PayloadOneId => ONE_ID,
        Profile::Init => INIT,
    };
    let mut entries: Vec<Entry> = entries(COMMON).chain(entries(arch::GROUPS)).collect();
    entries.sort_unstable_by_key(|entry| entry.call.nr);
    for change in self::entries(changes) {
        for entry in entries.iter_mut().filter(|entry| entry.call == change.call) {
            entry.action = change.action;
        }
    }
    entries
}

pub(super) fn entries(groups: &'static [Group]) -> impl Iterator<Item = Entry> {
    groups.iter().flat_map(|&(action, calls)| calls.iter().map(move |&call| Entry { call, action }))
}

/// What is different for PID 1, which runs only our code. (What it needs besides, the payload may do as
/// well.)
pub(super) const INIT: &[Group] = &[
    // Starts payloads directly in their cgroup: CLONE_INTO_CGROUP exists nowhere else.
    (Action::Allow, calls![SYS_clone3]),
    (Action::Rule(&rules::INIT_UNSHARE), calls![SYS_unshare]),
    (Action::Rule(&rules::INIT_KEYCTL), calls![SYS_keyctl]),
    (Action::Rule(&rules::INIT_PRCTL), calls![SYS_prctl]),
];

/// What is different for a payload with PID 1's uid.
pub(super) const ONE_ID: &[Group] = &[
    (
        Action::Rule(&rules::NOT_ON_PID_1),
        calls![
            SYS_prlimit64 SYS_sched_setparam SYS_sched_setscheduler SYS_sched_setaffinity SYS_sched_setattr
        ],
    ),
    (Action::Rule(&rules::NO_PRIORITY_OF_PID_1), calls![SYS_setpriority]),
    (Action::Rule(&rules::NO_IO_PRIORITY_OF_PID_1), calls![SYS_ioprio_set]),
];

const COMMON: &[Group] = &[
    (Action::Allow, ALLOWED),
    (Action::Rule(&rules::CLONE), calls![SYS_clone]),
    (Action::Rule(&rules::IOCTL), calls![SYS_ioctl]),
    (Action::Rule(&rules::MADVISE), calls![SYS_madvise]),
    (Action::Rule(&rules::MKNODAT), calls![SYS_mknodat]),
    (Action::Rule(&rules::PERSONALITY), calls![SYS_personality]),
    (Action::Rule(&rules::PRCTL), calls![SYS_prctl]),
    (Action::Rule(&rules::RENAMEAT2), calls![SYS_renameat2]),
    (Action::Rule(&rules::SECCOMP), calls![SYS_seccomp]),
    (Action::Rule(&rules::SETSOCKOPT), calls![SYS_setsockopt]),
    (Action::Rule(&rules::SOCKET), calls![SYS_socket]),
    (Action::Rule(&rules::SOCKETPAIR), calls![SYS_socketpair]),
    (Action::Enosys, ABSENT),
    (Action::Eperm, REFUSED),
];

const ALLOWED: &[Call] = calls![
    // Reading and writing.
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_preadv2
    SYS_pwritev2 SYS_lseek SYS_sendfile SYS_copy_file_range SYS_splice SYS_tee SYS_readahead SYS_fadvise64
    SYS_fsync SYS_fdatasync SYS_syncfs
    // Open files.
    SYS_openat SYS_openat2 SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_fcntl SYS_flock SYS_pipe2
    // Files and directories.
    SYS_fstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs SYS_faccessat SYS_faccessat2
    SYS_getdents64 SYS_getcwd SYS_chdir SYS_fchdir SYS_umask
    SYS_mkdirat SYS_unlinkat SYS_linkat SYS_symlinkat SYS_readlinkat
    SYS_truncate SYS_ftruncate SYS_fallocate SYS_utimensat
    SYS_fchmod SYS_fchmodat SYS_fchmodat2 SYS_fchown SYS_fchownat
    SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_getxattr SYS_lgetxattr SYS_fgetxattr
    SYS_listxattr SYS_llistxattr SYS_flistxattr SYS_removexattr SYS_lremovexattr SYS_fremovexattr
    SYS_inotify_init1 SYS_inotify_add_watch SYS_inotify_rm_watch
    // Waiting for many files.
    SYS_ppoll SYS_pselect6 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2
    SYS_eventfd2 SYS_signalfd4 SYS_timerfd_create SYS_timerfd_settime SYS_timerfd_gettime
    // Memory. mseal and map_shadow_stack are libc's hardening of itself.
    SYS_brk SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_msync SYS_mincore SYS_mseal SYS_map_shadow_stack
    SYS_mlock SYS_mlock2 SYS_munlock SYS_mlockall SYS_munlockall SYS_memfd_create
    SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect
    // Asked by libnuma when it is loaded. Setting a policy is refused.
    SYS_get_mempolicy
    // Processes and threads.
    SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid
    SYS_getpid SYS_getppid SYS_gettid SYS_setsid SYS_getsid SYS_setpgid SYS_getpgid
    SYS_set_tid_address SYS_set_robust_list SYS_get_robust_list SYS_rseq SYS_membarrier
    SYS_futex SYS_futex_waitv SYS_getcpu SYS_sched_yield
    // Priorities, downwards: RLIMIT_NICE and RLIMIT_RTPRIO are 0.
    SYS_getpriority SYS_setpriority SYS_ioprio_get SYS_ioprio_set
    SYS_sched_setparam SYS_sched_getparam SYS_sched_setscheduler SYS_sched_getscheduler SYS_sched_setattr
    SYS_sched_getattr SYS_sched_setaffinity SYS_sched_getaffinity SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_sched_rr_get_interval
    SYS_prlimit64 SYS_getrusage SYS_times SYS_sysinfo SYS_uname SYS_getrandom
    // Signals. Whom they reach is decided by pid namespace and uid.
    SYS_kill SYS_tkill SYS_tgkill SYS_pidfd_open SYS_pidfd_send_signal SYS_rt_sigqueueinfo
    SYS_rt_tgsigqueueinfo
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigpending SYS_rt_sigsuspend SYS_rt_sigtimedwait
    SYS_rt_sigreturn SYS_sigaltstack
    // The kernel itself sends stopped sleepers here when they continue.
    SYS_restart_syscall
    // Time.
    SYS_nanosleep SYS_clock_nanosleep SYS_clock_gettime SYS_clock_getres SYS_gettimeofday SYS_getitimer
    SYS_setitimer SYS_timer_create SYS_timer_settime SYS_timer_gettime SYS_timer_getoverrun SYS_timer_delete
    // Sockets, once made.
    SYS_bind SYS_connect SYS_listen SYS_accept SYS_accept4 SYS_shutdown SYS_getsockname SYS_getpeername
    SYS_getsockopt SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_recvfrom SYS_recvmsg SYS_recvmmsg
    // System V IPC lives in the sandbox's own ipc namespace. PostgreSQL does not start without.
    SYS_shmget SYS_shmat SYS_shmdt SYS_shmctl SYS_semget SYS_semop SYS_semtimedop SYS_semctl
    SYS_msgget SYS_msgsnd SYS_msgrcv SYS_msgctl
    // Identity. Without capabilities nothing but the own ids can be set, and tar, ssh and ping try.
    SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups SYS_capget
    SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setfsuid SYS_setfsgid
    SYS_setgroups SYS_capset
    // A sandbox inside the sandbox only narrows.
    SYS_landlock_create_ruleset SYS_landlock_add_rule SYS_landlock_restrict_self
];

/// Refused as if the kernel did not have them. Unlisted numbers get the same answer: these are listed to show
/// that they were looked at.
const ABSENT: &[Call] = calls![
    // Its flags are behind a pointer, where a filter cannot see CLONE_NEW*. libc falls back to clone.
    SYS_clone3
    // Does file and socket work past any filter.
    SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register
    SYS_io_setup SYS_io_destroy SYS_io_getevents SYS_io_submit SYS_io_cancel
    // Lets a process hold the kernel in the midst of a copy, which makes exploits of races reliable.
    SYS_userfaultfd
    // Memory that neither the host nor a core dump can see.
    SYS_memfd_secret SYS_fanotify_init SYS_fanotify_mark
    // Show host paths and mounts.
    SYS_statmount SYS_listmount SYS_name_to_handle_at
    // A session keyring is inherited across namespaces.
    SYS_add_key SYS_request_key SYS_keyctl
    SYS_perf_event_open SYS_bpf
    SYS_mq_open SYS_mq_unlink SYS_mq_timedsend SYS_mq_timedreceive SYS_mq_notify SYS_mq_getsetattr
    // New, and nothing needs them yet; cachestat tells which pages of a shared file a neighbour has touched.
    SYS_cachestat SYS_futex_wake SYS_futex_wait SYS_futex_requeue
    SYS_lsm_get_self_attr SYS_lsm_set_self_attr SYS_lsm_list_modules
    SYS_setxattrat SYS_getxattrat SYS_listxattrat SYS_removexattrat SYS_file_getattr SYS_file_setattr
    // Gone from the kernel.
    SYS_lookup_dcookie SYS_nfsservctl
];

const REFUSED: &[Call] = calls![
    // Mounts and roots.
    SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_open_tree SYS_open_tree_attr SYS_move_mount
    SYS_mount_setattr
    SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_quotactl SYS_quotactl_fd SYS_open_by_handle_at
    // Namespaces.
    SYS_unshare SYS_setns SYS_sethostname SYS_setdomainname
    // Other processes. LeakSanitizer needs ptrace: ASAN_OPTIONS=detect_leaks=0.
    SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_process_mrelease
    SYS_pidfd_getfd SYS_kcmp
    SYS_move_pages SYS_migrate_pages
    // Placement of memory is the node's business; libnuma warns and goes on.
    SYS_mbind SYS_set_mempolicy SYS_set_mempolicy_home_node
    // Gifts of one's own pages to a pipe, and mappings out of order: hardly a user, a history of holes.
    SYS_vmsplice SYS_remap_file_pages
    // Writes back every filesystem of the host. Callers never learn, for libc's sync() has no result.
    SYS_sync
    // The machine.
    SYS_init_module SYS_finit_module SYS_delete_module SYS_kexec_load SYS_kexec_file_load SYS_reboot
    SYS_swapon SYS_swapoff SYS_acct SYS_syslog SYS_vhangup
    SYS_settimeofday SYS_clock_settime SYS_clock_adjtime SYS_adjtimex
];
