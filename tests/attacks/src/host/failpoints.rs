//! Set-up that fails half-way: whichever step it is, the payload never runs and nothing is left.

use super::{Looks, broke, held};
use crate::lab::{Cell, Lab, Wish, create, guest, process};
use crate::row::Seen;
use cofferdam_backend::Stdio;
use cofferdam_linux::{ControlSet, Stage};
use std::time::Duration;

/// Failing is quick; who waits longer waits for ever.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a step that fails may take to be cleaned up after.
const CLEAN_UP: Duration = Duration::from_secs(2);

pub(crate) async fn every_stage(lab: &mut Lab) -> Result<Looks, String> {
    // The first sandbox makes what later ones share.
    let first = lab.bare(&Wish::default()).await.map_err(|e| e.to_string())?;
    first.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let mut before = lab.inventory();
    let (mut failed, mut wrong) = (0, Vec::new());
    for stage in Stage::ALL {
        match fails_closed(lab, *stage).await {
            Ok(()) => failed += 1,
            Err(text) => wrong.push(format!("{stage:?}: {text}")),
        }
        // At once after each: a later start of any host on this machine sweeps up and would hide it.
        if let Err(left) = lab.back_to(&before, CLEAN_UP).await {
            wrong.push(format!("{stage:?}: {left}"));
            before = lab.inventory();
        }
    }
    let wall = match wrong.as_slice() {
        [] => held(format!("each of {failed} steps fails closed")),
        _ => broke(wrong.join("; ")),
    };
    // Without a failpoint the same payload does run, which is what makes the rest mean something.
    let control = match attempt(lab, &Wish::default()).await? {
        Attempt::Ran => broke("without a failpoint the payload runs"),
        Attempt::Refused(text) | Attempt::RanHalf(text) => Seen::Error(text),
    };
    Ok((wall, control))
}

/// Whether nothing runs when a step fails: a sandbox's, or of the launcher that would make it.
async fn fails_closed(lab: &mut Lab, stage: Stage) -> Result<(), String> {
    if LAUNCHER_STAGES.contains(&stage) {
        return launcher_fails(lab, stage).await;
    }
    let terminal = matches!(stage, Stage::Terminals | Stage::PayloadTerminal);
    let writable_root = stage == Stage::Layers;
    let wish = Wish { fail_at: Some(stage), strict: true, terminal, writable_root, ..Wish::default() };
    match tokio::time::timeout(PATIENCE, attempt(lab, &wish)).await {
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        Ok(Err(error)) => Err(error),
        Ok(Ok(Attempt::Refused(_))) => Ok(()),
        Ok(Ok(Attempt::Ran)) => Err("the payload ran: there is no failpoint".to_owned()),
        Ok(Ok(Attempt::RanHalf(text))) => Err(text),
    }
}

/// Steps that only a launcher takes, once.
const LAUNCHER_STAGES: [Stage; 1] = [Stage::Propagation];

/// A launcher that cannot set itself up says so, makes no sandbox, and ends.
async fn launcher_fails(lab: &mut Lab, stage: Stage) -> Result<(), String> {
    let kind = format!("fail-{}", stage as u32);
    let mut launched = lab.launch_as(ControlSet::EMPTY, &kind).map_err(|e| e.to_string())?;
    let made = tokio::time::timeout(PATIENCE, create(&launched, &Wish::default())).await;
    let error = match made {
        Err(_) => return Err(format!("no answer within {} s", PATIENCE.as_secs())),
        Ok(Ok(_)) => return Err("a sandbox was made".to_owned()),
        Ok(Err(error)) => error.to_string(),
    };
    launched.child.wait().map_err(|e| e.to_string())?;
    if error.contains(stage.text()) { Ok(()) } else { Err(format!("does not say so: {error}")) }
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
    let mut spec = process(argv);
    if wish.terminal {
        spec.stdio = Stdio::Terminal { rows: 24, columns: 80 };
    }
    let started = cell.sandbox.start(spec).await;
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
