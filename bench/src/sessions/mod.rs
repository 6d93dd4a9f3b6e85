//! Sessions as their users have them, over HTTP: the first result and the next, forks, files, and very many at once
//! that all end in time.
//!
//! What is compared with a command is done in turn with it, so that whatever disturbs the one disturbs the other.

mod api;
mod crowd;
mod fork;
mod shared;
mod steps;
mod transfer;

use std::path::Path;

use serde::Serialize;

use crate::args::Plan;
use crate::beside::Beside;
use crate::contestant::{Entrant, Pace};
use crate::contestants::Bare;
use crate::failure::Result;
use crate::progress::Progress;
use crate::report::{self, Latency};
use crate::schedule::{self, Mode};
use crate::server::{Server, Setup};
use crate::workload::Workload;
use crate::workplace::Workplace;
use api::Api;
pub(crate) use crowd::Crowd;
pub(crate) use fork::Shape;
pub(crate) use shared::SharedFork;
use steps::{First, Next};
pub(crate) use transfer::Direction;

pub(crate) const SESSIONS: &str = "sessions";

/// Room for whatever number is asked for: what is measured is not how much is refused.
const ROOM: [&str; 6] = ["--slots", "4096", "--cpus", "4096", "--memory", "9t"];

/// How much of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct SessionPlan {
    /// Open at once.
    pub(crate) sessions: usize,
    /// The files of a session that is forked.
    pub(crate) tree_mib: u64,
    pub(crate) tree_files: u64,
    pub(crate) forks: usize,
    /// The file that is sent and fetched.
    pub(crate) blob_mib: u64,
    pub(crate) transfers: usize,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sessions {
    pub(crate) forks: Vec<Beside<Shape>>,
    /// On a filesystem that can share.
    pub(crate) shared_forks: Vec<SharedFork>,
    pub(crate) transfers: Vec<Beside<Direction>>,
    /// What the server's memory grew by at most while files went through it.
    pub(crate) transfer_growth_kib: u64,
    pub(crate) crowd: Crowd,
}

pub(crate) fn measure(
    program: &Path,
    place: &Workplace,
    plan: Plan,
    progress: &mut Progress,
) -> Result<(Sessions, Vec<Latency>)> {
    progress.show("starting the service");
    let folder = place.cache(SESSIONS);
    let rootfs = place.rootfs();
    let setup = Setup { program, folder: &folder, rootfs: &rootfs, words: &ROOM, workspaces: None };
    let server = Server::start(setup)?;
    let api = Api::new(&server);
    let bare = Bare::new(rootfs.clone(), Workload::Python)?;
    let latency = steps(&api, &bare, plan, progress)?;
    let forks = fork::measure(&api, plan.sessions, progress)?;
    let (transfers, transfer_growth_kib) =
        transfer::measure(&api, server.pid(), &folder, plan.sessions, progress)?;
    server.stop()?;
    let shared_forks = shared::measure(setup, plan.sessions, progress)?;
    let crowd = crowd::measure(setup, plan.sessions.sessions, progress)?;
    Ok((Sessions { forks, shared_forks, transfers, transfer_growth_kib, crowd }, latency))
}

fn steps(api: &Api, bare: &Bare, plan: Plan, progress: &mut Progress) -> Result<Vec<Latency>> {
    let first = First(api);
    let mut rows = Vec::new();
    for mode in [Mode::BackToBack, Mode::Sparse] {
        let entrants = [
            Entrant { contestant: Box::new(bare), pace: Pace::Fast },
            Entrant { contestant: Box::new(&first), pace: Pace::Fast },
        ];
        let (workload, rounds) = (Workload::FirstStep, plan.rounds(mode));
        let what = format!("{}, {}", workload.label(), mode.label());
        let watch = |round| progress.at(&what, round, rounds.fast);
        rows.extend(report::latency_rows(schedule::race(&entrants, mode, rounds, watch), workload, mode));
    }
    let next = Next::new(api)?;
    for mode in [Mode::BackToBack, Mode::Sparse] {
        let entrants = [Entrant { contestant: Box::new(&next), pace: Pace::Fast }];
        let (workload, rounds) = (Workload::NextStep, plan.rounds(mode));
        let what = format!("{}, {}", workload.label(), mode.label());
        let watch = |round| progress.at(&what, round, rounds.fast);
        rows.extend(report::latency_rows(schedule::race(&entrants, mode, rounds, watch), workload, mode));
    }
    next.end()?;
    Ok(rows)
}
