//! Runs every scenario of features/, behind every wall: `COFFERDAM_FEATURES_ON=docker` for one of them alone.

#[path = "features/given_when.rs"]
mod given_when;
#[path = "features/session.rs"]
mod session;
#[path = "features/then.rs"]
mod then;

use cofferdam_features::tags;
use cofferdam_features::wall::{ALL, VARIABLE, Wall};
use cofferdam_features::world::Scene;
use cofferdam_project_tests::root;
use cucumber::World;
use cucumber::writer::Stats;
use std::process::{Command, ExitCode};

/// Each has a service of its own, and the machine may be small.
const AT_ONCE: usize = 2;

fn main() -> ExitCode {
    match std::env::var(VARIABLE) {
        Ok(name) => behind(&name),
        Err(_) => {
            let program = std::env::current_exe().expect("a test knows its own path");
            let fails = |name: &&str| {
                println!("\nscenarios behind {name}");
                let mut again = Command::new(&program);
                !again.args(std::env::args().skip(1)).env(VARIABLE, name).status().expect("itself").success()
            };
            let failed: Vec<_> = ALL.into_iter().filter(fails).collect();
            println!("\nscenarios failed behind {} of {} walls {failed:?}", failed.len(), ALL.len());
            if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}

#[tokio::main]
async fn behind(name: &str) -> ExitCode {
    let folder = root().join("features");
    let features = tags::features(&folder);
    let scenarios: usize = features.iter().map(|feature| feature.scenarios.len()).sum();
    assert!(scenarios >= 20, "only {scenarios} scenarios were found in {}", folder.display());
    let untagged = tags::untagged(&features);
    assert!(untagged.is_empty(), "scenarios without a tag @req_…:\n{}", untagged.join("\n"));
    let _standing = Wall::put_up(name);
    let scenes = Scene::cucumber().max_concurrent_scenarios(AT_ONCE).fail_on_skipped().with_default_cli();
    let ended = scenes.run(folder).await;
    if ended.execution_has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
