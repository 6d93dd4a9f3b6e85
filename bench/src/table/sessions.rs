//! The tables of sessions.

use super::{Row, Table, times};
use crate::beside::Beside;
use crate::sessions::{Crowd, Direction, Sessions, Shape, SharedFork};
use crate::stats::Summary;

pub(super) fn tables(sessions: &Sessions) -> Vec<Table> {
    let forks = sessions.forks.iter().map(|row| beside(row, Shape::label));
    let shared = sessions.shared_forks.iter().map(by_itself);
    let transfers = sessions.transfers.iter().map(|row| beside(row, Direction::label));
    let growth = format!("the server's memory grew by {} KiB at most", sessions.transfer_growth_kib);
    let rows = forks.chain(shared).chain(transfers).chain([("transfers".to_owned(), Row::Remark(growth))]);
    vec![
        Table {
            title: "files of sessions, beside a command".into(),
            heads: ["samples", "p50 ms", "p99 ms", "beside", "its p50", "x"].map(String::from).to_vec(),
            rows: rows.collect(),
        },
        crowd(&sessions.crowd),
    ]
}

fn ms(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

pub(super) fn beside<Of: Copy>(row: &Beside<Of>, label: fn(Of) -> &'static str) -> (String, Row) {
    let (ours, theirs) = (&row.ours, &row.theirs);
    let figures = [ours.samples.to_string(), ms(ours.p50_ns), ms(ours.p99_ns)];
    let others = [row.command.to_owned(), ms(theirs.p50_ns), times(Some(row.ratio()))];
    (label(row.of).to_owned(), Row::Cells([figures, others].concat()))
}

fn by_itself(SharedFork { of, took }: &SharedFork) -> (String, Row) {
    let figures = [took.samples.to_string(), ms(took.p50_ns), ms(took.p99_ns)];
    let others = ["-"; 3].map(String::from);
    (format!("shared {}", of.label()), Row::Cells([figures, others].concat()))
}

fn crowd(crowd: &Crowd) -> Table {
    let late = |name: &str, of: &Summary, left: usize| {
        let cells = [ms(of.p50_ns), ms(of.p99_ns), ms(of.max_ns), left.to_string()];
        (name.to_owned(), Row::Cells(cells.to_vec()))
    };
    let gone = crowd.gone_ms.map_or("never".to_owned(), |ms| format!("{ms} ms after the last deadline"));
    let memory = format!(
        "{:.0} KiB idle, {:.0} KiB with Python, which takes {:.0} KiB alone",
        crowd.idle_kib, crowd.kernel_kib, crowd.interpreter_kib
    );
    Table {
        title: format!("the end of {} sessions, in ms from when it was due", crowd.sessions),
        heads: ["p50", "p99", "max", "left"].map(String::from).to_vec(),
        rows: vec![
            late("deadline", &crowd.late, crowd.left),
            late("outage", &crowd.after_boot, crowd.left_after_boot),
            ("early".into(), Row::Remark(crowd.early.to_string())),
            ("all gone".into(), Row::Remark(gone)),
            ("each".into(), Row::Remark(memory)),
        ],
    }
}
