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

/// What programs could still get without anything being swapped out.
pub(crate) fn available_kib() -> Option<u64> {
    memory_kib("MemAvailable")
}

fn memory_kib(name: &str) -> Option<u64> {
    field("/proc/meminfo", name)?.strip_suffix(" kB")?.parse().ok()
}

fn date() -> Option<String> {
    let output = Command::new("/bin/date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
