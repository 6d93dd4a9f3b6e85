//! What the sandbox's cgroup counted, where its files show inside (read-only), and the room for files.

use crate::protocol::Counted;
use std::fs;
use std::path::Path;

const CGROUPS: &str = "/sys/fs/cgroup";

fn text(file: &str) -> Option<String> {
    fs::read_to_string(Path::new(CGROUPS).join(file)).ok()
}

fn number(file: &str) -> Option<u64> {
    text(file)?.trim().parse().ok()
}

/// One value of a file of `key value` lines.
fn keyed(file: &str, key: &str) -> Option<u64> {
    text(file)?.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// How many processes the kernel killed for want of memory.
pub(super) fn oom_kills() -> Option<u64> {
    keyed("memory.events", "oom_kill").or_else(|| keyed("memory/memory.oom_control", "oom_kill"))
}

/// Version 1: memory and swap together have the same limit here, and newer kernels do not count what they refuse.
/// A group that was full up to its limit was refused at least once.
fn memory_hits_v1() -> Option<u64> {
    let peak = number("memory/memory.max_usage_in_bytes")?;
    let was_full = peak >= number("memory/memory.limit_in_bytes")?;
    Some(number("memory/memory.failcnt")?.max(was_full.into()))
}

pub(super) fn counted() -> Counted {
    let files = rustix::fs::statvfs("/workspace").ok();
    Counted {
        cpu_time_us: keyed("cpu.stat", "usage_usec")
            .or_else(|| number("cpuacct/cpuacct.usage").map(|ns| ns / 1000)),
        memory_bytes: number("memory.current").or_else(|| number("memory/memory.usage_in_bytes")),
        memory_peak_bytes: number("memory.peak").or_else(|| number("memory/memory.max_usage_in_bytes")),
        pids_peak: number("pids.peak").or_else(|| number("pids/pids.peak")),
        oom_kills: oom_kills(),
        memory_limit_hits: keyed("memory.events", "max").or_else(memory_hits_v1),
        pids_limit_hits: keyed("pids.events", "max").or_else(|| keyed("pids/pids.events", "max")),
        cpu_throttled: keyed("cpu.stat", "nr_throttled").or_else(|| keyed("cpu/cpu.stat", "nr_throttled")),
        disk_free_bytes: files.as_ref().map(|files| files.f_bavail * files.f_frsize),
        disk_free_inodes: files.map(|files| files.f_favail),
    }
}
