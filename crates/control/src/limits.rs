//! What a job has where its request says nothing, and the most that a request may ask for. Both are written into the
//! request before it is kept, so a job that was accepted runs as it was accepted, whatever is set later.

use crate::{ControlError, Result};
use cofferdam_api::JobRequest;
use cofferdam_core::{ByteSize, Cpus, InvalidValue, Limits, OUTPUT_KEPT_BYTES};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitSettings {
    pub default: DefaultLimits,
    pub maximum: MaximumLimits,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultLimits {
    pub cpus: Cpus,
    pub memory_bytes: u64,
    /// A part of the memory, where none is given.
    pub disk_bytes: Option<u64>,
    pub pids: u32,
    pub timeout: Duration,
    pub grace: Duration,
    /// Of each stream.
    pub output_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaximumLimits {
    pub cpus: Cpus,
    pub memory_bytes: u64,
    pub disk_bytes: u64,
    pub pids: u32,
    pub timeout: Duration,
    pub grace: Duration,
    pub output_bytes: u64,
}

impl Default for DefaultLimits {
    fn default() -> Self {
        let Limits { cpus, memory_bytes, pids, disk: _, timeout, grace } = Limits::default();
        let output_bytes = OUTPUT_KEPT_BYTES as u64;
        Self { cpus, memory_bytes, disk_bytes: None, pids, timeout, grace, output_bytes }
    }
}

/// More than one job of an ordinary machine has use for; what a worker really has is looked at besides.
impl Default for MaximumLimits {
    fn default() -> Self {
        Self {
            cpus: Cpus::whole(64),
            memory_bytes: ByteSize::gib(256).0,
            disk_bytes: ByteSize::gib(100).0,
            pids: 10_000,
            timeout: Duration::from_secs(24 * 3600),
            grace: cofferdam_core::MAX_GRACE,
            output_bytes: OUTPUT_KEPT_BYTES as u64,
        }
    }
}

impl LimitSettings {
    /// Fills in what a request leaves open, and refuses what is above a maximum.
    pub(crate) fn apply(&self, request: &mut JobRequest) -> Result<()> {
        let Self { default, maximum } = self;
        let asked = &mut request.limits;
        let cpus = match asked.cpus {
            Some(cpus) => Cpus::parse("limits.cpus", &cpus.to_string())?,
            None => default.cpus,
        };
        if cpus > maximum.cpus {
            return Err(above("limits.cpus", cpus, maximum.cpus));
        }
        asked.cpus = Some(f64::from(cpus.millis()) / 1000.0);
        within("limits.memory_bytes", &mut asked.memory_bytes, default.memory_bytes, maximum.memory_bytes)?;
        if let Some(bytes) = default.disk_bytes.filter(|_| asked.disk_bytes.is_none()) {
            asked.disk_bytes = Some(bytes);
        }
        // A part of the memory is what it is, but no more than may be asked for.
        let part = asked.memory_bytes.map_or(0, |bytes| Limits::memory_disk(bytes).bytes());
        match asked.disk_bytes {
            Some(bytes) if bytes > maximum.disk_bytes => {
                return Err(above("limits.disk_bytes", bytes, maximum.disk_bytes));
            }
            None if part > maximum.disk_bytes => asked.disk_bytes = Some(maximum.disk_bytes),
            _ => {}
        }
        within("limits.pids", &mut asked.pids, default.pids, maximum.pids)?;
        within("limits.output_bytes", &mut asked.output_bytes, default.output_bytes, maximum.output_bytes)?;
        if asked.output_bytes == Some(0) {
            return Err(InvalidValue::new("limits.output_bytes", "0", "it must be more than 0").into());
        }
        let ms = |time: Duration| time.as_millis() as u64;
        within("limits.grace_ms", &mut asked.grace_ms, ms(default.grace), ms(maximum.grace))?;
        within("timeout_ms", &mut request.timeout_ms, ms(default.timeout), ms(maximum.timeout))
    }
}

/// The time of one step, as of a job.
pub(crate) fn within_timeout(settings: &LimitSettings, asked: &mut Option<u64>) -> Result<()> {
    let ms = |time: Duration| time.as_millis() as u64;
    within("timeout_ms", asked, ms(settings.default.timeout), ms(settings.maximum.timeout))?;
    match asked {
        Some(0) => Err(InvalidValue::new("timeout_ms", "0", "it must be more than 0").into()),
        _ => Ok(()),
    }
}

fn within<T: PartialOrd + Copy + ToString>(
    field: &'static str,
    asked: &mut Option<T>,
    default: T,
    most: T,
) -> Result<()> {
    let value = *asked.get_or_insert(default);
    if value > most { Err(above(field, value, most)) } else { Ok(()) }
}

fn above(field: &'static str, value: impl ToString, maximum: impl ToString) -> ControlError {
    ControlError::AboveMaximum { field, value: value.to_string(), maximum: maximum.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> LimitSettings {
        let mut settings = LimitSettings::default();
        settings.maximum.memory_bytes = 1 << 30;
        settings.default.memory_bytes = 256 << 20;
        settings.maximum.disk_bytes = 100 << 20;
        settings
    }

    fn apply(body: &str) -> Result<JobRequest> {
        let mut request: JobRequest = serde_json::from_str(body).expect("a request");
        settings().apply(&mut request).map(|()| request)
    }

    #[test]
    fn what_is_left_open_is_filled_in() {
        let request = apply("{}").expect("defaults");
        assert_eq!(request.limits.memory_bytes, Some(256 << 20));
        assert_eq!((request.limits.cpus, request.limits.pids), (Some(1.0), Some(100)));
        assert_eq!((request.timeout_ms, request.limits.grace_ms), (Some(300_000), Some(2000)));
        // Half of the memory would be more than may be asked for.
        assert_eq!(request.limits.disk_bytes, Some(100 << 20));
        assert_eq!(request.limits.output_bytes, Some(8 << 20));
        let small = apply(r#"{"limits":{"memory_bytes":67108864}}"#).expect("a request");
        assert_eq!(small.limits.disk_bytes, None);
    }

    #[test]
    fn what_is_above_a_maximum_is_named_with_it() {
        for (body, field, value, most) in [
            (r#"{"limits":{"memory_bytes":1073741825}}"#, "limits.memory_bytes", "1073741825", "1073741824"),
            (r#"{"limits":{"cpus":64.5}}"#, "limits.cpus", "64.5", "64"),
            (r#"{"limits":{"disk_bytes":104857601}}"#, "limits.disk_bytes", "104857601", "104857600"),
            (r#"{"limits":{"pids":10001}}"#, "limits.pids", "10001", "10000"),
            (r#"{"limits":{"grace_ms":30001}}"#, "limits.grace_ms", "30001", "30000"),
            (r#"{"limits":{"output_bytes":8388609}}"#, "limits.output_bytes", "8388609", "8388608"),
            (r#"{"timeout_ms":18446744073709551615}"#, "timeout_ms", "18446744073709551615", "86400000"),
        ] {
            match apply(body) {
                Err(ControlError::AboveMaximum { field: named, value: had, maximum }) => {
                    assert_eq!((named, had.as_str(), maximum.as_str()), (field, value, most));
                }
                other => panic!("{body}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_maximum_itself_is_allowed() {
        let body = r#"{"timeout_ms":86400000,"limits":{"memory_bytes":1073741824,"cpus":64,"disk_bytes":104857600,
            "pids":10000,"grace_ms":30000,"output_bytes":8388608}}"#;
        assert!(apply(body).is_ok());
    }
}
