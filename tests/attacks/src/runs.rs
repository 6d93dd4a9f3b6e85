//! The catalogue's runs: a probe against every wall, and again without the ones that stop it.

use crate::catalogue::{ControlName, Expect, ImageKind, Run};
use crate::lab::{Cell, Lab, Wish};
use crate::mode;
use crate::place::State;
use crate::probe::Output;
use crate::row::{Row, Seen};
use crate::service::Stop;
use cofferdam_core::Control;
use cofferdam_linux::ControlSet;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Instant;

/// What stands where a control was not tried because it was not asked for.
pub(crate) const WALLS_ONLY: &str = "not tried: --walls";

pub(crate) async fn run(lab: &mut Lab, case: &str, run: &Run) -> Row {
    let began = Instant::now();
    if let Some(reason) = run.not_on.get(&lab.mode) {
        return Row::not_applicable(case, title(run), reason);
    }
    let (steps, behind) = (names(&run.steps), names(&run.behind));
    let wall = with_everything(lab, run, &behind).await;
    let mut left_out = steps.clone();
    let control = match run.no_control.as_ref().or_else(|| run.no_control_on.get(&lab.mode)) {
        Some(reason) => Seen::Without(reason.clone()),
        None if lab.walls_only => Seen::Without(WALLS_ONLY.to_owned()),
        None => without(lab, run, &steps, &behind).await,
    };
    let control = match control {
        // What a runtime makes of a request has more walls than the one that was asked for.
        Seen::Held(_) | Seen::Error(_) if lab.works.is_some() => {
            left_out = Control::ALL.to_vec();
            without(lab, run, &left_out, &[]).await
        }
        control => control,
    };
    let mut row = Row::new(case, title(run), wall, control).leaving_out(&left_out).took(began.elapsed());
    row.behind = behind;
    row
}

/// The same probe as a step of a session. What it would do without a wall was seen in the run of its own.
pub(crate) async fn run_in_session(lab: &mut Lab, case: &str, run: &Run, state: State) -> Row {
    let began = Instant::now();
    let wall = match attempt_in_session(lab, run, state).await {
        Ok(output) => judge(lab, run, &output),
        Err(error) => Seen::Error(error),
    };
    let control = Seen::Without("seen in a run of its own".to_owned());
    Row::new(case, title(run), wall, control).in_session(state).took(began.elapsed())
}

async fn attempt_in_session(lab: &mut Lab, run: &Run, state: State) -> Result<Output, String> {
    let ward = lab.ward()?;
    let admitting = Arc::clone(&ward);
    let patient = blocking(move || admitting.admit(state)).await?;
    lab.slots.insert(patient.slot);
    let mut words = vec![run.probe.clone()];
    for arg in &run.args {
        words.push(
            lab.plants.fill(arg, Some(&mode::parent_ids(patient.slot))).map_err(|e| format!("{arg}: {e}"))?,
        );
    }
    blocking(move || {
        let output = ward.run(&patient, &words);
        ward.discharge(&patient)?;
        output
    })
    .await
}

/// On a thread of its own, so that the neighbour's heart is listened to meanwhile.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Stop> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|e| e.to_string())?;
    done.map_err(|stop| format!("{stop:?}"))
}

fn names(controls: &[ControlName]) -> Vec<Control> {
    controls.iter().map(|name| name.0).collect()
}

/// The probe's name, with its first argument where that tells one run from another.
fn title(run: &Run) -> String {
    match run.args.first() {
        Some(first) if !first.starts_with('{') && run.probe == "escape-02-same" => {
            format!("{} {first}", run.probe)
        }
        _ => run.probe.clone(),
    }
}

/// The runs of a case by name; of those that are called the same, the second says so.
pub(crate) fn titles(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        let name = title(run);
        let same = names.iter().filter(|other| other.split(" #").next() == Some(&name)).count();
        names.push(if same == 0 { name } else { format!("{name} #{}", same + 1) });
    }
    names
}

async fn with_everything(lab: &mut Lab, run: &Run, behind: &[Control]) -> Seen {
    let output = match attempt(lab, run, behind).await {
        Ok(output) => output,
        Err(error) => return Seen::Error(error),
    };
    judge(lab, run, &output)
}

fn judge(lab: &Lab, run: &Run, output: &Output) -> Seen {
    if output.contains(&lab.plants.nonce) {
        return Seen::Broke("the nonce came out".to_owned());
    }
    let was_killed = run.expect == Expect::Oom && output.oom_kills > 0 && !output.broke();
    if output.held() || was_killed {
        return Seen::Held(output.summary());
    }
    if output.broke() { Seen::Broke(output.summary()) } else { Seen::Error(output.summary()) }
}

async fn without(lab: &mut Lab, run: &Run, steps: &[Control], behind: &[Control]) -> Seen {
    match attempt(lab, run, &[steps, behind].concat()).await {
        Ok(output) if output.broke() => Seen::Broke(output.summary()),
        Ok(output) if output.held() => Seen::Held(output.summary()),
        Ok(output) => Seen::Error(output.summary()),
        Err(error) => Seen::Error(error),
    }
}

async fn attempt(lab: &mut Lab, run: &Run, leave_out: &[Control]) -> Result<Output, String> {
    let image = (run.image == ImageKind::Planted).then(|| lab.plants.image.clone());
    let leave_out = ControlSet::of(leave_out);
    let wish = Wish { leave_out, image, cpus: run.cpus.clone(), ..Wish::default() };
    let cell = lab.cell(&wish).await.map_err(|e| format!("create: {e}"))?;
    // The root of the other backends has the trap in it already.
    if run.image == ImageKind::Planted && lab.works.is_none() {
        set_owner(lab, &cell).map_err(|e| format!("making a setuid file: {e}"))?;
    }
    let mut argv = vec![run.probe.as_str()];
    argv.extend(run.args.iter().map(String::as_str));
    let output = lab.run_in(&cell, &argv).await;
    let destroyed = cell.sandbox.destroy().await;
    destroyed.map_err(|e| format!("destroy: {e}"))?;
    output
}

/// Makes the image's trap setuid to an id that this sandbox's map knows.
fn set_owner(lab: &Lab, cell: &Cell) -> std::io::Result<()> {
    let file = lab.plants.image.join("suid");
    if !mode::is_root() {
        return set_owner_by_helper(&file, cell);
    }
    let owner = cell.ids().start + 2000;
    std::os::unix::fs::chown(&file, Some(owner), Some(owner))?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o6755))
}

/// The same to init's id: an ordinary user gives a file away in a namespace that maps its subordinate ids.
fn set_owner_by_helper(file: &std::path::Path, cell: &Cell) -> std::io::Result<()> {
    let owner = mode::parent_ids(cell.slot).start;
    let script = format!("chown {owner}:{owner} \"$0\" && chmod 6755 \"$0\"");
    let mut command = std::process::Command::new("unshare");
    command.args(["--map-root-user", "--map-auto", "/bin/sh", "-c", &script]).arg(file);
    match command.status()? {
        status if status.success() => Ok(()),
        status => Err(std::io::Error::other(format!("unshare: {status}"))),
    }
}
