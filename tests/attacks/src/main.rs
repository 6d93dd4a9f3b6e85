//! The attack suite: runs every case of the threat list that applies, against the native backend.
//!
//! Each attack is made twice: against every wall, where it must fail, and without exactly the wall that stops
//! it, where it must work; otherwise the first proves nothing. `catalogue.toml` says what is run.
#![forbid(unsafe_code)]

mod args;
mod catalogue;
mod heart;
mod host;
mod inventory;
mod job;
mod lab;
mod mutation;
mod plants;
mod probe;
mod row;
mod runs;

use args::Args;
use catalogue::Catalogue;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let catalogue = Catalogue::load().unwrap();
        let mut lab =
            lab::Lab::open(args.probe.as_deref().unwrap(), args.cofferdam.clone(), args.quick).unwrap();
        if let Some(command) = &args.attempt {
            let cell = lab.cell(&lab::Wish::without(&args.without)).await.unwrap();
            let argv = ["/bin/sh", "-c", command].map(str::to_owned).to_vec();
            let process = cell.sandbox.start(lab::process(argv)).await.unwrap();
            let output = probe::finish(&*process, &cell).await.unwrap();
            println!("{:?}\n{}", output.status, String::from_utf8_lossy(&output.text));
            for row in cell.sandbox.isolation().await.unwrap().controls {
                if row.state != cofferdam_core::ControlState::Enforced {
                    println!("{} {:?}", row.control, row.state)
                }
            }
            return;
        }
        for (id, case) in catalogue.ordered() {
            for run in &case.runs {
                if args.wants(&[id, &run.probe]) {
                    let row = runs::run(&mut lab, id, run).await;
                    println!(
                        "{} {:28} wall {:6} control {:6} {}ms {}",
                        if row.passed() { "ok  " } else { "FAIL" },
                        row.what,
                        row.wall.word(),
                        row.control.word(),
                        row.took_ms,
                        if row.passed() {
                            String::new()
                        } else {
                            format!(
                                "\n      wall: {}\n      ctl[{:?} behind {:?}]: {}",
                                row.wall.detail(),
                                row.left_out,
                                row.behind,
                                row.control.detail()
                            )
                        }
                    );
                }
            }
            for host in &case.host {
                if args.wants(&[id, &host.driver]) {
                    let row = host::drive(&mut lab, id, &host.driver).await;
                    println!(
                        "{} {:28} wall {:6} control {:6} {}ms\n      wall: {}\n      ctl[{:?}]: {}",
                        if row.passed() { "ok  " } else { "FAIL" },
                        row.what,
                        row.wall.word(),
                        row.control.word(),
                        row.took_ms,
                        row.wall.detail(),
                        row.left_out,
                        row.control.detail()
                    );
                }
            }
        }
    });
    ExitCode::SUCCESS
}
