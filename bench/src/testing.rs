//! A made-up report for the unit tests of whatever reads one.

use std::time::Duration;

use crate::args::{Plan, Rounds};
use crate::backends::BackendPlan;
use crate::contestants::Absent;
use crate::in_process::{Idle, Inventory, Round};
use crate::machine::Machine;
use crate::report::{Report, latency_rows, throughput_rows};
use crate::schedule::{Mode, Series};
use crate::sessions::SessionPlan;
use crate::store::StorePlan;
use crate::throughput::Flow;
use crate::workload::Workload;

/// Back-to-back `/bin/true` medians in microseconds, and throughput from the same.
pub(crate) fn report(rows: &[(&str, u64)]) -> Report {
    let series = |&(name, us): &(&str, u64)| Series {
        name: name.into(),
        samples: vec![Duration::from_micros(us); 1_000],
        destroys: Vec::new(),
        failure: None,
    };
    let flow = |&(name, us): &(&str, u64)| {
        (name.to_owned(), Flow { completed: 100, elapsed: Duration::from_micros(us * 100), failure: None })
    };
    let rounds = Rounds { fast: 1_000, slow: 30 };
    Report {
        machine: Machine {
            kernel: "6.18.0-a-kernel-with-quite-a-long-name-of-its-own".into(),
            cpu_model: "A Processor With A Rather Long Model Name @ 2.80GHz".into(),
            cores: 2,
            memory_bytes: Some(1 << 34),
            date: "2026-01-01T00:00:00Z".into(),
            load_at_start: Some(0.5),
        },
        load_at_end: None,
        plan: Plan {
            back_to_back: rounds,
            sparse: rounds,
            throughput_window: Duration::from_secs(4),
            idle: 1_000,
            store: StorePlan { jobs: 1_000_000, samples: 1_000 },
            sessions: SessionPlan {
                sessions: 500,
                tree_mib: 100,
                tree_files: 10_000,
                forks: 20,
                blob_mib: 512,
                transfers: 5,
            },
            backends: BackendPlan { image_mib: 1024, image_files: 20_000, imports: 5 },
        },
        contestants: Vec::new(),
        absent: vec![Absent { name: "docker", reason: "no ".repeat(60) }],
        latency: latency_rows(rows.iter().map(series).collect(), Workload::True, Mode::BackToBack),
        throughput: throughput_rows(rows.iter().map(flow).collect(), Workload::True, 1),
        idle: Some(idle()),
        fsync: None,
        sessions: None,
        backends: None,
        store: Vec::new(),
        targets: Vec::new(),
    }
}

/// What each idle sandbox of the report costs.
pub(crate) const IDLE_KIB: f64 = 500.0;

fn idle() -> Idle {
    let before = Inventory { available_kib: 1 << 24, cgroups: 3, mounts: 30 };
    let taken = IDLE_KIB as u64 * 1_000;
    let during = Inventory { available_kib: before.available_kib - taken, cgroups: 5_003, ..before };
    let round = Round { before, during, after: before };
    Idle { sandboxes: 1_000, first: round.clone(), second: round }
}
