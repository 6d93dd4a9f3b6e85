//! The words of scenarios about sessions.

use cofferdam_api::{Command, SecretPut, SecretUse, SessionRequest, StepRequest};
use cofferdam_client::ClientError;
use cofferdam_core::{JobState, SessionState};
use cofferdam_features::wall::wall;
use cofferdam_features::world::Scene;
use cucumber::{given, then, when};
use std::time::Duration;

#[given(regex = r"^a session that lasts (\d+) seconds$")]
async fn create(scene: &mut Scene, mut seconds: u64) {
    let session = loop {
        let request = SessionRequest { ttl_seconds: Some(seconds), ..SessionRequest::default() };
        match scene.client().session_create(&wall().ask_session(request)).await {
            // Its time counts from the request, and a container takes some of it.
            Err(ClientError::Refused(refusal)) if refusal.name == "wrong_state" && seconds < 30 => {
                seconds *= 2
            }
            made => break made.expect("a session"),
        }
    };
    assert_eq!(session.status.state, SessionState::Ready, "{session:?}");
    scene.session = session.id;
}

#[given(regex = r#"^the secret "(\w+)" with the value "(.*)"$"#)]
async fn put_secret(scene: &mut Scene, name: String, value: String) {
    scene.client().secret_put(&name, &SecretPut { value }).await.expect("a secret");
}

#[given(regex = r#"^a session with the secret "(\w+)"$"#)]
async fn create_with_secret(scene: &mut Scene, name: String) {
    let secrets = Some(vec![SecretUse { name, path: None }]);
    let request = SessionRequest { ttl_seconds: Some(600), secrets, ..SessionRequest::default() };
    let session = scene.client().session_create(&wall().ask_session(request)).await.expect("a session");
    scene.session = session.id;
}

#[when(regex = r#"^I run the step "(.*)" in "(\w+)"$"#)]
async fn run(scene: &mut Scene, code: String, language: String) {
    let request = StepRequest { language: Some(language), code: Some(code), ..StepRequest::default() };
    let step = scene.client().step_run(&scene.session, &request).await.expect("a step");
    scene.step = Some(step);
}

fn line(text: &str) -> StepRequest {
    StepRequest { command: Some(Command::Shell(text.to_owned())), ..StepRequest::default() }
}

#[when(regex = r#"^I run the command step "(.*)"$"#)]
async fn command(scene: &mut Scene, text: String) {
    let step = scene.client().step_run(&scene.session, &line(&text)).await.expect("a step");
    scene.step = Some(step);
}

#[when("the session has ended")]
async fn ended(scene: &mut Scene) {
    let end = async {
        loop {
            let session = scene.client().session_get(&scene.session).await.expect("the session");
            if session.status.state == SessionState::Ended {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), end).await.expect("it ends");
}

#[when("I delete the session")]
async fn delete(scene: &mut Scene) {
    scene.client().session_delete(&scene.session).await.expect("it is deleted");
}

#[when("the service dies and comes back")]
async fn dies(scene: &mut Scene) {
    scene.service().kill_and_start();
}

#[then(regex = r#"^the step succeeds and shows "(.*)"$"#)]
async fn shows(scene: &mut Scene, text: String) {
    let step = scene.step.as_ref().expect("a step");
    assert_eq!(step.status.state, JobState::Succeeded, "{step:?}");
    let result = step.result.as_ref().expect("a result");
    assert_eq!(result.results[0].data["text/plain"], text, "{result:?}");
}

#[then(regex = r#"^the step succeeds and writes "(.*)"$"#)]
async fn writes(scene: &mut Scene, text: String) {
    let step = scene.step.as_ref().expect("a step");
    assert_eq!(step.status.state, JobState::Succeeded, "{step:?}");
    assert_eq!(step.result.as_ref().expect("a result").stdout, text);
}

#[then(regex = r#"^the session ended because it "(\w+)"$"#)]
async fn ended_because(scene: &mut Scene, cause: String) {
    let session = scene.client().session_get(&scene.session).await.expect("the session");
    assert_eq!(session.status.state, SessionState::Ended, "{session:?}");
    assert_eq!(session.status.cause.map(|cause| cause.to_string()), Some(cause));
}

#[then(regex = r#"^another step is refused as "(\w+)"$"#)]
async fn refused(scene: &mut Scene, code: String) {
    match scene.client().step_run(&scene.session, &line("true")).await {
        Err(ClientError::Refused(refusal)) => assert_eq!(refusal.name, code),
        other => panic!("{other:?}"),
    }
}
