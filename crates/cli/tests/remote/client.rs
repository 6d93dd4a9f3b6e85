//! What the client does about answers that do not come, and about those that say no.

use crate::proxy::{Fate, Proxy};
use crate::server::{Folder, Server};
use cofferdam_api::{Command, ErrorCode, JobRequest, KeyRequest};
use cofferdam_client::{Client, ClientError, JobQuery};
use cofferdam_core::JobState;
use std::time::{Duration, Instant};

fn server() -> (Folder, Server) {
    let folder = Folder::new("client");
    let server = Server::start(folder.path(), &[]);
    (folder, server)
}

fn client(url: &str, server: &Server) -> Client {
    Client::new(url, &server.key).expect("a client")
}

fn direct(server: &Server) -> Client {
    client(&format!("http://{}", server.address), server)
}

fn echo() -> JobRequest {
    JobRequest { command: Some(Command::Shell("echo once".into())), ..JobRequest::default() }
}

#[tokio::test]
async fn every_verb_is_there() {
    let (_folder, server) = server();
    let client = direct(&server);
    client.ready().await.expect("it is ready");
    let job = client.job_run(&echo()).await.expect("a job");
    assert_eq!(job.status.state, JobState::Succeeded);
    assert_eq!(job.result.as_ref().map(|result| result.stdout.as_str()), Some("once\n"));
    assert_eq!(client.job_get(&job.id).await.expect("the job"), job);
    let query = JobQuery { state: Some(JobState::Succeeded), limit: Some(1), ..JobQuery::default() };
    let page = client.job_list(&query).await.expect("a list");
    assert_eq!(page.jobs.iter().map(|job| &job.id).collect::<Vec<_>>(), [&job.id]);
    client.job_delete(&job.id).await.expect("it is deleted");
    let gone = client.job_get(&job.id).await.expect_err("it is gone");
    assert_eq!(gone.code(), Some(ErrorCode::NotFound));
    let slow = JobRequest { command: Some(Command::Shell("sleep 60".into())), ..JobRequest::default() };
    let slow = client.job_create(&slow, Duration::ZERO).await.expect("a job");
    client.job_cancel(&slow.id).await.expect("it is cancelled");
    assert_eq!(client.job_wait(&slow.id).await.expect("its end").status.state, JobState::Cancelled);
    let request = KeyRequest {
        name: "ci".into(),
        scopes: vec!["jobs:read".into()],
        agent: None,
        tenant: None,
        ttl_seconds: None,
    };
    let key = client.key_create(&request).await.expect("a key");
    assert!(client.key_list().await.expect("keys").keys.iter().any(|known| known.id == key.id));
    client.key_delete(&key.id).await.expect("it is taken back");
    assert!(!client.audit_list(0, 5).await.expect("entries").entries.is_empty());
}

#[tokio::test]
async fn a_refusal_is_a_value() {
    let (_folder, server) = server();
    let wrong =
        JobRequest { language: Some("cobol".into()), code: Some("1".into()), ..JobRequest::default() };
    let error = direct(&server).job_create(&wrong, Duration::ZERO).await.expect_err("it is refused");
    let ClientError::Refused(refusal) = error else { panic!("{error}") };
    assert_eq!((refusal.status, refusal.code, refusal.retryable), (422, Some(ErrorCode::Invalid), false));
    assert_eq!(refusal.details["field"], "language");
    assert!(refusal.remediation.contains("python") && refusal.request_id.starts_with("req-"), "{refusal:?}");
}

/// The first two answers never arrive, although the server has done what it was asked.
#[tokio::test]
async fn a_job_whose_acknowledgement_is_lost_is_created_once() {
    let (_folder, server) = server();
    let proxy = Proxy::before(server.address, |number| if number < 2 { Fate::Cut(40) } else { Fate::Pass });
    let job = client(&proxy.url(), &server).job_create(&echo(), Duration::ZERO).await.expect("a job");
    assert_eq!(proxy.connections(), 3);
    let jobs = direct(&server).job_list(&JobQuery::default()).await.expect("a list").jobs;
    assert_eq!(jobs.iter().map(|job| &job.id).collect::<Vec<_>>(), [&job.id]);
}

/// A second key would be one that nobody has.
#[tokio::test]
async fn what_has_no_idempotency_key_is_not_sent_twice() {
    let (_folder, server) = server();
    let proxy = Proxy::before(server.address, |_| Fate::Cut(40));
    let request = KeyRequest {
        name: "ci".into(),
        scopes: vec!["jobs:read".into()],
        agent: None,
        tenant: None,
        ttl_seconds: None,
    };
    let error = client(&proxy.url(), &server).key_create(&request).await.expect_err("no answer");
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn a_deletion_whose_answer_is_lost_has_succeeded() {
    let (_folder, server) = server();
    let job = direct(&server).job_run(&echo()).await.expect("a job");
    let proxy = Proxy::before(server.address, |number| if number < 1 { Fate::Cut(10) } else { Fate::Pass });
    client(&proxy.url(), &server).job_delete(&job.id).await.expect("it is gone");
    let again = direct(&server).job_delete(&job.id).await.expect_err("there is none");
    assert_eq!(again.code(), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_asked_again_when_it_said() {
    let (_folder, server) = server();
    let busy = r#"{"error":{"code":"unavailable","message":"busy","details":{},"remediation":"wait","retryable":true,"request_id":"r"}}"#;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{busy}",
        busy.len()
    );
    let proxy = Proxy::before(server.address, move |number| match number {
        0 => Fate::Say(answer.clone()),
        _ => Fate::Pass,
    });
    let began = Instant::now();
    client(&proxy.url(), &server).job_create(&echo(), Duration::ZERO).await.expect("a job");
    assert_eq!(proxy.connections(), 2);
    assert!(began.elapsed() >= Duration::from_secs(1), "it came back after {:?}", began.elapsed());
}

#[test]
fn what_is_no_address_is_refused_before_anything_is_sent() {
    for url in ["", "localhost:8080", "ftp://x", "http://", "http://key@host"] {
        let error = Client::new(url, "cof_x").expect_err(url);
        assert!(matches!(error, ClientError::Setup(_)), "{url}: {error}");
    }
}
