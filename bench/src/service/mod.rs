//! A whole call of the API beside a bare interpreter: authenticated, audited, durable, in a fresh sandbox.
//!
//! The server makes the next sandbox while the caller has its answer already. A contestant that ran in between
//! would give it time for that, so here each runs many times in a row before the other does.

mod client;
mod disk;

use std::path::Path;

use crate::args::Plan;
use crate::contestant::{Entrant, Pace};
use crate::contestants::Bare;
use crate::failure::Result;
use crate::progress::Progress;
use crate::report::{self, Latency, Throughput};
use crate::schedule::{self, Mode};
use crate::server::{Server, Setup};
use crate::stats::Summary;
use crate::throughput;
use crate::workload::Workload;
use crate::workplace::Workplace;
use client::Client;

pub(crate) const SERVICE: &str = "service";

#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) latency: Vec<Latency>,
    pub(crate) throughput: Vec<Throughput>,
    /// What the disk takes to keep something, whoever asks.
    pub(crate) fsync: Option<Summary>,
}

pub(crate) fn measure(
    program: &Path,
    place: &Workplace,
    plan: Plan,
    progress: &mut Progress,
) -> Result<Service> {
    progress.show("starting the service");
    let folder = place.cache("service");
    let fsync = disk::fsync(&folder)?;
    let rootfs = place.rootfs();
    let server =
        Server::start(Setup { program, folder: &folder, rootfs: &rootfs, words: &[], workspaces: None })?;
    let client = Client::new(server.address(), server.key());
    client.check()?;
    let bare = Bare::new(rootfs, Workload::Python)?;
    let workload = Workload::Api;
    let entrants = [
        Entrant { contestant: Box::new(&bare), pace: Pace::Fast },
        Entrant { contestant: Box::new(&client), pace: Pace::Fast },
    ];
    let mut latency = Vec::new();
    for mode in [Mode::BackToBack, Mode::Sparse] {
        let rounds = plan.rounds(mode);
        let what = format!("{}, {}", workload.label(), mode.label());
        let watch = |round| progress.at(&what, round, rounds.fast);
        let series = match mode {
            Mode::BackToBack => schedule::bursts(&entrants, rounds.fast, watch),
            Mode::Sparse => schedule::race(&entrants, mode, rounds, watch),
        };
        latency.extend(report::latency_rows(series, workload, mode));
    }
    let mut flows = Vec::new();
    for in_flight in throughput::IN_FLIGHT {
        let watch =
            |name: &str| progress.show(&format!("{}, {in_flight} in flight: {name}", workload.label()));
        let rows = throughput::race(&entrants, in_flight, plan.throughput_window, watch);
        flows.extend(report::throughput_rows(rows, workload, in_flight));
    }
    drop(entrants);
    server.stop()?;
    Ok(Service { latency, throughput: flows, fsync })
}
