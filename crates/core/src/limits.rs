//! What one sandbox may use.

use crate::{ByteSize, Cpus, InvalidValue};
use serde::Serialize;
use std::time::Duration;

/// The most that files held in memory may take unless a size is asked for.
pub const DEFAULT_DISK_MAX: ByteSize = ByteSize::gib(1);

/// The longest time between SIGTERM and the kill that may be asked for.
pub const MAX_GRACE: Duration = Duration::from_secs(30);

/// Where `/workspace` and `/tmp` live, and how much they hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Disk {
    /// In memory: counted in the memory limit, so never more than half of it.
    Memory { bytes: u64 },
    /// On disk, as a filesystem of this size.
    OnDisk { bytes: u64 },
}

impl Disk {
    pub fn bytes(self) -> u64 {
        match self {
            Self::Memory { bytes } | Self::OnDisk { bytes } => bytes,
        }
    }
}

/// The limits of one sandbox and of the process that it is made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    pub cpus: Cpus,
    pub memory_bytes: u64,
    pub pids: u32,
    pub disk: Disk,
    #[serde(rename = "timeout_ms", serialize_with = "as_ms")]
    pub timeout: Duration,
    #[serde(rename = "grace_ms", serialize_with = "as_ms")]
    pub grace: Duration,
}

fn as_ms<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_millis() as u64)
}

/// Below this no interpreter starts, and the kernel's own bookkeeping is a large part of it.
pub const MIN_MEMORY: ByteSize = ByteSize::mib(4);

/// A filesystem in memory is counted in pages, and one of no page at all would have no limit.
pub const MIN_DISK: ByteSize = ByteSize(4096);

/// Less than this an ext4 cannot be laid out in with anything left for files. A disk that is asked for is never so
/// small: it is on disk from half of the least memory on.
const MIN_ON_DISK: ByteSize = ByteSize::mib(2);

/// More than one sandbox has use for; what a machine really has is looked at when a disk is made.
pub const MAX_DISK: ByteSize = ByteSize::gib(1024);

/// More than the kernel's own `pid_max`.
const MAX_PIDS: u32 = 4_194_304;

impl Default for Limits {
    fn default() -> Self {
        let memory = ByteSize::gib(2);
        Self {
            cpus: Cpus::ONE,
            memory_bytes: memory.0,
            pids: 100,
            disk: Self::memory_disk(memory.0),
            timeout: Duration::from_secs(300),
            grace: Duration::from_secs(2),
        }
    }
}

impl Limits {
    /// The default for files in memory: small enough that filling it is ENOSPC and not an out-of-memory kill.
    pub fn memory_disk(memory_bytes: u64) -> Disk {
        Disk::Memory { bytes: DEFAULT_DISK_MAX.0.min(memory_bytes / 2) }
    }

    /// The disk for a size that was asked for: in memory while it fits there, on disk from then on.
    pub fn disk_of_size(memory_bytes: u64, disk_bytes: u64) -> Disk {
        match Self::memory_disk(memory_bytes) {
            Disk::Memory { bytes } if disk_bytes <= bytes => Disk::Memory { bytes: disk_bytes },
            _ => Disk::OnDisk { bytes: disk_bytes },
        }
    }

    /// Checks what single fields cannot: bounds, and that the parts fit together.
    pub fn validate(&self) -> Result<(), InvalidValue> {
        if self.memory_bytes < MIN_MEMORY.0 {
            return Err(InvalidValue::new("memory", self.memory_bytes.to_string(), at_least(MIN_MEMORY)));
        }
        if self.pids == 0 || self.pids > MAX_PIDS {
            let fix = format!("it must be from 1 to {MAX_PIDS}");
            return Err(InvalidValue::new("pids", self.pids.to_string(), fix));
        }
        if self.grace > MAX_GRACE {
            let value = format!("{}ms", self.grace.as_millis());
            return Err(InvalidValue::new("grace", value, "it must be at most 30s"));
        }
        if self.timeout.is_zero() {
            return Err(InvalidValue::new("timeout", "0", "it must be more than 0"));
        }
        match self.disk {
            Disk::Memory { bytes } if bytes > self.memory_bytes / 2 => {
                let fix = "files in memory may take at most half of the memory limit; ask for a disk instead";
                Err(InvalidValue::new("disk", bytes.to_string(), fix))
            }
            Disk::Memory { bytes } if bytes < MIN_DISK.0 => {
                Err(InvalidValue::new("disk", bytes.to_string(), at_least(MIN_DISK)))
            }
            Disk::OnDisk { bytes } if !(MIN_ON_DISK.0..=MAX_DISK.0).contains(&bytes) => {
                let fix = "on disk it must be from 2m to 1t";
                Err(InvalidValue::new("disk", bytes.to_string(), fix))
            }
            _ => Ok(()),
        }
    }
}

/// In both ways in which sizes are written.
fn at_least(least: ByteSize) -> String {
    format!("it must be at least {}, which is {least}", least.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_documented_ones() {
        let limits = Limits::default();
        assert_eq!(limits.cpus, Cpus::ONE);
        assert_eq!(limits.memory_bytes, 2 << 30);
        assert_eq!(limits.pids, 100);
        assert_eq!(limits.disk, Disk::Memory { bytes: 1 << 30 });
        assert_eq!(limits.timeout, Duration::from_secs(300));
        assert_eq!(limits.grace, Duration::from_secs(2));
        assert_eq!(limits.validate(), Ok(()));
    }

    #[test]
    fn files_in_memory_take_at_most_half_of_it() {
        assert_eq!(Limits::memory_disk(64 << 20), Disk::Memory { bytes: 32 << 20 });
        let limits = Limits { memory_bytes: 64 << 20, ..Limits::default() };
        assert!(limits.validate().is_err());
    }

    #[test]
    fn a_disk_larger_than_memory_allows_is_on_disk() {
        assert_eq!(Limits::disk_of_size(2 << 30, 1 << 30), Disk::Memory { bytes: 1 << 30 });
        assert_eq!(Limits::disk_of_size(2 << 30, 10 << 30), Disk::OnDisk { bytes: 10 << 30 });
        assert_eq!(Limits::disk_of_size(64 << 20, 33 << 20), Disk::OnDisk { bytes: 33 << 20 });
    }

    #[test]
    fn a_disk_has_a_smallest_and_a_largest_size() {
        let with = |bytes| Limits { disk: Disk::OnDisk { bytes }, ..Limits::default() }.validate();
        assert_eq!((with(2 << 20), with(1 << 40)), (Ok(()), Ok(())));
        for bytes in [0, (2 << 20) - 1, (1 << 40) + 1] {
            let error = with(bytes).unwrap_err().to_string();
            assert!(error.starts_with(&format!("disk: \"{bytes}\"")) && error.contains("from 2m"), "{error}");
        }
    }

    /// Of no bytes it would be one without a limit, which no sandbox is made with.
    #[test]
    fn the_smallest_disk_in_memory_is_a_page() {
        let with = |bytes| Limits { disk: Limits::disk_of_size(2 << 30, bytes), ..Limits::default() };
        assert_eq!(with(4096).validate(), Ok(()));
        for bytes in [0, 1, 4095] {
            let error = with(bytes).validate().unwrap_err();
            assert_eq!((error.field.as_str(), error.value), ("disk", bytes.to_string()));
            assert_eq!(error.fix, "it must be at least 4096, which is 4 KiB");
        }
        // Whatever of it is on disk is large enough for that.
        let least = Limits { memory_bytes: MIN_MEMORY.0, ..Limits::default() };
        for bytes in [MIN_MEMORY.0 / 2, MIN_MEMORY.0 / 2 + 1] {
            let disk = Limits::disk_of_size(MIN_MEMORY.0, bytes);
            assert_eq!(Limits { disk, ..least.clone() }.validate(), Ok(()), "{disk:?}");
        }
    }

    #[test]
    fn out_of_range_limits_are_named() {
        let too_long = Limits { grace: Duration::from_secs(31), ..Limits::default() };
        assert!(too_long.validate().unwrap_err().to_string().starts_with("grace: \"31000ms\""));
        let none = Limits { pids: 0, ..Limits::default() };
        assert!(none.validate().unwrap_err().to_string().starts_with("pids: \"0\""));
    }
}
