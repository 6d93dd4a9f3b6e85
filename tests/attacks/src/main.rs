//! The attack suite: runs every case of the threat list that applies, against the native backend and the service.
//!
//! Each attack is made twice: against every wall, where it must fail, and without exactly the wall that stops
//! it, where it must work; otherwise the first proves nothing. `catalogue.toml` says what is run.
#![forbid(unsafe_code)]

mod args;
mod catalogue;
#[path = "../../../crates/backends/docker/tests/support/daemon.rs"]
mod daemon;
mod differs;
mod heart;
mod host;
mod inventory;
mod job;
mod lab;
mod mode;
mod mutation;
mod place;
mod plants;
mod probe;
mod report;
mod row;
mod runs;
mod service;
mod site;
mod suite;
mod table;
mod wall;
mod ward;
mod works;

use args::Args;
use catalogue::Catalogue;
use lab::{Lab, Wish};
use mode::Mode;
use report::Report;
use site::Site;
use std::path::Path;
use std::process::ExitCode;
use wall::Wall;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Args::parse(words.iter().cloned()).and_then(|args| start(&args, &words)) {
        Ok(code) => code,
        Err(text) => {
            eprintln!("cofferdam-attacks: {text}");
            ExitCode::from(2)
        }
    }
}

fn start(args: &Args, words: &[String]) -> Result<ExitCode, String> {
    if let Some(data) = &args.twin {
        return service::twin::serve(data).map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string());
    }
    let catalogue = Catalogue::load()?;
    if args.list {
        list(&catalogue);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some((out, reports)) = &args.table {
        return table::write(out, reports).map(|()| ExitCode::SUCCESS);
    }
    let mode = Mode::detect()?;
    match args.wall {
        Some(wall) if wall != Wall::Native && args.site.is_none() => return site::run(wall, args, words),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| e.to_string())?.block_on(run(args, &catalogue, mode))
}

async fn run(args: &Args, catalogue: &Catalogue, mode: Mode) -> Result<ExitCode, String> {
    let site = args.site.as_deref().map(Site::load).transpose()?;
    let mut lab = Lab::open(mode, &args.probe(), args.cofferdam.clone(), site)?;
    (lab.quick, lab.walls_only, lab.without_service) = (args.quick, args.walls, args.without_service);
    if let Some(command) = &args.attempt {
        return attempt(&mut lab, command, &Wish::without(&args.without)).await;
    }
    let report = suite::run(&mut lab, catalogue, args).await?;
    write_results(args, &report)?;
    let counts = report.counts();
    println!("\n{}", report.summary());
    println!("attacks: {}", counts.verdict());
    Ok(if counts.failed == 0 && counts.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_results(args: &Args, report: &Report) -> Result<(), String> {
    let write = |path: &Path, text: String| {
        if let Some(folder) = path.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    if let Some(path) = &args.json {
        write(path, serde_json::to_string_pretty(report).map_err(|e| e.to_string())?)?;
    }
    if let Some(path) = &args.markdown {
        write(path, report.markdown())?;
    }
    Ok(())
}

fn list(catalogue: &Catalogue) {
    for (id, case) in catalogue.ordered() {
        println!("{id:<11} {}", case.title);
        for run in &case.runs {
            println!("{:13}{}", "", run.probe);
        }
        for host in &case.host {
            println!("{:13}{}: {}", "", host.driver, host.does);
        }
        for service in &case.service {
            println!("{:13}{}: {}", "", service.attack, service.does);
        }
        for (word, reason) in [("n/a", &case.na), ("later", &case.later)] {
            if let Some(reason) = reason {
                println!("{:13}{word}: {reason}", "");
            }
        }
    }
}

/// For whoever writes a case: what a command says in a sandbox, and what its report does not claim.
async fn attempt(lab: &mut Lab, command: &str, wish: &Wish) -> Result<ExitCode, String> {
    let cell = lab.cell(wish).await.map_err(|e| e.to_string())?;
    let argv = ["/bin/sh", "-c", command].map(str::to_owned).to_vec();
    let process = cell.sandbox.start(lab::process(argv)).await.map_err(|e| e.to_string())?;
    let output = probe::finish(&*process, &cell).await?;
    println!("{}{:?}", String::from_utf8_lossy(&output.text), output.status);
    let report = cell.sandbox.isolation().await.map_err(|e| e.to_string())?;
    for row in report.controls.iter().filter(|row| row.state != cofferdam_core::ControlState::Enforced) {
        println!("{}: {:?}", row.control, row.state);
    }
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    Ok(ExitCode::SUCCESS)
}
