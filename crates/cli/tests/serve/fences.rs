//! Processes that are stopped for longer than their leases, and come back: what they think is theirs is not.

use crate::client::Client;
use crate::invariants;
use crate::load::{id, job, state};
use crate::machine::{processes_with, wait_until};
use crate::postgres;
use crate::server::{Folder, Server};
use cofferdam_store::Location;
use std::path::Path;

const LEASE: [&str; 2] = ["--lease", "1s"];

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_cofferdam"))
}

/// The key of the first server is in the store that both share.
fn at(server: &Server, key: &str) -> Client {
    Client::of(server).with_key(key)
}

/// A server with its own worker sleeps; another ends its job as lost; it wakes and writes nothing, and its sandbox goes.
#[test]
fn a_server_that_comes_back_after_its_lease_writes_nothing_and_ends_its_sandbox() {
    let postgres = postgres::Server::start();
    let address = postgres.address("postgres");
    let folders = [Folder::new("fence-a"), Folder::new("fence-b")];
    let start = |folder: &Folder| Server::start(folder.path(), &["--database", &address, LEASE[0], LEASE[1]]);
    let asleep = start(&folders[0]);
    folders[1].share_key_of(&folders[0]);
    let awake = start(&folders[1]);
    let (to_asleep, to_awake) = (Client::of(&asleep), at(&awake, &asleep.key));
    let body = r#"{"command":"echo early; sleep 4; echo late; sleep 314.153"}"#;
    let lost = id(&to_asleep.post("/v1/jobs", body).json());
    // One more in the middle of its work, which will have ended before anybody wakes.
    let ended = id(&to_asleep.post("/v1/jobs", r#"{"command":"sleep 2; echo ended"}"#).json());
    wait_until("both run", || state(&to_awake, &lost) == "running" && state(&to_awake, &ended) == "running");
    asleep.signal("STOP");
    for id in [&lost, &ended] {
        wait_until("it is given up", || state(&to_awake, id) == "lost");
    }
    wait_until("the sandbox has more to say by now", || processes_with("314.153") == 1);
    let before = (job(&to_awake, &lost), job(&to_awake, &ended));
    asleep.signal("CONT");
    wait_until("its sandbox is ended", || processes_with("314.153") == 0);
    // It serves as before, what is new is its own.
    let new = to_asleep.post("/v1/jobs?wait_ms=30000", r#"{"command":"echo new"}"#).json();
    assert_eq!(new["result"]["stdout"], "new\n");
    assert_eq!((job(&to_awake, &lost), job(&to_awake, &ended)), before);
    assert!(!format!("{before:?}").contains("late") || !before.0.to_string().contains("late"));
    let output = to_awake.get(&format!("/v1/jobs/{lost}/output")).body;
    assert!(!output.contains("late"), "{output}");
    assert_eq!((asleep.stop(), awake.stop()), (Some(0), Some(0)));
    let counts = invariants::check_at(&Location::Postgres(address), &[lost, ended]);
    assert_eq!((counts.jobs, counts.ended, counts.lost), (3, 3, 2));
}

/// A worker sleeps; control gives its job up; it wakes, and its sandbox goes.
#[test]
fn a_worker_that_comes_back_after_its_lease_ends_its_sandbox() {
    let folder = Folder::new("fence-worker");
    let control = Server::start_role(program(), "control", folder.path(), &LEASE);
    let client = Client::of(&control);
    let token = folder.path().join("service.token");
    let worker = Server::start_worker(program(), &[&control], &token, &[]);
    wait_until("it is registered", || client.get("/v1/workers").body.contains("ready"));
    let lost = id(&client.post("/v1/jobs", r#"{"command":"echo early; sleep 314.154"}"#).json());
    wait_until("it runs", || processes_with("314.154") == 1);
    worker.signal("STOP");
    wait_until("it is given up", || state(&client, &lost) == "lost");
    let before = job(&client, &lost);
    wait_until("it is out", || client.get("/v1/workers").body.contains(r#""state":"out""#));
    assert_eq!(client.post("/v1/jobs", r#"{"command":["true"]}"#).status, 503, "nobody is there");
    worker.signal("CONT");
    wait_until("its sandbox is ended", || processes_with("314.154") == 0);
    wait_until("it is back", || client.get("/v1/workers").body.contains("ready"));
    let done = client.post("/v1/jobs?wait_ms=30000", r#"{"command":"echo back"}"#).json();
    assert_eq!(done["result"]["stdout"], "back\n");
    assert_eq!(job(&client, &lost), before);
    assert_eq!((worker.stop(), control.stop()), (Some(0), Some(0)));
    invariants::check(folder.path(), &[lost]);
}

/// A control plane sleeps; another takes its run over, and brings it to its end with all of its output.
#[test]
fn a_run_whose_control_plane_sleeps_is_taken_over_by_another() {
    let postgres = postgres::Server::start();
    let address = postgres.address("postgres");
    let folders = [Folder::new("over-a"), Folder::new("over-b")];
    let token = folders[0].path().join("service.token");
    let shared = token.to_string_lossy().into_owned();
    let first = Server::start_role(
        program(),
        "control",
        folders[0].path(),
        &["--database", &address, LEASE[0], LEASE[1]],
    );
    folders[1].share_key_of(&folders[0]);
    let options = ["--database", &address, LEASE[0], LEASE[1], "--service-token-file", &shared];
    let second = Server::start_role(program(), "control", folders[1].path(), &options);
    let (to_first, to_second) = (Client::of(&first), at(&second, &first.key));
    let worker = Server::start_worker(program(), &[&first, &second], &token, &[]);
    wait_until("both know the worker", || {
        [&to_first, &to_second].iter().all(|client| client.get("/v1/workers").body.contains("ready"))
    });
    let body = r#"{"command":"for i in $(seq 1 16); do echo $i; sleep 0.5; done"}"#;
    let taken = id(&to_first.post("/v1/jobs", body).json());
    wait_until("some is kept", || to_second.get("/v1/audit?limit=1000").body.contains("job.running"));
    std::thread::sleep(std::time::Duration::from_secs(2));
    first.signal("STOP");
    wait_until("it has ended", || state(&to_second, &taken) == "succeeded");
    let done = job(&to_second, &taken);
    let expected: String = (1..=16).map(|i| format!("{i}\n")).collect();
    assert_eq!(
        (done["attempts"].as_i64(), done["result"]["stdout"].as_str()),
        (Some(1), Some(expected.as_str()))
    );
    first.signal("CONT");
    let new = to_first.post("/v1/jobs?wait_ms=30000", r#"{"command":"echo new"}"#).json();
    assert_eq!(new["result"]["stdout"], "new\n");
    assert_eq!(job(&to_second, &taken), done);
    for server in [worker, first, second] {
        assert_eq!(server.stop(), Some(0));
    }
    let counts = invariants::check_at(&Location::Postgres(address), &[taken]);
    assert_eq!((counts.jobs, counts.ended, counts.lost), (2, 2, 0));
}
