//! Cofferdam beside its peers: the same programs on the same root filesystem, timed as whole commands and from
//! inside one process, in one run.
//!
//! This file owns the order of things and the exit code. Contestants know how to run a workload
//! (`contestants/`, `in_process/`), the schedule knows when (`schedule`, `throughput`), and neither knows the other.

mod args;
mod backends;
mod beside;
mod contestant;
mod contestants;
mod failure;
mod http;
mod in_process;
mod machine;
mod progress;
mod report;
mod schedule;
mod server;
mod service;
mod sessions;
mod shuffle;
mod stats;
mod store;
mod table;
mod targets;
#[cfg(test)]
mod testing;
mod throughput;
mod workload;
mod workplace;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use args::{Args, Plan};
use backends::BACKENDS;
use contestants::Field;
use failure::{Doing, Failure, Result};
use in_process::{IDLE, Idle};
use machine::Machine;
use progress::Progress;
use report::{Latency, Report, Throughput};
use schedule::Mode;
use service::SERVICE;
use sessions::SESSIONS;
use store::STORE;
use table::Style;
use targets::{Outcome, TARGETS};
use workload::Workload;
use workplace::Workplace;

const MISSED: u8 = 1;
const BROKEN: u8 = 2;

fn main() -> ExitCode {
    in_process::become_launcher_if_asked();
    if let Some(ended) = contestants::become_runner_if_asked() {
        return ended;
    }
    let outcome = match args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => run(&args),
        Ok(None) => {
            println!("{}", args::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(MISSED),
        Err(failure) => {
            eprintln!("cofferdam-bench: {failure}");
            ExitCode::from(BROKEN)
        }
    }
}

/// True when every target was met. The table and the JSON come out even when a figure is missing.
fn run(args: &Args) -> Result<bool> {
    let place = Workplace::open()?;
    let measured = measure(args, &place);
    let closed = place.close();
    let mut report = measured?;
    report.targets = targets::judge(&TARGETS, &report, &args.only);
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    print!("{}", table::text(&report, Style { colours }));
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| Failure::new(error.to_string()))?;
        write(path, &(text + "\n"))?;
    }
    if let Some(path) = &args.markdown {
        write(path, &table::markdown(&report))?;
    }
    closed?;
    verdict(&report)
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).doing(format_args!("writing {}", path.display()))
}

fn verdict(report: &Report) -> Result<bool> {
    let mut failures = report.failures();
    if let Some((name, failure)) = failures.find(|(name, _)| contestants::REQUIRED.contains(name)) {
        return Err(Failure::new(format!("{name} failed: {failure}")));
    }
    let mut verdicts = report.targets.iter();
    if let Some(verdict) = verdicts.find(|verdict| verdict.outcome == Outcome::Unmeasured) {
        return Err(Failure::new(format!("no figure for the target {:?}", verdict.target.name)));
    }
    Ok(report.targets.iter().all(|verdict| verdict.outcome != Outcome::Missed))
}

fn measure(args: &Args, place: &Workplace) -> Result<Report> {
    let mut progress = Progress::new();
    let machine = Machine::read();
    let idle = measure_idle(args, place, &mut progress)?;
    let field = Field::assemble(args, place, &mut progress)?;
    let (mut latency, mut throughput) = (Vec::new(), Vec::new());
    for workload in Workload::ALL {
        for mode in [Mode::BackToBack, Mode::Sparse] {
            latency.extend(measure_latency(&field, workload, mode, args.plan, &mut progress));
        }
        throughput.extend(measure_throughput(&field, workload, args.plan, &mut progress));
    }
    // The daemons of peers are gone by now, and their noise with them.
    let (facts, absent) = (field.facts(), field.absent.clone());
    drop(field);
    let mut fsync = None;
    if let Some(program) = args.cofferdam.as_deref().filter(|_| args.asks_for(SERVICE)) {
        let service = service::measure(program, place, args.plan, &mut progress)?;
        latency.extend(service.latency);
        throughput.extend(service.throughput);
        fsync = service.fsync;
    }
    let mut sessions = None;
    if let Some(program) = args.cofferdam.as_deref().filter(|_| args.asks_for(SESSIONS)) {
        let (found, rows) = sessions::measure(program, place, args.plan, &mut progress)?;
        latency.extend(rows);
        sessions = Some(found);
    }
    let mut backends = None;
    if let Some(program) = args.cofferdam.as_deref().filter(|_| args.asks_for(BACKENDS)) {
        backends = Some(backends::measure(program, place, args.plan, &mut progress));
    }
    let store = match args.asks_for(STORE) {
        true => store::measure(place, args.plan, &mut progress)?,
        false => Vec::new(),
    };
    progress.clear();
    Ok(Report {
        machine,
        load_at_end: machine::load(),
        plan: args.plan,
        contestants: facts,
        absent,
        latency,
        throughput,
        idle,
        fsync,
        sessions,
        backends,
        store,
        targets: Vec::new(),
    })
}

/// Before the daemons of peers start, whose memory comes and goes.
fn measure_idle(args: &Args, place: &Workplace, progress: &mut Progress) -> Result<Option<Idle>> {
    if !args.asks_for(IDLE) {
        return Ok(None);
    }
    let count = args.plan.idle;
    let watch = |made| progress.at("idle sandboxes", made, count);
    in_process::measure_idle(&place.rootfs(), count, watch).map(Some)
}

fn measure_latency(
    field: &Field,
    workload: Workload,
    mode: Mode,
    plan: Plan,
    progress: &mut Progress,
) -> Vec<Latency> {
    let rounds = plan.rounds(mode);
    let what = format!("{}, {}", workload.label(), mode.label());
    let watch = |round| progress.at(&what, round, rounds.fast);
    let series = schedule::race(&field.entrants(workload), mode, rounds, watch);
    report::latency_rows(series, workload, mode)
}

fn measure_throughput(
    field: &Field,
    workload: Workload,
    plan: Plan,
    progress: &mut Progress,
) -> Vec<Throughput> {
    let entrants = field.entrants(workload);
    let at = |in_flight: usize| {
        let what = format!("{}, {in_flight} in flight", workload.label());
        let watch = |name: &str| progress.show(&format!("{what}: {name}"));
        let flows = throughput::race(&entrants, in_flight, plan.throughput_window, watch);
        report::throughput_rows(flows, workload, in_flight)
    };
    throughput::IN_FLIGHT.into_iter().flat_map(at).collect()
}
