//! The table of other walls and roots.

use super::sessions::beside;
use super::{Row, Table, times};
use crate::backends::{Backends, Row as Of};

pub(super) fn table(backends: &Backends) -> Table {
    let rows = backends.rows.iter().map(|row| beside(row, Of::label));
    let failed = |(row, why): &(Of, String)| (row.label().to_owned(), Row::Remark(format!("failed: {why}")));
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let shared = backends.shared.map(|shared| {
        let text = format!(
            "an image {}; a second with {} of its own {} more ({} x)",
            mib(shared.first_bytes),
            mib(shared.new_bytes),
            mib(shared.second_bytes),
            times(Some(shared.ratio()))
        );
        ("on disk".to_owned(), Row::Remark(text))
    });
    Table {
        title: "other backends and images, beside a command".into(),
        heads: ["samples", "p50 ms", "p99 ms", "beside", "its p50", "x"].map(String::from).to_vec(),
        rows: rows.chain(backends.failures.iter().map(failed)).chain(shared).collect(),
    }
}
