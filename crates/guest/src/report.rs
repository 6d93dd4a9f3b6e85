//! What a process inside saw, and what was asked of whoever made the container, as an isolation report.
//!
//! A control is enforced only if it was seen, from inside or in what the daemon or the runtime says it applied; the
//! note says which. What these backends cannot give at all is absent, with the reason.

use crate::facts::Facts;
use crate::protocol::Counted;
use cofferdam_backend::Stats;
use cofferdam_core::{Control, ControlState, IsolationMode, IsolationReport, IsolationRow, ResourceUsage};

/// What was asked for, and whether whoever made the container says that it applied it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub backend: &'static str,
    pub mode: IsolationMode,
    /// Who applies limits: "the daemon", "the runtime".
    pub by: &'static str,
    pub memory: bool,
    pub swap_off: bool,
    pub pids: bool,
    pub cpus: bool,
    pub devices: bool,
    pub disk_bytes: u64,
    pub writable_root: bool,
    /// Whether every sandbox has a range of the host's user ids for itself.
    pub own_ids: bool,
    /// Whether system calls are answered by a kernel of the sandbox's own.
    pub own_kernel: bool,
}

/// Without these a container is no sandbox: strict mode refuses it. Others depend on how the daemon was set up.
const REQUIRED: [Control; 25] = [
    Control::PidNamespace,
    Control::MountNamespace,
    Control::NetNamespace,
    Control::IpcNamespace,
    Control::UtsNamespace,
    Control::Capabilities,
    Control::NoNewPrivs,
    Control::Groups,
    Control::Seccomp,
    Control::ClosedFds,
    Control::Rlimits,
    Control::MountFlags,
    Control::ProcMasked,
    Control::CleanEnvironment,
    Control::MemoryLimit,
    Control::SwapOff,
    Control::PidsLimit,
    Control::CpuLimit,
    Control::DiskLimit,
    Control::InodeLimit,
    Control::NamespaceLimits,
    Control::InitProtected,
    Control::OwnSession,
    Control::CoreDumpsOff,
    Control::LoopbackOnly,
];

/// What a kernel of the sandbox's own does not show or does not have; the wall is that kernel.
const NOT_BEHIND_OWN_KERNEL: [Control; 8] = [
    Control::NoNewPrivs,
    Control::MountFlags,
    Control::PidsLimit,
    Control::NamespaceLimits,
    Control::InitProtected,
    Control::Rlimits,
    Control::InodeLimit,
    Control::Seccomp,
];

/// The required controls that are absent, by name.
pub fn missing(report: &IsolationReport, own_kernel: bool) -> Vec<String> {
    let is_required = |control: &&Control| !(own_kernel && NOT_BEHIND_OWN_KERNEL.contains(control));
    let absent = |control: &&Control| report.state(**control) == ControlState::Absent;
    let required = REQUIRED.iter().filter(is_required);
    required.filter(absent).map(|control| control.name()).collect()
}

/// What is so by the way that containers are made, and that nothing inside can show.
const UNPROVEN: [Control; 3] = [Control::CleanEnvironment, Control::DiesWithHost, Control::PrivateRoot];

const EPERM: i32 = 1;

/// One line of `mountinfo`: where, and with which options.
struct Mount<'a> {
    point: &'a str,
    options: Vec<&'a str>,
}

fn mounts(text: &str) -> impl Iterator<Item = Mount<'_>> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(4);
        Some(Mount { point: fields.next()?, options: fields.next()?.split(',').collect() })
    })
}

/// A field of `/proc/self/status`.
fn field<'a>(facts: &'a Facts, name: &str) -> &'a str {
    let found = facts.status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_default().trim()
}

/// Both limits of a line of `/proc/self/limits`.
fn rlimit(facts: &Facts, name: &str) -> Option<(u64, u64)> {
    let line = facts.limits.lines().find_map(|line| line.strip_prefix(name))?;
    let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap_or(u64::MAX));
    Some((numbers.next()?, numbers.next()?))
}

fn has_own_namespace(facts: &Facts, name: &str) -> bool {
    let host = std::fs::read_link(format!("/proc/self/ns/{name}"));
    let inside = facts.namespaces.iter().find(|(key, _)| key == name);
    match (host, inside) {
        (Ok(host), Some((_, inside))) => host.to_string_lossy() != *inside,
        _ => false,
    }
}

/// The name of the namespace in `/proc/self/ns`.
fn namespace(control: Control) -> Option<&'static str> {
    Some(match control {
        Control::UserNamespace => "user",
        Control::PidNamespace => "pid",
        Control::MountNamespace => "mnt",
        Control::NetNamespace => "net",
        Control::IpcNamespace => "ipc",
        Control::UtsNamespace => "uts",
        Control::CgroupNamespace => "cgroup",
        _ => return None,
    })
}

/// Names that a container's `/dev` has, all of them harmless.
const HARMLESS: [&str; 16] = [
    "null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts", "shm", "mqueue", "fd",
    "stdin", "stdout", "stderr", "core",
];

/// Whether it holds, and how that is known or why it does not.
fn judge(control: Control, facts: &Facts, asked: &Asked) -> (bool, String) {
    if let Some(name) = namespace(control) {
        let holds = has_own_namespace(facts, name);
        let why = match (holds, control) {
            (true, _) => "another one than the host's",
            (false, Control::UserNamespace) => {
                "the host's: the daemon runs containers in it unless it is rootless or remaps users"
            }
            (false, _) => "the host's",
        };
        return (holds, why.to_owned());
    }
    let (holds, seen, absent) = match control {
        Control::Capabilities => {
            let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
            let holds = sets.iter().all(|set| field(facts, set).bytes().all(|digit| digit == b'0'));
            (
                holds && !field(facts, "CapBnd").is_empty(),
                "none held, none in the bounding set",
                "some are held",
            )
        }
        Control::NoNewPrivs => (field(facts, "NoNewPrivs") == "1", "set", "not set"),
        Control::Groups => {
            let holds = field(facts, "Groups").split_whitespace().all(|group| group == "1000");
            (holds, "no supplementary groups", "there are supplementary groups")
        }
        Control::Seccomp => {
            let holds = field(facts, "Seccomp") == "2" && facts.priority_of_another == EPERM;
            (holds, "the filter answered a probe, under that of the container", "no filter answered")
        }
        Control::ClosedFds => {
            (facts.extra_fds == 0, "only stdin, stdout and stderr are open", "others are open")
        }
        Control::Rlimits => {
            let holds = rlimit(facts, "Max open files").is_some_and(|(_, hard)| hard <= 4096);
            (holds, "open files are limited", "open files are not limited")
        }
        Control::CoreDumpsOff => {
            // One byte is the value that also stops a core_pattern with a pipe.
            let holds = rlimit(facts, "Max core file size").is_some_and(|(soft, hard)| soft.max(hard) <= 1);
            (holds, "a core file can have no size", "core files are allowed")
        }
        Control::ReadOnlyRoot => {
            let root = mounts(&facts.mounts).filter(|mount| mount.point == "/").last();
            let holds = root.is_some_and(|root| root.options.contains(&"ro"));
            let absent =
                if asked.writable_root { "a writable root was asked for" } else { "it can be written to" };
            (holds, "mounted read-only", absent)
        }
        Control::MountFlags => {
            let places = ["/workspace", "/tmp", "/dev/shm"];
            let narrow =
                |mount: &Mount<'_>| ["nosuid", "nodev"].iter().all(|flag| mount.options.contains(flag));
            let seen: Vec<_> = mounts(&facts.mounts).filter(|mount| places.contains(&mount.point)).collect();
            let holds = seen.len() >= places.len() && seen.iter().all(narrow);
            (
                holds,
                "nosuid and nodev on all that can be written to",
                "what can be written to is not nosuid and nodev",
            )
        }
        Control::ProcMasked => (
            facts.open_host_files.is_empty(),
            "keys, memory and hardware of the host are covered",
            "some show",
        ),
        Control::MinimalDev => {
            let holds = facts.devices.iter().all(|name| HARMLESS.contains(&name.as_str()));
            (holds, "only devices that are harmless", "there are others")
        }
        Control::LoopbackOnly => {
            let holds = facts.interfaces.iter().all(|name| name == "lo") && !facts.interfaces.is_empty();
            (holds, "loopback is the only interface", "there are other interfaces")
        }
        Control::NamespaceLimits => {
            (facts.unshare != 0, "a new user namespace was refused", "namespaces can be made")
        }
        Control::InitProtected => {
            (!facts.reads_init, "the helper's memory cannot be opened", "it can be opened")
        }
        Control::OwnSession => (facts.leads_session, "a session of its own", "it is in another's session"),
        Control::OomVictim => {
            (facts.is_victim, "processes go before the helper when memory runs out", "it could not be set")
        }
        Control::MemoryLimit => (asked.memory, "", ""),
        Control::SwapOff => (asked.swap_off, "", ""),
        Control::PidsLimit => (asked.pids, "", ""),
        Control::CpuLimit => (asked.cpus, "", ""),
        Control::DevicesLimit => (asked.devices, "", ""),
        Control::DiskLimit => {
            let total = match (facts.workspace, facts.tmp, facts.shares_disk) {
                (Some((workspace, _)), _, true) => Some(workspace),
                (Some((workspace, _)), Some((tmp, _)), false) => Some(workspace + tmp),
                _ => None,
            };
            // A page more at most, for filesystems count in pages.
            let holds = total.is_some_and(|total| total <= asked.disk_bytes + (8 << 10));
            let seen = match facts.shares_disk {
                true => "the size of its filesystem; files in memory count as memory",
                false => "the sizes of /workspace and /tmp together; files in memory count as memory",
            };
            (holds, seen, "its filesystem is larger than was asked for")
        }
        Control::InodeLimit => {
            let bounded =
                |room: Option<(u64, u64)>| room.is_some_and(|(_, inodes)| inodes > 0 && inodes < 1 << 24);
            let holds = bounded(facts.workspace) && bounded(facts.tmp);
            (holds, "the number of files that its filesystems hold", "files are not counted")
        }
        Control::CleanEnvironment => (true, "processes get what they were started with and nothing else", ""),
        Control::DiesWithHost => (true, "the helper ends with its connection, and everything with it", ""),
        Control::PrivateRoot => (true, "every container has a root of its own", ""),
        Control::HostRootDetached => {
            let holds = mounts(&facts.mounts).filter(|mount| mount.point == "/").count() == 1;
            (holds, "one root and nothing above it", "more than one root is mounted")
        }
        Control::OwnHostUids => {
            let host_root = facts.uid_map.split_whitespace().nth(1) == Some("0");
            let holds = asked.own_ids && !host_root && !facts.uid_map.is_empty();
            (holds, "a range of its own, without host uid 0", "containers share one range of user ids")
        }
        Control::SeparateInitUid => {
            (false, "", "the helper is uid 1000, as processes are; its memory is closed to them")
        }
        Control::Securebits => (false, "", "not set; without capabilities they would change nothing"),
        Control::Landlock => (false, "", "not used in containers"),
        Control::Keyring => (false, "", "not proven: keyrings cannot be asked about from inside"),
        Control::ProcReadOnly => {
            (false, "", "mounted for writing, its settings read-only, as containers have it")
        }
        Control::ProcHidden => {
            (false, "", "mounted without hidepid, as containers have it; there is one user inside")
        }
        Control::InitSeccomp => {
            let holds = field(facts, "Seccomp_filters").parse::<u32>().is_ok_and(|filters| filters >= 2);
            (
                holds,
                "the container's own filter is below that of the process",
                "the helper runs without a filter",
            )
        }
        _ => (false, "", "not known"),
    };
    let note = match (holds, seen.is_empty(), absent.is_empty()) {
        (true, true, _) => format!("asked of {}, which says that it is in force", asked.by),
        (false, _, true) => format!("asked of {}, which does not say that it is in force", asked.by),
        (true, ..) => seen.to_owned(),
        (false, ..) => absent.to_owned(),
    };
    (holds, note)
}

/// The report of a container.
pub fn isolation(facts: &Facts, asked: &Asked) -> IsolationReport {
    let row = |control| {
        let (holds, note) = judge(control, facts, asked);
        match (holds, UNPROVEN.contains(&control)) {
            (true, false) => IsolationRow { control, state: ControlState::Enforced, note },
            (true, true) => {
                let note = format!("not proven by a probe: {note}");
                IsolationRow { control, state: ControlState::Degraded, note }
            }
            (false, _) => IsolationRow { control, state: ControlState::Absent, note },
        }
    };
    IsolationReport {
        backend: asked.backend.to_owned(),
        mode: asked.mode,
        controls: Control::ALL.into_iter().map(row).collect(),
    }
}

/// What was counted, without the helper's own processes.
pub fn stats(counted: &Counted, helper_pids: u64) -> Stats {
    Stats {
        usage: ResourceUsage {
            cpu_percent: None,
            cpu_time_ms: counted.cpu_time_us.map(|us| us / 1000),
            memory_bytes: counted.memory_bytes,
            memory_peak_bytes: counted.memory_peak_bytes,
            pids_peak: counted.pids_peak.map(|peak| peak.saturating_sub(helper_pids)),
            io_bytes: None,
        },
        oom_kills: counted.oom_kills,
        memory_limit_hits: counted.memory_limit_hits,
        pids_limit_hits: counted.pids_limit_hits,
        cpu_throttled: counted.cpu_throttled,
        disk_free_bytes: counted.disk_free_bytes,
        disk_free_inodes: counted.disk_free_inodes,
    }
}
