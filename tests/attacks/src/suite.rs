//! The whole run: every case in order, a neighbour's heart and the inventory after each, then the mutations.

use crate::args::Args;
use crate::catalogue::{Case, Catalogue, ImageKind};
use crate::differs::Differs;
use crate::heart::Heart;
use crate::host;
use crate::inventory::Inventory;
use crate::lab::Lab;
use crate::mutation;
use crate::place::{self, Place, State};
use crate::report::{HEADING, Report, line, mutant_line};
use crate::row::{Row, Seen};
use crate::runs;
use crate::service;
use crate::wall::{self, Wall};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// A neighbour that does nothing for so long was hindered, on however busy a machine.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// More than the longest of them takes; what hangs must not hide the rest.
const PATIENCE: Duration = Duration::from_secs(200);

pub(crate) async fn run(lab: &mut Lab, catalogue: &Catalogue, args: &Args) -> Result<Report, String> {
    let mut report = Report::new(lab.mode, args.wall, args.quick);
    let differs = Differs::load()?;
    report.note_absent(catalogue);
    println!("{HEADING}");
    let heart = Heart::start(lab).await?;
    lab.slots.remove(&heart.slot());
    for (id, case) in catalogue.ordered() {
        let before = of_cases(lab, &lab.slots);
        let first = report.rows.len();
        match args.wall {
            None => run_case(lab, args, id, case, &mut report).await,
            Some(wall) if wall::is_by_a_job(id) => {
                run_by_job(lab, args, (wall, &differs), id, case, &mut report).await;
            }
            Some(_) => {}
        }
        if report.rows.len() > first {
            report.rows.extend(aftermath(lab, id, &before, &heart).await);
            report.rows[first..].iter().for_each(|row| println!("{}", line(row)));
        }
    }
    heart.stop().await?;
    if args.wall.is_none()
        && !args.walls
        && args.wants(&["mutation"])
        && args.only.as_deref().is_none_or(|only| only == "mutation")
    {
        println!("\n     control            its row      strict   noticed by");
        report.mutants = mutation::run(lab, catalogue, &report.rows).await;
        report.mutants.iter().for_each(|mutant| println!("{}", mutant_line(mutant)));
    }
    for (title, list) in
        [("not applicable", &report.not_applicable), ("shortened by --quick", &report.shortened)]
    {
        list.iter().for_each(|(what, why)| println!("{title}: {what}: {why}"));
    }
    say_later(&report);
    Ok(report)
}

/// One line for each reason, with the cases that wait for it.
fn say_later(report: &Report) {
    let mut reasons: Vec<&str> = report.later.iter().map(|(_, reason)| reason.as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let cases = report.later.iter().filter(|(_, r)| r == reason).map(|(case, _)| case.as_str());
        println!("later: {}: {reason}", cases.collect::<Vec<_>>().join(" "));
    }
}

async fn run_case(lab: &mut Lab, args: &Args, id: &str, case: &Case, report: &mut Report) {
    for run in case.runs.iter().filter(|run| args.wants(&[id, &run.probe])) {
        let row = timeout(PATIENCE, runs::run(lab, id, run)).await;
        report.rows.push(row.unwrap_or_else(|_| hung(id, &run.probe)));
    }
    if place::is_for_sessions(id) && !lab.without_service && lab.cofferdam.is_some() {
        run_in_sessions(lab, args, id, case, report).await;
    }
    for host in case.host.iter().filter(|host| args.wants(&[id, &host.driver])) {
        if let Some(reason) = host.not_on.get(&lab.mode) {
            report.rows.push(Row::not_applicable(id, &host.driver, reason));
            continue;
        }
        let row = timeout(PATIENCE, host::drive(lab, id, &host.driver)).await;
        report.rows.push(row.unwrap_or_else(|_| hung(id, &host.driver)));
        if let Some(short) = host.quick.as_ref().filter(|_| args.quick) {
            report.shortened.push((host.driver.clone(), short.clone()));
        }
    }
    for service in case.service.iter().filter(|service| args.wants(&[id, &service.attack])) {
        if service.in_states {
            if !lab.without_service && lab.cofferdam.is_some() {
                // What a session is enclosed by is looked at in every state, however little time there is.
                let states =
                    if id.starts_with("session-") { State::ALL.to_vec() } else { states(args, report) };
                report.rows.extend(service::run_in_states(lab, id, service, &states).await);
            }
            continue;
        }
        let row = timeout(PATIENCE, service::run(lab, id, service)).await;
        report.rows.push(row.unwrap_or_else(|_| hung(id, &service.attack)));
        if let Some(short) = service.quick.as_ref().filter(|_| args.quick) {
            report.shortened.push((service.attack.clone(), short.clone()));
        }
    }
}

/// Those of its attacks that a job makes, and whether each is as it is on the native backend.
async fn run_by_job(
    lab: &mut Lab,
    args: &Args,
    (wall, differs): (Wall, &Differs),
    id: &str,
    case: &Case,
    report: &mut Report,
) {
    for (run, title) in case.runs.iter().zip(runs::titles(&case.runs)) {
        if !args.wants(&[id, &run.probe]) {
            continue;
        }
        let row = match differs.not_made(wall, &title) {
            Some(reason) => Row::not_applicable(id, &title, reason),
            None => {
                let row = timeout(PATIENCE, runs::run(lab, id, run)).await;
                row.unwrap_or_else(|_| hung(id, &title))
            }
        };
        report.rows.push(differs.judge(wall, Row { what: title, ..row }));
    }
    for host in case.host.iter().filter(|host| args.wants(&[id, &host.driver])) {
        let not_made = host.not_on.get(&lab.mode).map(String::as_str);
        let row = match not_made.or_else(|| differs.not_made(wall, &host.driver)) {
            Some(reason) => Row::not_applicable(id, &host.driver, reason),
            None => {
                let row = timeout(PATIENCE, host::drive(lab, id, &host.driver)).await;
                row.unwrap_or_else(|_| hung(id, &host.driver))
            }
        };
        report.rows.push(differs.judge(wall, row));
        if let Some(short) = host.quick.as_ref().filter(|_| args.quick) {
            report.shortened.push((host.driver.clone(), short.clone()));
        }
    }
}

/// What cases may leave: not what launchers and this program hold.
fn of_cases(lab: &Lab, slots: &BTreeSet<u32>) -> Inventory {
    if lab.works.is_some() { lab.inventory() } else { Inventory::take(slots, &[]) }
}

/// All of them, or with `--quick` one after the other.
fn states(args: &Args, report: &mut Report) -> Vec<State> {
    if !args.quick {
        return State::ALL.to_vec();
    }
    let so_far = report.rows.iter().filter(|row| row.place != Place::Run).count();
    if so_far == 0 {
        let how = "each in one of the four states, in turn".to_owned();
        report.shortened.push(("in sessions".to_owned(), how));
    }
    vec![State::ALL[so_far % State::ALL.len()]]
}

/// The case's probes in sessions of every state.
async fn run_in_sessions(lab: &mut Lab, args: &Args, id: &str, case: &Case, report: &mut Report) {
    for run in case.runs.iter().filter(|run| args.wants(&[id, &run.probe])) {
        for state in states(args, report) {
            let row = match (&run.not_in_sessions, run.image) {
                (Some(reason), _) => Row::not_applicable(id, &run.probe, reason).in_session(state),
                (None, ImageKind::Planted) => {
                    let reason = "a server has images of its store, and not of a folder";
                    Row::not_applicable(id, &run.probe, reason).in_session(state)
                }
                (None, ImageKind::Host) => {
                    let row = timeout(PATIENCE, runs::run_in_session(lab, id, run, state)).await;
                    row.unwrap_or_else(|_| hung(id, &run.probe).in_session(state))
                }
            };
            report.rows.push(row);
        }
    }
}

fn hung(id: &str, what: &str) -> Row {
    let text = format!("not done within {} s", PATIENCE.as_secs());
    Row::new(id, what, Seen::Error(text), Seen::Without(String::new()))
}

/// What must be so after every case: nothing is left, and the neighbour lives on undisturbed.
async fn aftermath(lab: &Lab, id: &str, before: &Inventory, heart: &Heart) -> Option<Row> {
    let began = Instant::now();
    let slots = lab.slots.iter().copied().filter(|slot| *slot != heart.slot()).collect();
    let mut left = of_cases(lab, &slots).left_since(before);
    while !left.is_empty() && began.elapsed() < Duration::from_secs(2) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        // What comes and goes meanwhile is somebody else's.
        let now = of_cases(lab, &slots).left_since(before);
        left.retain(|one| now.contains(one));
    }
    let pause = heart.longest_pause().await;
    if pause > PAUSE_MAX {
        left.push(format!("the neighbour stood still for {} ms", pause.as_millis()));
    }
    let wrong = || Row::new(id, "aftermath", Seen::Broke(left.join(", ")), Seen::Without(String::new()));
    (!left.is_empty()).then(wrong)
}
