//! What the client does about answers that do not come, and about those that say no.

use crate::proxy::{Fate, Proxy};
use crate::server::{Folder, Server};
use cofferdam_api::{Command, ErrorCode, JobRequest, KeyRequest, SessionRequest};
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
async fn files_of_a_session_are_listed_found_and_removed() {
    let (folder, server) = server();
    let client = direct(&server);
    let id = client.session_create(&SessionRequest::default()).await.expect("a session").id;
    let text = folder.path().join("text");
    std::fs::write(&text, "one\ntwo\n").expect("a file");
    for path in ["/workspace/a/b.txt", "/workspace/c.md"] {
        let file = tokio::fs::File::open(&text).await.expect("the file");
        client.file_write(&id, path, 0o644, file, 8, Box::new(|_| {})).await.expect("it is written");
    }
    assert!(client.file_exists(&id, "/workspace/a/b.txt").await.expect("an answer"));
    assert!(!client.file_exists(&id, "/workspace/b").await.expect("an answer"));
    client.file_exists("ses-aaaaaaaaaaaaaaaa", "/workspace").await.expect_err("no answer for no session");
    let list = client.file_list(&id, "/workspace", 2).await.expect("a list");
    assert!(format!("{list:?}").contains("b.txt"), "{list:?}");
    let found = client.file_search(&id, "/workspace", Some("*.txt"), Some("tw.")).await.expect("matches");
    assert!(format!("{found:?}").contains("b.txt") && !format!("{found:?}").contains("c.md"), "{found:?}");
    let refused = client.file_remove(&id, "/workspace/a", false).await.expect_err("it has something in it");
    assert!(refused.code().is_some(), "{refused}");
    client.file_remove(&id, "/workspace/a", true).await.expect("it is removed");
    assert!(!client.file_exists(&id, "/workspace/a").await.expect("an answer"));
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

/// All of a download, or why it is none.
async fn download(client: &Client, artifact: &cofferdam_api::Artifact) -> Result<Vec<u8>, ClientError> {
    let mut download = client.artifact_download(artifact).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = download.next().await? {
        bytes.extend(piece);
    }
    Ok(bytes)
}

#[tokio::test]
async fn bytes_are_taken_up_and_down_and_held_against_their_hash() {
    let (folder, server) = server();
    let client = direct(&server);
    let file = folder.path().join("upload.bin");
    let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(&file, &bytes).expect("a file");
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = std::sync::Arc::clone(&seen);
    let progress = move |n| {
        counter.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    };
    let artifact = client.artifact_upload(&file, Box::new(progress)).await.expect("an upload");
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 300_000);
    assert_eq!((artifact.state.as_str(), artifact.name.as_str()), ("ready", "upload.bin"));
    assert_eq!(download(&client, &artifact).await.expect("its bytes"), bytes);
    let other = cofferdam_api::Artifact { sha256: Some("0".repeat(64)), ..artifact.clone() };
    assert!(matches!(download(&client, &other).await, Err(ClientError::Strange { .. })));
    let longer = cofferdam_api::Artifact { size_bytes: 300_001, ..artifact.clone() };
    assert!(matches!(download(&client, &longer).await, Err(ClientError::Strange { .. })));
    client.artifact_delete(&artifact.id).await.expect("it is deleted");
    assert_eq!(download(&client, &artifact).await.expect_err("it is gone").code(), Some(ErrorCode::NotFound));
    std::fs::write(folder.path().join("empty"), "").expect("a file");
    let empty =
        client.artifact_upload(&folder.path().join("empty"), Box::new(|_| ())).await.expect("an upload");
    assert_eq!(download(&client, &empty).await.expect("its bytes"), b"");
}
