//! Argument rules: for the calls that are neither open nor closed, the arguments that decide.
//!
//! Only the low 32 bits of an argument are compared. Every argument tested here is an `int`, an `unsigned
//! int` or a `umode_t` to the kernel (`clone` takes `lower_32_bits` of its flags, `unshare` refuses any
//! above), so it drops the high half as well; a filter that compared 64 bits would be open to any value with
//! a bit set above.

use libc::{AF_INET, AF_INET6, AF_NETLINK, AF_UNIX};

/// What decides about a call. Refused means EPERM.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// For the documentation: completes "allowed if", "refused if".
    pub(super) text: &'static str,
    pub(super) sense: Sense,
    /// Alternatives, each of which holds if all its tests hold.
    pub(super) clauses: &'static [&'static [Test]],
}

/// What it means for a rule that one of its clauses holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    AllowIf,
    RefuseIf,
}

/// `argument & mask` is one of `values`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) arg: u32,
    pub(super) mask: u32,
    pub(super) values: &'static [u32],
}

const fn is(arg: u32, values: &'static [u32]) -> Test {
    Test { arg, mask: u32::MAX, values }
}

const fn masked(arg: u32, mask: u32, values: &'static [u32]) -> Test {
    Test { arg, mask, values }
}

const NEW_NAMESPACE: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    // Means nothing to clone(2), where these bits are the exit signal; no signal is that high.
    | libc::CLONE_NEWTIME) as u32;

pub(super) static CLONE: Rule = Rule {
    text: "allowed if no CLONE_NEW* flag is set",
    sense: Sense::AllowIf,
    clauses: &[&[masked(0, NEW_NAMESPACE, &[0])]],
};

pub(super) static IOCTL: Rule = Rule {
    text: "refused if TIOCSTI, TIOCLINUX, TIOCCONS or TIOCSETD",
    sense: Sense::RefuseIf,
    clauses: &[&[is(
        1,
        &[
            // Typing into the terminal that one was given, as its owner: the classic way out of su and of
            // sandboxes.
            libc::TIOCSTI as u32,
            // The same for virtual consoles, by paste.
            libc::TIOCLINUX as u32,
            // Taking over what is written to the console.
            libc::TIOCCONS as u32,
            // Loading a line discipline: rarely read kernel code, much of it with a history.
            libc::TIOCSETD as u32,
        ],
    )]],
};

const SOCKET_FLAGS: u32 = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) as u32;

pub(super) static SOCKET: Rule = Rule {
    text: "allowed if UNIX; INET or INET6 without raw, for ICMP, TCP, UDP or ICMPv6; NETLINK_ROUTE",
    sense: Sense::AllowIf,
    clauses: &[
        &[is(0, &[AF_UNIX as u32])],
        &[
            is(0, &[AF_INET as u32, AF_INET6 as u32]),
            masked(1, !SOCKET_FLAGS, &[libc::SOCK_STREAM as u32, libc::SOCK_DGRAM as u32]),
            is(
                2,
                &[
                    0,
                    libc::IPPROTO_ICMP as u32,
                    libc::IPPROTO_TCP as u32,
                    libc::IPPROTO_UDP as u32,
                    libc::IPPROTO_ICMPV6 as u32,
                ],
            ),
        ],
        // getifaddrs and `ip addr`; changing anything takes CAP_NET_ADMIN.
        &[is(0, &[AF_NETLINK as u32]), is(2, &[libc::NETLINK_ROUTE as u32])],
    ],
};

pub(super) static SOCKETPAIR: Rule =
    Rule { text: "allowed if UNIX", sense: Sense::AllowIf, clauses: &[&[is(0, &[AF_UNIX as u32])]] };

/// Not in libc: `linux/tcp.h`.
const TCP_ULP: u32 = 31;

pub(super) static SETSOCKOPT: Rule = Rule {
    text: "refused if TCP_ULP, SOL_TLS, UDP_ENCAP or a BPF program",
    sense: Sense::RefuseIf,
    clauses: &[
        // Loads a protocol on top of TCP (kernel TLS, espintcp, smc), by module name.
        &[is(1, &[libc::IPPROTO_TCP as u32]), is(2, &[TCP_ULP])],
        &[is(1, &[libc::SOL_TLS as u32])],
        // ESP in UDP and L2TP.
        &[is(1, &[libc::IPPROTO_UDP as u32]), is(2, &[libc::UDP_ENCAP as u32])],
        // Programs of socket filters come out of one JIT memory budget for the whole machine (bpf_jit_limit),
        // which a neighbour's seccomp filter needs as well.
        &[
            is(1, &[libc::SOL_SOCKET as u32]),
            is(
                2,
                &[
                    libc::SO_ATTACH_FILTER as u32,
                    libc::SO_ATTACH_BPF as u32,
                    libc::SO_ATTACH_REUSEPORT_CBPF as u32,
                    libc::SO_ATTACH_REUSEPORT_EBPF as u32,
                ],
            ),
        ],
    ],
};

pub(super) static PERSONALITY: Rule = Rule {
    text: "allowed if 0 or the query 0xffffffff",
    sense: Sense::AllowIf,
    // Others turn off ASLR, make memory executable, or forge the kernel's version.
    clauses: &[&[is(0, &[0, u32::MAX])]],
};

const DEVICES: &[u32] = &[libc::S_IFCHR, libc::S_IFBLK];

pub(super) static MKNOD: Rule = Rule {
    text: "refused if a device",
    sense: Sense::RefuseIf,
    clauses: &[&[masked(1, libc::S_IFMT, DEVICES)]],
};

pub(super) static MKNODAT: Rule = Rule {
    text: "refused if a device",
    sense: Sense::RefuseIf,
    clauses: &[&[masked(2, libc::S_IFMT, DEVICES)]],
};

pub(super) static RENAMEAT2: Rule = Rule {
    text: "refused if RENAME_WHITEOUT",
    sense: Sense::AllowIf,
    // It leaves a character device behind, which mknod refuses.
    clauses: &[&[masked(4, libc::RENAME_WHITEOUT, &[0])]],
};

pub(super) static MADVISE: Rule = Rule {
    text: "refused if MADV_MERGEABLE",
    sense: Sense::RefuseIf,
    // Same-page merging tells by timing what a neighbour has in memory.
    clauses: &[&[is(2, &[libc::MADV_MERGEABLE as u32])]],
};

pub(super) static SECCOMP: Rule = Rule {
    text: "allowed if SET_MODE_FILTER without NEW_LISTENER, or GET_ACTION_AVAIL",
    sense: Sense::AllowIf,
    clauses: &[
        // A further filter only narrows; a listener could answer calls in the place of the kernel.
        &[
            is(0, &[libc::SECCOMP_SET_MODE_FILTER]),
            masked(1, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as u32, &[0]),
        ],
        // libseccomp asks before it installs.
        &[is(0, &[libc::SECCOMP_GET_ACTION_AVAIL])],
    ],
};

pub(super) static PRCTL: Rule = Rule {
    text: "allowed if the option is one of those that programs use on themselves",
    sense: Sense::AllowIf,
    clauses: &[&[is(0, PRCTL_OPTIONS)]],
};

/// A list of what is allowed, for prctl(2) grows with every kernel. Left out with intent: PR_SET_MM (rewrites
/// what /proc shows of the process), PR_SET_MEMORY_MERGE (see MADVISE), PR_SET_SYSCALL_USER_DISPATCH,
/// PR_SCHED_CORE.
const PRCTL_OPTIONS: &[u32] = &[
    libc::PR_SET_PDEATHSIG as u32,
    libc::PR_GET_PDEATHSIG as u32,
    libc::PR_GET_DUMPABLE as u32,
    libc::PR_SET_DUMPABLE as u32,
    libc::PR_GET_KEEPCAPS as u32,
    libc::PR_SET_KEEPCAPS as u32,
    libc::PR_SET_NAME as u32,
    libc::PR_GET_NAME as u32,
    libc::PR_GET_SECCOMP as u32,
    libc::PR_SET_SECCOMP as u32,
    libc::PR_CAPBSET_READ as u32,
    libc::PR_GET_SECUREBITS as u32,
    libc::PR_SET_TIMERSLACK as u32,
    libc::PR_GET_TIMERSLACK as u32,
    libc::PR_SET_CHILD_SUBREAPER as u32,
    libc::PR_GET_CHILD_SUBREAPER as u32,
    libc::PR_SET_NO_NEW_PRIVS as u32,
    libc::PR_GET_NO_NEW_PRIVS as u32,
    libc::PR_SET_THP_DISABLE as u32,
    libc::PR_GET_THP_DISABLE as u32,
    libc::PR_CAP_AMBIENT as u32,
    // What seccomp has force-disabled stays disabled, so setting can only add mitigations.
    libc::PR_GET_SPECULATION_CTRL as u32,
    libc::PR_SET_SPECULATION_CTRL as u32,
    libc::PR_SET_MDWE as u32,
    libc::PR_GET_MDWE as u32,
    // Names of anonymous memory: malloc, Go and the JVM set them.
    libc::PR_SET_VMA as u32,
    // Crash handlers name their helper to Yama. ptrace itself is refused.
    libc::PR_SET_PTRACER as u32,
];

// What PID 1 may do beyond the payload.

pub(super) static INIT_PRCTL: Rule = Rule {
    text: "allowed as for the payload, and PR_CAPBSET_DROP, PR_SET_SECUREBITS",
    sense: Sense::AllowIf,
    clauses: &[
        &[is(0, PRCTL_OPTIONS)],
        &[is(0, &[libc::PR_CAPBSET_DROP as u32, libc::PR_SET_SECUREBITS as u32])],
    ],
};

pub(super) static INIT_UNSHARE: Rule = Rule {
    text: "allowed if exactly CLONE_NEWCGROUP",
    sense: Sense::AllowIf,
    clauses: &[&[is(0, &[libc::CLONE_NEWCGROUP as u32])]],
};

pub(super) static INIT_KEYCTL: Rule = Rule {
    text: "allowed if JOIN_SESSION_KEYRING",
    sense: Sense::AllowIf,
    clauses: &[&[is(0, &[libc::KEYCTL_JOIN_SESSION_KEYRING])]],
};

// What a payload with PID 1's own uid may not do: the kernel would let it change PID 1's limits and priority.

pub(super) static NOT_ON_PID_1: Rule =
    Rule { text: "refused if the target is PID 1", sense: Sense::RefuseIf, clauses: &[&[is(0, &[1])]] };

pub(super) static NO_PRIORITY_OF_PID_1: Rule = Rule {
    text: "refused if the target is PID 1, its process group, or all processes of a user",
    sense: Sense::RefuseIf,
    clauses: &[&[is(0, &[libc::PRIO_USER])], &[is(1, &[1])]],
};

/// Not in libc: `linux/ioprio.h`.
const IOPRIO_WHO_USER: u32 = 3;

pub(super) static NO_IO_PRIORITY_OF_PID_1: Rule = Rule {
    text: "refused if the target is PID 1, its process group, or all processes of a user",
    sense: Sense::RefuseIf,
    clauses: &[&[is(0, &[IOPRIO_WHO_USER])], &[is(1, &[1])]],
};
