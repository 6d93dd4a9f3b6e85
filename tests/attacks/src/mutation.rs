//! Leaving out each control in turn: something must notice, and the report must say so.

use crate::catalogue::{Catalogue, Kill};
use crate::host::posture::{self, Posture};
use crate::lab::{Lab, Wish, process};
use crate::row::{Row, Seen};
use cofferdam_backend::BackendError;
use cofferdam_core::{Control, ControlState};
use cofferdam_linux::ControlSet;
use serde::Serialize;

/// What came of leaving out one control.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Mutant {
    pub(crate) control: Control,
    /// Others that have to go with it, because they imply it.
    pub(crate) with: Vec<Control>,
    /// What went red when it, and `with`, were left out and nothing else.
    pub(crate) killed_by: Vec<String>,
    /// What went red only behind further walls that were left out both times.
    pub(crate) killed_behind: Vec<String>,
    /// Whether its row went from enforced to something less.
    pub(crate) row: Result<(), String>,
    /// Whether strict mode refused; `None` for a control that is not mandatory.
    pub(crate) strict: Option<Result<String, String>>,
    pub(crate) reason: Option<String>,
    /// Whether this mode has the control at all.
    pub(crate) is_here: bool,
    /// Whether no sandbox is made without it, which is seen instead of an attack.
    pub(crate) is_inseparable: bool,
}

impl Mutant {
    /// A control that this mode does not have.
    fn not_applicable(control: Control, reason: &str) -> Self {
        Self {
            control,
            with: Vec::new(),
            killed_by: Vec::new(),
            killed_behind: Vec::new(),
            row: Err("not here".to_owned()),
            strict: None,
            reason: Some(reason.to_owned()),
            is_here: false,
            is_inseparable: false,
        }
    }

    pub(crate) fn is_killed(&self) -> bool {
        !self.killed_by.is_empty() || !self.killed_behind.is_empty()
    }

    /// Noticed by no attack, only by the comparison of what the host sees.
    pub(crate) fn is_killed_by_golden_only(&self) -> bool {
        !self.killed_by.is_empty() && self.killed_by.iter().all(|name| name.starts_with("priv-02-golden"))
    }

    /// Not shown to matter, with a reason; that no sandbox is made without it is shown.
    pub(crate) fn is_excused(&self) -> bool {
        self.reason.is_some() && !self.is_inseparable
    }

    pub(crate) fn passed(&self) -> bool {
        let has_strict = self.strict.as_ref().is_none_or(Result::is_ok);
        has_strict && (self.reason.is_some() || self.is_killed() && self.row.is_ok())
    }
}

pub(crate) async fn run(lab: &mut Lab, catalogue: &Catalogue, rows: &[Row]) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for control in Control::ALL {
        let kill = &catalogue.control[&control.name()];
        mutants.push(match control {
            Control::MountNamespace => inseparable(lab, control, kill.reason.clone()).await,
            _ if kill.inseparable_on.contains_key(&lab.mode) => {
                inseparable(lab, control, kill.inseparable_on.get(&lab.mode).cloned()).await
            }
            _ => mutant(lab, control, kill, rows).await,
        });
    }
    mutants
}

async fn mutant(lab: &mut Lab, control: Control, kill: &Kill, rows: &[Row]) -> Mutant {
    if let Some(reason) = kill.not_on.get(&lab.mode) {
        return Mutant::not_applicable(control, reason);
    }
    let with: Vec<Control> = kill.with.iter().map(|name| name.0).collect();
    let all = [&[control][..], &with].concat();
    let (mut killed_by, killed_behind) = kills(rows, control, &with);
    let wanted = posture::take(lab, &Wish::without(&with)).await;
    let seen = posture::take(lab, &Wish::without(&all)).await;
    if let Some(line) = changed(&wanted, &seen) {
        killed_by.push(format!("priv-02-golden ({line})"));
    }
    let row = row_flips(lab, control, &all, &with).await;
    let strict = if control.mandatory() { Some(refused(lab, control, &all).await) } else { None };
    Mutant {
        control,
        with,
        killed_by,
        killed_behind,
        row,
        strict,
        reason: kill.reason.clone(),
        is_here: true,
        is_inseparable: false,
    }
}

fn changed(wanted: &Result<Posture, String>, seen: &Result<Posture, String>) -> Option<String> {
    posture::changed(wanted.as_ref().ok()?, seen.as_ref().ok()?)
}

/// The rows whose control worked: with this one alone, and behind others.
fn kills(rows: &[Row], control: Control, with: &[Control]) -> (Vec<String>, Vec<String>) {
    let broke =
        rows.iter().filter(|row| matches!(row.control, Seen::Broke(_)) && matches!(row.wall, Seen::Held(_)));
    let about = broke.filter(|row| {
        row.left_out.contains(&control) && row.left_out.iter().all(|c| *c == control || with.contains(c))
    });
    let (alone, behind): (Vec<&Row>, Vec<&Row>) = about.partition(|row| row.behind.is_empty());
    let names = |rows: Vec<&Row>| rows.iter().map(|row| row.what.clone()).collect();
    (names(alone), names(behind))
}

async fn report(lab: &mut Lab, leave_out: &[Control], control: Control) -> Result<ControlState, String> {
    let cell = lab.bare(&Wish::without(leave_out)).await.map_err(|e| e.to_string())?;
    let ran = cell.sandbox.start(process(vec!["/bin/true".to_owned()])).await.map_err(|e| e.to_string())?;
    ran.wait().await.map_err(|e| e.to_string())?;
    let report = cell.sandbox.isolation().await.map_err(|e| e.to_string())?;
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    Ok(report.state(control))
}

async fn row_flips(lab: &mut Lab, control: Control, all: &[Control], with: &[Control]) -> Result<(), String> {
    let before = report(lab, with, control).await?;
    let after = report(lab, all, control).await?;
    match (before, after) {
        // Without root some are called degraded instead: there is less of them to be had.
        (ControlState::Enforced, ControlState::Absent | ControlState::Degraded) => Ok(()),
        _ => Err(format!("{before:?} before, {after:?} without it")),
    }
}

/// A strict sandbox without a mandatory control is not made, or starts nothing, and says which.
async fn refused(lab: &mut Lab, control: Control, leave_out: &[Control]) -> Result<String, String> {
    let wish = Wish { leave_out: ControlSet::of(leave_out), strict: true, ..Wish::default() };
    let error = match lab.bare(&wish).await {
        Err(error) => error,
        Ok(cell) => {
            let started = cell.sandbox.start(process(vec!["/bin/true".to_owned()])).await;
            cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
            match started {
                Err(error) => error,
                Ok(_) => return Err("strict mode ran a process".to_owned()),
            }
        }
    };
    let text = error.to_string();
    match error {
        BackendError::Refused { .. } if text.contains(&control.name()) => Ok(text),
        BackendError::Refused { .. } | BackendError::Failed { .. } => Ok(format!("fails closed: {text}")),
        _ => Err(text),
    }
}

/// A control without which no sandbox can be made at all.
async fn inseparable(lab: &mut Lab, control: Control, reason: Option<String>) -> Mutant {
    let made = lab.bare(&Wish::without(&[control])).await;
    let strict = match made {
        Err(error) => Ok(format!("no sandbox can be made: {error}")),
        Ok(_) => Err("a sandbox was made".to_owned()),
    };
    Mutant {
        control,
        with: Vec::new(),
        killed_by: Vec::new(),
        killed_behind: Vec::new(),
        row: Err("inseparable".to_owned()),
        strict: Some(strict),
        reason,
        is_here: true,
        is_inseparable: true,
    }
}
