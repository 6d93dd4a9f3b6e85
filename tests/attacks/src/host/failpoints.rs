//! Set-up that fails half-way: whichever step it is, the payload never runs and nothing is left.

use super::{Looks, broke, held};
use crate::inventory::{self, Inventory};
use crate::lab::{Cell, Lab, Wish, guest, process};
use crate::row::Seen;
use cofferdam_linux::Stage;
use std::time::Duration;

/// Steps that this machine's sandboxes do not go through, or not in a way that can be made to fail.
const NOT_TAKEN: [(Stage, &str); 8] = [
    (Stage::Terminals, "only with a terminal"),
    (Stage::PayloadTerminal, "only with a terminal"),
    (Stage::Layers, "only with a writable root"),
    (Stage::Loopback, "only where the network is not made ahead"),
    (Stage::Propagation, "once, when the launcher starts"),
    (Stage::Cgroup, "the host's own step, without a failpoint"),
    (Stage::CgroupLimit, "the host's own step, without a failpoint"),
    (Stage::Start, "a request that cannot be read, without a failpoint"),
];

/// Failing is quick; who waits longer waits for ever.
const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) async fn every_stage(lab: &mut Lab) -> Result<Looks, String> {
    // The first sandbox makes what later ones share.
    let first = lab.bare(&Wish::default()).await.map_err(|e| e.to_string())?;
    first.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let mut before = Inventory::take(&lab.slots, &lab.launcher_pids());
    let (mut failed, mut ran, mut wrong) = (0, Vec::new(), Vec::new());
    for stage in Stage::ALL {
        let wish = Wish { fail_at: Some(*stage), strict: true, ..Wish::default() };
        match tokio::time::timeout(PATIENCE, attempt(lab, &wish)).await {
            Err(_) => wrong.push(format!("{stage:?}: no answer within {} s", PATIENCE.as_secs())),
            Ok(Err(error)) => wrong.push(format!("{stage:?}: {error}")),
            Ok(Ok(Attempt::Refused(_))) => failed += 1,
            Ok(Ok(Attempt::Ran)) => ran.push(*stage),
            Ok(Ok(Attempt::RanHalf(text))) => wrong.push(format!("{stage:?}: {text}")),
        }
        // At once after each: a later start of any host on this machine sweeps up and would hide it.
        let back =
            inventory::back_to(&before, &lab.slots, &lab.launcher_pids(), Duration::from_millis(200)).await;
        if let Err(left) = back {
            wrong.push(format!("{stage:?}: {left}"));
            before = Inventory::take(&lab.slots, &lab.launcher_pids());
        }
    }
    let not_taken = |stage: &Stage| NOT_TAKEN.iter().any(|(known, _)| known == stage);
    let silent: Vec<String> =
        ran.iter().filter(|stage| !not_taken(stage)).map(|s| format!("{s:?}")).collect();
    if !silent.is_empty() {
        wrong.push(format!("no failpoint at {}", silent.join(", ")));
    }
    let wall = match wrong.as_slice() {
        [] => {
            held(format!("{failed} of {} steps fail closed; no failpoint: {}", Stage::ALL.len(), names(&ran)))
        }
        _ => broke(wrong.join("; ")),
    };
    // Without a failpoint the same payload does run, which is what makes the rest mean something.
    let control = match attempt(lab, &Wish::default()).await? {
        Attempt::Ran => broke("without a failpoint the payload runs"),
        Attempt::Refused(text) | Attempt::RanHalf(text) => Seen::Error(text),
    };
    Ok((wall, control))
}

fn names(stages: &[Stage]) -> String {
    stages.iter().map(|stage| format!("{stage:?}")).collect::<Vec<_>>().join(" ")
}

enum Attempt {
    Refused(String),
    Ran,
    RanHalf(String),
}

/// Makes a sandbox and starts a payload that leaves a mark.
async fn attempt(lab: &mut Lab, wish: &Wish) -> Result<Attempt, String> {
    let cell = match lab.bare(wish).await {
        Ok(cell) => cell,
        Err(error) => return Ok(Attempt::Refused(error.to_string())),
    };
    let argv = ["/bin/sh", "-c", "echo mark > /workspace/mark"].map(str::to_owned).to_vec();
    let started = cell.sandbox.start(process(argv)).await;
    let refused = match started {
        Ok(process) => process.wait().await.map(|_| None).map_err(|e| e.to_string())?,
        Err(error) => Some(error.to_string()),
    };
    let has_mark = has_mark(&cell).await;
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    Ok(match (refused, has_mark) {
        (Some(error), false) => Attempt::Refused(error),
        (Some(error), true) => Attempt::RanHalf(format!("{error}, and yet the payload ran")),
        (None, _) => Attempt::Ran,
    })
}

async fn has_mark(cell: &Cell) -> bool {
    cell.sandbox.read_file(&guest("/workspace/mark")).await.is_ok()
}
