//! Runs every scenario of features/.

#[path = "features/given_when.rs"]
mod given_when;
#[path = "features/session.rs"]
mod session;
#[path = "features/then.rs"]
mod then;

use cofferdam_features::tags;
use cofferdam_features::world::Scene;
use cofferdam_project_tests::root;
use cucumber::World;

/// Each has a service of its own, and the machine may be small.
const AT_ONCE: usize = 2;

#[tokio::main]
async fn main() {
    let folder = root().join("features");
    let features = tags::features(&folder);
    let scenarios: usize = features.iter().map(|feature| feature.scenarios.len()).sum();
    assert!(scenarios >= 20, "only {scenarios} scenarios were found in {}", folder.display());
    let untagged = tags::untagged(&features);
    assert!(untagged.is_empty(), "scenarios without a tag @req_…:\n{}", untagged.join("\n"));
    Scene::cucumber()
        .max_concurrent_scenarios(AT_ONCE)
        .fail_on_skipped()
        .with_default_cli()
        .run_and_exit(folder)
        .await;
}
