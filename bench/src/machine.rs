//! Facts about the machine, without which a figure means nothing to anyone else.

use std::fs;
use std::process::Command;

use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) cpu_model: String,
    pub(crate) cores: usize,
    pub(crate) memory_bytes: Option<u64>,
    /// UTC, ISO 8601.
    pub(crate) date: String,
    /// Over one minute, before the first sample: a busy machine measures itself.
    pub(crate) load_at_start: Option<f64>,
}

const UNKNOWN: &str = "unknown";

impl Machine {
    pub(crate) fn read() -> Self {
        Self {
            kernel: trimmed("/proc/sys/kernel/osrelease").unwrap_or_else(|| UNKNOWN.into()),
            cpu_model: field("/proc/cpuinfo", "model name").unwrap_or_else(|| UNKNOWN.into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(),
            date: date().unwrap_or_else(|| UNKNOWN.into()),
            load_at_start: load(),
        }
    }
}

/// The one-minute load average.
pub(crate) fn load() -> Option<f64> {
    trimmed("/proc/loadavg")?.split(' ').next()?.parse().ok()
}

fn trimmed(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The value of the first `name : value` line.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

fn memory_bytes() -> Option<u64> {
    Some(memory_kib("MemTotal")? * 1024)
}

/// What programs could still get without anything being swapped out: MemAvailable, and the pages that each processor
/// keeps aside for itself.
///
/// The kernel calls those neither free nor used. After something large has ended they are more than a gibibyte, and
/// whatever starts next is served from them: a hundred interpreters of 2.6 MiB each made MemAvailable fall by 0.9 MiB
/// each. With both, a page counts as taken from when somebody has it until nobody has, wherever it came from.
pub(crate) fn available_kib() -> Option<u64> {
    let aside = aside_pages(&fs::read_to_string("/proc/zoneinfo").ok()?);
    Some(memory_kib("MemAvailable")? + aside * PAGE_KIB)
}

pub(crate) const NO_MEMORY: &str = "no MemAvailable in /proc/meminfo, or no /proc/zoneinfo";

/// Of x86-64.
const PAGE_KIB: u64 = 4;

/// Pages in the lists of all processors, by the text of /proc/zoneinfo.
fn aside_pages(zones: &str) -> u64 {
    let counts = zones.lines().filter_map(|line| line.trim_start().strip_prefix("count:"));
    counts.filter_map(|count| count.trim().parse::<u64>().ok()).sum()
}

fn memory_kib(name: &str) -> Option<u64> {
    field("/proc/meminfo", name)?.strip_suffix(" kB")?.parse().ok()
}

fn date() -> Option<String> {
    let output = Command::new("/bin/date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_processors_keep_aside_are_counted_over_all_zones() {
        let zones = "Node 0, zone      DMA\n  pages free     3840\n  pagesets\n    cpu: 0\n              count:    0\n              \
                     high:     0\nNode 0, zone   Normal\n      nr_free_pages 7\n  pagesets\n    cpu: 0\n              \
                     count:    57419\n              high_max: 337141\n    cpu: 1\n              count:    600\n";
        assert_eq!(aside_pages(zones), 58_019);
        assert_eq!(aside_pages("Node 0, zone DMA\n"), 0);
    }

    #[test]
    fn what_is_available_is_found_on_this_machine() {
        assert!(available_kib().is_some_and(|kib| kib > 0));
    }
}
