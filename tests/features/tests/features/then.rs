//! What must be so afterwards.

use cofferdam_client::{ClientError, JobQuery};
use cofferdam_core::JobState;
use cofferdam_features::world::{Scene, unescape};
use cucumber::then;

#[then("the job completes successfully")]
async fn succeeded(scene: &mut Scene) {
    assert_eq!(scene.job().status.state, JobState::Succeeded, "{:?}", scene.job());
}

#[then(regex = r#"^the job's state is "(\w+)"$"#)]
async fn state_is(scene: &mut Scene, state: String) {
    assert_eq!(scene.job().status.state.as_str(), state, "{:?}", scene.job());
}

#[then("the job has not ended")]
async fn not_ended(scene: &mut Scene) {
    scene.look().await;
    assert!(!scene.job().status.state.is_final(), "{:?}", scene.job());
}

#[then(regex = r#"^the outcome is "(\w+)"$"#)]
async fn outcome(scene: &mut Scene, kind: String) {
    assert_eq!(scene.job().status.reason.as_deref(), Some(kind.as_str()), "{:?}", scene.job());
}

#[then(regex = r"^the exit code is (\d+)$")]
async fn exit_code(scene: &mut Scene, code: i32) {
    assert_eq!(scene.result().exit_code, Some(code));
}

#[then("there is no exit code")]
async fn no_exit_code(scene: &mut Scene) {
    assert_eq!(scene.result().exit_code, None);
}

#[then(regex = r#"^stdout contains "([^"]*)"$"#)]
async fn stdout_contains(scene: &mut Scene, text: String) {
    let stdout = &scene.result().stdout;
    assert!(stdout.contains(&unescape(&text)), "{stdout}");
}

#[then(regex = r#"^stdout does not contain "([^"]*)"$"#)]
async fn stdout_lacks(scene: &mut Scene, text: String) {
    let stdout = &scene.result().stdout;
    assert!(!stdout.contains(&unescape(&text)), "{stdout}");
}

#[then(regex = r#"^stdout is "([^"]*)"$"#)]
async fn stdout_is(scene: &mut Scene, text: String) {
    assert_eq!(scene.result().stdout, unescape(&text));
}

#[then(regex = r#"^the network policy that was applied is "(\w+)"$"#)]
async fn network(scene: &mut Scene, policy: String) {
    let applied = scene.result().network_policy_applied.expect("a sandbox was made");
    assert_eq!(format!("{applied:?}").to_lowercase(), policy);
}

#[then(regex = r#"^a warning mentions "([^"]*)"$"#)]
async fn warning(scene: &mut Scene, text: String) {
    let warnings = &scene.result().warnings;
    assert!(warnings.iter().any(|warning| warning.contains(&text)), "{warnings:?}");
}

#[then(regex = r#"^the artifact "([^"]*)" has (\d+) bytes$"#)]
async fn artifact(scene: &mut Scene, path: String, bytes: u64) {
    let artifacts = &scene.result().artifacts;
    assert!(artifacts.iter().any(|a| a.path == path && a.size_bytes == bytes), "{artifacts:?}");
}

fn assert_refused(error: ClientError, code: &str) {
    match error {
        ClientError::Refused(refusal) => assert_eq!(refusal.name, code),
        other => panic!("{other}"),
    }
}

#[then(regex = r#"^deleting the job is refused as "(\w+)"$"#)]
async fn deleting_is_refused(scene: &mut Scene, code: String) {
    let error = scene.client().job_delete(&scene.job().id).await.expect_err("it is refused");
    assert_refused(error, &code);
}

#[then(regex = r#"^getting the job is refused as "(\w+)"$"#)]
async fn getting_is_refused(scene: &mut Scene, code: String) {
    let error = scene.client().job_get(&scene.job().id).await.expect_err("it is refused");
    assert_refused(error, &code);
}

#[then(regex = r#"^it is refused as "(\w+)" for the field "(\w+)"$"#)]
async fn refused(scene: &mut Scene, code: String, field: String) {
    let refusal = scene.refusal.as_ref().expect("something was refused");
    assert_eq!(
        (refusal.name.as_str(), refusal.details["field"].as_str()),
        (code.as_str(), Some(field.as_str()))
    );
}

#[then("there are no jobs")]
async fn no_jobs(scene: &mut Scene) {
    let list = scene.client().job_list(&JobQuery::default()).await.expect("a list");
    assert!(list.jobs.is_empty(), "{list:?}");
}
