//! An image as it is shown, in a table and as JSON.

use cofferdam_core::timestamp;
use cofferdam_images::{LayerRecord, ProcessConfig, Record};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Shown<'r> {
    pub(super) names: Vec<String>,
    pub(super) id: String,
    pub(super) size_bytes: u64,
    pub(super) imported_at: String,
    pub(super) source: &'r str,
    pub(super) layers: &'r [LayerRecord],
    pub(super) config: &'r ProcessConfig,
}

impl<'r> Shown<'r> {
    pub(super) fn new(record: &'r Record, names: Vec<String>) -> Self {
        Self {
            names,
            id: record.id.to_string(),
            size_bytes: record.size_bytes(),
            imported_at: time(record),
            source: &record.source,
            layers: &record.layers,
            config: &record.config.config,
        }
    }
}

pub(super) fn time(record: &Record) -> String {
    timestamp(i64::try_from(record.imported_at_ms).unwrap_or_default())
}

/// A size for people.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [size(0), size(1023), size(1024), size(130 << 20)],
            ["0 bytes", "1023 bytes", "1.0 KiB", "130.0 MiB"]
        );
    }
}
