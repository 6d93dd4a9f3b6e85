//! What is so, and what is done.

use cofferdam_api::{InlineFile, LimitsRequest};
use cofferdam_client::OutputEvent;
use cofferdam_features::world::{Scene, code, shell, unescape};
use cucumber::gherkin::Step;
use cucumber::{given, when};

#[given("a running service")]
async fn running(scene: &mut Scene) {
    scene.start();
}

#[given(regex = r#"^the command "([^"]*)" has run$"#)]
#[when(regex = r#"^I submit the command "([^"]*)"$"#)]
async fn run_command(scene: &mut Scene, line: String) {
    scene.run(shell(&line)).await;
}

#[given(regex = r#"^the command "([^"]*)" was submitted without waiting$"#)]
async fn submit_command(scene: &mut Scene, line: String) {
    scene.submit(shell(&line)).await;
}

#[when(regex = r#"^I submit the command "([^"]*)" with the network policy "([^"]*)"$"#)]
async fn run_with_network(scene: &mut Scene, line: String, policy: String) {
    let mut request = shell(&line);
    request.network_policy = Some(policy);
    scene.run(request).await;
}

#[when(regex = r#"^I submit the command "([^"]*)" for the task "([^"]*)"$"#)]
async fn run_for_task(scene: &mut Scene, line: String, task: String) {
    let mut request = shell(&line);
    request.task_id = Some(task);
    scene.run(request).await;
}

#[when(regex = r#"^I submit the command "([^"]*)" for the task "([^"]*)" with the environment$"#)]
async fn run_with_environment(scene: &mut Scene, step: &Step, line: String, task: String) {
    let mut request = shell(&line);
    request.task_id = Some(task);
    let rows = &step.table.as_ref().expect("the step has a table").rows;
    request.env = rows.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    scene.run(request).await;
}

#[when(regex = r#"^I submit the command "([^"]*)" with the file "([^"]*)" containing "([^"]*)"$"#)]
async fn run_with_file(scene: &mut Scene, line: String, path: String, content: String) {
    let mut request = shell(&line);
    request.files =
        vec![InlineFile { path, content: Some(unescape(&content)), content_base64: None, artifact: None }];
    scene.run(request).await;
}

#[when(regex = r#"^I submit the command "([^"]*)" with a timeout of (\d+) ms$"#)]
async fn run_with_timeout(scene: &mut Scene, line: String, timeout_ms: u64) {
    let mut request = shell(&line);
    request.timeout_ms = Some(timeout_ms);
    scene.run(request).await;
}

#[when(regex = r#"^I run the "(\w+)" code "([^"]*)"$"#)]
async fn run_code(scene: &mut Scene, language: String, text: String) {
    scene.run(code(&language, &text)).await;
}

#[when(regex = r#"^I run the "(\w+)" code "([^"]*)" with (\d+) MiB of memory$"#)]
async fn run_code_with_memory(scene: &mut Scene, language: String, text: String, mebibytes: u64) {
    let mut request = code(&language, &text);
    request.limits = LimitsRequest { memory_bytes: Some(mebibytes << 20), ..LimitsRequest::default() };
    scene.run(request).await;
}

#[when(regex = r#"^I submit a job in the language "(\w+)"$"#)]
async fn submit_language(scene: &mut Scene, language: String) {
    scene.submit(code(&language, "1")).await;
}

#[when("the job has ended")]
async fn ended(scene: &mut Scene) {
    scene.wait().await;
}

#[when("I cancel the job")]
async fn cancel(scene: &mut Scene) {
    let id = scene.job().id.clone();
    scene.client().job_cancel(&id).await.expect("it is cancelled");
}

#[when("I delete the job")]
async fn delete(scene: &mut Scene) {
    let id = scene.job().id.clone();
    scene.client().job_delete(&id).await.expect("it is deleted");
}

#[when(regex = r#"^I follow its output until "([^"]*)" is seen$"#)]
async fn follow(scene: &mut Scene, text: String) {
    let mut output = scene.client().job_output(&scene.job().id, None);
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(&text) {
        match output.next().await.expect("an event") {
            Some(OutputEvent::Stdout { bytes, .. }) => seen.extend(bytes),
            Some(_) => {}
            None => panic!("the job ended, and all that it wrote was {:?}", String::from_utf8_lossy(&seen)),
        }
    }
}

#[when("the service is killed and started again")]
async fn restart(scene: &mut Scene) {
    scene.service().kill_and_start();
    scene.look().await;
}
