//! The data of a server over its life: copied and put back, older and newer than the program, and a long queue.

use crate::api::follow;
use crate::client::Client;
use crate::server::{Folder, Server};
use cofferdam_store::{Location, Store};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PRINT: &str = r#"{"language":"python","code":"print(1)"}"#;

fn cofferdam(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cofferdam")).args(words).output().expect("the program starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of ours is UTF-8")
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Runs statements on a database, as somebody with a tool of their own would.
fn sql(database: &Path, statements: &str) {
    let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())";
    let mut python = Command::new("/usr/bin/python3")
        .args(["-c", script, text(database)])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("Python");
    std::io::Write::write_all(&mut python.stdin.take().expect("stdin"), statements.as_bytes())
        .expect("a write");
    assert!(python.wait().expect("its end").success());
}

fn wait_for(client: &Client, id: &str) -> serde_json::Value {
    follow(client, id, None);
    client.get(&format!("/v1/jobs/{id}")).json()
}

#[test]
fn a_backup_of_a_busy_server_comes_back() {
    let (folder, other) = (Folder::new("busy"), Folder::new("restored"));
    let server = Server::start(folder.path(), &["--slots", "2"]);
    let client = Client::of(&server);
    let done = client.post("/v1/jobs?wait_ms=30000", PRINT).json()["id"].as_str().expect("an id").to_owned();
    let running = client.post("/v1/jobs", r#"{"command":["sleep","300"]}"#).json()["id"].clone();
    let running = running.as_str().expect("an id").to_owned();
    let file = other.path().join("backup.db");
    let stop = AtomicBool::new(false);
    let made = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(client.post("/v1/jobs?wait_ms=30000", PRINT).status, 200);
            }
        });
        let made = cofferdam(&["backup", "--data", text(folder.path()), "--to", text(&file)]);
        stop.store(true, Ordering::Relaxed);
        made
    });
    assert!(made.status.success(), "{}", said(&made));
    server.kill();

    let data = other.path().join("data");
    let words = ["restore", "--from", text(&file), "--data", text(&data)];
    let restored = cofferdam(&words);
    assert!(restored.status.success(), "{}", said(&restored));
    // Besides the one that sleeps, one of the busy client's may have run just then.
    let is_lost = |count: u32| said(&restored).contains(&format!(" {count} lost"));
    assert!(is_lost(1) || is_lost(2), "{}", said(&restored));
    let again = cofferdam(&words);
    assert_eq!(again.status.code(), Some(125));
    assert!(said(&again).contains("--replace"), "{}", said(&again));
    let key = |folder: &Path| std::fs::read(folder.join("admin.key")).expect("a key");
    assert_eq!(key(&data), key(folder.path()));

    let server = Server::start(&data, &[]);
    let client = Client::of(&server);
    assert_eq!(client.get(&format!("/v1/jobs/{done}")).json()["result"]["stdout"], "1\n");
    let lost = client.get(&format!("/v1/jobs/{running}")).json();
    assert_eq!(lost["status"]["state"], "lost", "{lost}");
    assert_eq!(client.post("/v1/jobs?wait_ms=30000", PRINT).json()["result"]["stdout"], "1\n");
    // A server that runs is not replaced beneath its feet.
    let in_use = cofferdam(&[&words[..], &["--replace"]].concat());
    assert!(said(&in_use).contains("in use"), "{}", said(&in_use));
    assert_eq!(server.stop(), Some(0));
    let replaced = cofferdam(&[&words[..], &["--replace"]].concat());
    assert!(replaced.status.success(), "{}", said(&replaced));
}

#[test]
fn a_database_of_a_server_is_left_to_its_own_tools() {
    let words = ["backup", "--data", "x", "--to", "y", "--database", "postgres://localhost/x"];
    let refused = cofferdam(&words);
    assert_eq!(refused.status.code(), Some(125));
    assert!(said(&refused).contains("pg_dump --format=custom"), "{}", said(&refused));
}

#[test]
fn a_newer_store_is_refused_and_left_as_it_is() {
    let folder = Folder::new("newer");
    let server = Server::start(folder.path(), &[]);
    assert_eq!(server.stop(), Some(0));
    let database = folder.path().join("cofferdam.db");
    sql(&database, "INSERT INTO schema_version (version) VALUES (1000);");
    let before = std::fs::read(&database).expect("the database");
    for words in [
        &["serve", "--data", text(folder.path()), "--listen", "127.0.0.1:0"][..],
        &["backup", "--data", text(folder.path()), "--to", "/nowhere/x"],
        &["store", "compact", "--data", text(folder.path())],
    ] {
        let refused = cofferdam(words);
        assert_eq!(refused.status.code(), Some(125), "{words:?}");
        let said = said(&refused);
        assert!(said.contains("version 1000") && said.contains("newer program"), "{words:?}: {said}");
    }
    assert_eq!(std::fs::read(&database).expect("the database"), before);
}

/// Made by the first version there was, with jobs that had ended, ran and waited.
#[test]
fn a_server_goes_on_with_a_store_of_the_first_version() {
    let folder = Folder::new("older");
    let fixture =
        include_str!("../../../store/tests/store/fixtures/version_1.sql").replace("{{bytes}}", "BLOB");
    sql(&folder.path().join("cofferdam.db"), &fixture);
    std::fs::write(folder.path().join("admin.key"), format!("cof_{}", "5f".repeat(32))).expect("the key");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let job = |letter: &str| format!("job-{}", letter.repeat(16));
    let state =
        |letter: &str| client.get(&format!("/v1/jobs/{}", job(letter))).json()["status"]["state"].clone();
    assert_eq!(client.get(&format!("/v1/jobs/{}", job("a"))).json()["result"]["stdout"], "1\n");
    assert_eq!((state("b"), state("c")), ("lost".into(), "cancelled".into()));
    // What waited is run.
    assert_eq!(wait_for(&client, &job("e"))["result"]["stdout"], "1\n");
    assert_eq!(client.post("/v1/jobs?wait_ms=30000", PRINT).json()["result"]["stdout"], "1\n");
    assert_eq!(server.stop(), Some(0));
    let compacted = cofferdam(&["store", "compact", "--data", text(folder.path())]);
    assert!(compacted.status.success(), "{}", said(&compacted));
}

#[test]
fn a_job_whose_output_is_gone_says_so() {
    let folder = Folder::new("gone");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let id = client.post("/v1/jobs?wait_ms=30000", PRINT).json()["id"].as_str().expect("an id").to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store =
            Store::open(&Location::Sqlite(folder.path().join("cofferdam.db"))).await.expect("the store");
        store.expire_output(i64::MAX, 1).await.expect("a sweep");
        store.close().await;
    });
    let job = client.get(&format!("/v1/jobs/{id}")).json();
    assert_eq!((&job["output_expired"], &job["result"]["stdout"]), (&true.into(), &"".into()), "{job}");
    assert_eq!(job["status"]["state"], "succeeded");
    for (after, expected) in [
        (None, vec!["init", "truncated", "result", "complete"]),
        (Some("7"), vec!["truncated", "result", "complete"]),
    ] {
        let events = follow(&client, &id, after);
        let names: Vec<_> = events.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, expected);
        let gone = &events[names.len() - 3];
        assert!(gone.2.contains(r#""reason":"expired""#), "{gone:?}");
        let ids: Vec<i64> = events.iter().map(|(id, ..)| id.parse().expect("a number")).collect();
        assert!(ids.is_sorted() && ids[0] >= after.map_or(0, |_| 8), "{ids:?}");
    }
    assert_eq!(server.stop(), Some(0));
}

/// In kilobytes, as the kernel counts it.
fn memory(process: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("a number")
}

const QUEUED: usize = 10_000;
const MAX_MEMORY_KIB: u64 = 200 << 10;

#[test]
fn ten_thousand_jobs_wait_in_little_memory() {
    let folder = Folder::new("queue");
    let server = Server::start(folder.path(), &["--slots", "1"]);
    let client = Client::of(&server);
    let first = client.post("/v1/jobs", r#"{"command":["sleep","600"]}"#).json();
    assert_eq!(first["status"]["state"], "running", "{first}");
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..QUEUED / 8 {
                    assert_eq!(client.post("/v1/jobs", PRINT).status, 202);
                }
            });
        }
    });
    // The dispatcher has looked at them at least once more.
    thread::sleep(Duration::from_secs(3));
    let (now, most) = (memory(server.process(), "VmRSS"), memory(server.process(), "VmHWM"));
    println!("{QUEUED} queued in {:?}: {now} KiB, at most {most} KiB", began.elapsed());
    assert!(most <= MAX_MEMORY_KIB, "{most} KiB");
    let queued = client.get("/v1/jobs?state=queued&limit=500").json();
    assert_eq!(queued["jobs"].as_array().map(Vec::len), Some(500));
    server.kill();
}
