//! `[limits]`: what a job has where it asks for nothing, and the most that it may ask for.

use crate::config::Config;
use crate::config::kinds::{Count, Cpus, Kind, Maybe, Size, Time};
use crate::config::setting::{Clash, Section, setting};
use cofferdam_core::{Limits, MAX_GRACE, MIN_DISK, OUTPUT_KEPT_BYTES};

pub(crate) const SECTION: Section = Section {
    name: "limits",
    about: "What a job has where its request says nothing, and the most that a request may ask for (`_max`). More than that is a 422 that names the maximum.",
    settings: &[
        setting!("cpus", Cpus, control.limits.default.cpus, "processors"),
        setting!("cpus_max", Cpus, control.limits.maximum.cpus, "the most processors"),
        setting!("memory", Size, control.limits.default.memory_bytes, "memory of all processes and files"),
        setting!("memory_max", Size, control.limits.maximum.memory_bytes, "the most memory"),
        setting!(
            "disk",
            Maybe<Size>,
            control.limits.default.disk_bytes,
            "space for files; half of the memory, at most 1g, unless it is given"
        ),
        setting!("disk_max", Size, control.limits.maximum.disk_bytes, "the most space for files"),
        setting!("pids", Count<u32>, control.limits.default.pids, "processes and threads at once"),
        setting!("pids_max", Count<u32>, control.limits.maximum.pids, "the most processes and threads"),
        setting!("timeout", Time, control.limits.default.timeout, "the time after which a job is ended"),
        setting!("timeout_max", Time, control.limits.maximum.timeout, "the longest time"),
        setting!("grace", Time, control.limits.default.grace, "time between SIGTERM and the kill"),
        setting!("grace_max", Time, control.limits.maximum.grace, "the most of that time; no more than 30s"),
        setting!(
            "output",
            Size,
            control.limits.default.output_bytes,
            "how much of each output stream is kept"
        ),
        setting!(
            "output_max",
            Size,
            control.limits.maximum.output_bytes,
            "the most that is kept; no more than 8m"
        ),
    ],
    check,
};

/// A default lies within its maximum, and a maximum within what the program can do.
fn check(config: &Config) -> Result<(), Clash> {
    let (default, most) = (&config.control.limits.default, &config.control.limits.maximum);
    let disk = default.disk_bytes.unwrap_or(0);
    let within = [
        ("cpus", default.cpus <= most.cpus, default.cpus.to_string()),
        ("memory", default.memory_bytes <= most.memory_bytes, Size::show(&default.memory_bytes)),
        ("disk", disk <= most.disk_bytes, Size::show(&disk)),
        ("pids", default.pids <= most.pids, default.pids.to_string()),
        ("timeout", default.timeout <= most.timeout, Time::show(&default.timeout)),
        ("grace", default.grace <= most.grace, Time::show(&default.grace)),
        ("output", default.output_bytes <= most.output_bytes, Size::show(&default.output_bytes)),
    ];
    for (key, fits, value) in within {
        if !fits {
            let fix = format!("it is more than {key}_max; lower it, or raise that");
            return Err(Clash { key, value, fix });
        }
    }
    if most.grace > MAX_GRACE {
        let value = Time::show(&most.grace);
        return Err(Clash { key: "grace_max", value, fix: "it must be at most 30s".to_owned() });
    }
    if most.output_bytes > OUTPUT_KEPT_BYTES as u64 {
        let value = Size::show(&most.output_bytes);
        return Err(Clash { key: "output_max", value, fix: "it must be at most 8m".to_owned() });
    }
    if most.disk_bytes < MIN_DISK.0 {
        let value = Size::show(&most.disk_bytes);
        return Err(Clash { key: "disk_max", value, fix: "it must be at least 4k".to_owned() });
    }
    let memory_bytes = default.memory_bytes;
    let disk = match default.disk_bytes {
        Some(bytes) => Limits::disk_of_size(memory_bytes, bytes),
        None => Limits::memory_disk(memory_bytes),
    };
    let whole = Limits {
        cpus: default.cpus,
        memory_bytes,
        pids: default.pids,
        disk,
        timeout: default.timeout,
        grace: default.grace,
    };
    whole.validate().map_err(|error| {
        let known = SECTION.settings.iter().find(|setting| setting.key == error.field);
        Clash { key: known.map_or("memory", |setting| setting.key), value: error.value, fix: error.fix }
    })
}
