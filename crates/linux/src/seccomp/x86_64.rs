//! x86-64: its numbering, and the calls that newer architectures no longer have. Another architecture is
//! another file with these four items; what both have is in `table`.

use super::rules;
use super::table::{Action, Call, Group, calls};

/// `AUDIT_ARCH_X86_64`, which libc lacks. 32-bit calls (`int 0x80`) come with another value and other
/// numbers.
#[cfg(test)]
pub(super) const AUDIT_ARCH: u32 = 0xc000_003e;

/// Numbers from here on are x32: the same calls under a second number, with structures of their own. No table
/// of ours speaks of them, so a program that uses one is killed.
#[cfg(test)]
pub(super) const FOREIGN_NUMBERS_FROM: Option<u32> = Some(0x4000_0000);

/// Where the words of a 64-bit argument lie.
#[cfg(test)]
pub(super) const LOW_WORD: u32 = 0;

pub(super) const GROUPS: &[Group] = &[
    (Action::Allow, ALLOWED),
    (Action::Rule(&rules::MKNOD), calls![SYS_mknod]),
    (Action::Enosys, ABSENT),
    (Action::Eperm, REFUSED),
];

const ALLOWED: &[Call] = calls![
    // Thread-local storage, and CET.
    SYS_arch_prctl
    // What later became an *at, a *1 or a 64-bit call, or has no name in libc elsewhere.
    SYS_open SYS_creat SYS_stat SYS_lstat SYS_access SYS_readlink SYS_getdents
    SYS_mkdir SYS_rmdir SYS_unlink SYS_rename SYS_renameat SYS_link SYS_symlink SYS_chmod SYS_chown SYS_lchown
    SYS_utime SYS_utimes SYS_futimesat
    SYS_poll SYS_select SYS_pipe SYS_dup2 SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_signalfd
    SYS_inotify_init SYS_fork SYS_vfork SYS_getpgrp SYS_pause SYS_alarm SYS_time SYS_getrlimit SYS_setrlimit
    SYS_sync_file_range
];

const ABSENT: &[Call] = calls![
    // Beside the other io_* calls, but without a name in libc for glibc.
    SYS_io_pgetevents
    // Gone from the kernel, or never there.
    SYS__sysctl SYS_uselib SYS_create_module SYS_get_kernel_syms SYS_query_module SYS_getpmsg SYS_putpmsg
    SYS_afs_syscall
    SYS_tuxcall SYS_security SYS_vserver SYS_epoll_ctl_old SYS_epoll_wait_old SYS_set_thread_area
    SYS_get_thread_area
    // Entered only from the kernel's own trampolines, which it exempts from seccomp.
    SYS_uretprobe SYS_uprobe
];

const REFUSED: &[Call] = calls![
    SYS_iopl SYS_ioperm SYS_ustat SYS_sysfs
    // 16-bit segments. Wine's need, and an old door into the kernel's entry code.
    SYS_modify_ldt
];
