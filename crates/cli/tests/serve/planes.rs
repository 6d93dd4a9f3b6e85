//! Several processes on one PostgreSQL, and a PostgreSQL that goes away under them.

use crate::client::Client;
use crate::invariants;
use crate::load::{Ids, Load, id, job, state, wait_for_all};
use crate::machine::{OwnProgram, wait_until};
use crate::postgres;
use crate::roles::Apart;
use crate::server::{Folder, Server};
use cofferdam_store::{AuditEvent, Claim, Location, Store};
use serde_json::json;
use std::thread::sleep;
use std::time::Duration;

/// Either may be killed at any time: both take jobs and give them out, and none runs twice.
#[test]
fn two_control_planes_share_a_store_and_either_may_be_killed() {
    let program = OwnProgram::new();
    let postgres = postgres::Server::start();
    let address = postgres.address("postgres");
    let folders = [Folder::new("plane-a"), Folder::new("plane-b")];
    let token = folders[0].path().join("service.token");
    let shared = token.to_string_lossy().into_owned();
    let artifacts = folders[0].path().join("shared").to_string_lossy().into_owned();
    let start = |at: usize| {
        // A worker ends what nobody has taken over within twice as long: on a busy machine that must not be close.
        let mut options = vec!["--database", &address, "--lease", "6s", "--artifacts", &artifacts];
        if at > 0 {
            options.extend(["--service-token-file", &shared]);
        }
        Server::start_role(&program.path(), "control", folders[at].path(), &options)
    };
    let first = start(0);
    folders[1].share_key_of(&folders[0]);
    let mut planes = [first, start(1)];
    let key = planes[0].key.clone();
    let controls = [&planes[0], &planes[1]];
    let workers =
        [(); 2].map(|()| Server::start_worker(&program.path(), &controls, &token, &["--slots", "3"]));
    let acknowledged = Ids::default();
    for kill in 0..10 {
        let clients = [0, 1].map(|at| Client::of(&planes[at]).with_key(&key));
        let load = Load::start(4, &clients, &acknowledged);
        sleep(Duration::from_millis(300 + kill * 40));
        let at = kill as usize % 2;
        // The worker's way to control goes by address, so one of the two keeps its own.
        if at == 1 {
            let next = {
                planes[1].signal("KILL");
                wait_until("it is gone", || !planes[1].is_up());
                start(1)
            };
            drop(std::mem::replace(&mut planes[1], next));
        }
        load.stop();
    }
    let client = Client::of(&planes[0]).with_key(&key);
    wait_for_all(&client);
    println!("{} artifacts", invariants::check_artifacts(&client));
    let acknowledged = std::mem::take(&mut *acknowledged.lock().expect("ids"));
    for server in workers.into_iter().chain(planes) {
        assert_eq!(server.stop(), Some(0));
    }
    let counts = invariants::check_at(&Location::Postgres(address), &acknowledged);
    println!("{} acknowledged, {counts:?}", acknowledged.len());
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    assert_eq!(
        (counts.jobs, counts.lost),
        (counts.ended, 0),
        "no worker was killed, so nothing is lost: {counts:?}"
    );
    program.wait_until_gone();
}

/// Its worker certainly never had it, so that it is not lost: it runs when there is room again.
#[test]
fn a_job_whose_plane_died_before_it_told_the_worker_is_begun_after_all() {
    let apart = Apart::with("untold", &[]);
    let _worker = apart.worker(&["--slots", "1"]);
    let first = apart.client.post("/v1/jobs", r#"{"command":"sleep 8; echo one"}"#).json();
    wait_until("it runs", || state(&apart.client, &id(&first)) == "running");
    let waits = id(&apart.client.post("/v1/jobs", r#"{"command":"echo two"}"#).json());
    let list = apart.client.get("/v1/workers").json();
    let worker = list["workers"][0]["id"].as_str().expect("an id").to_owned();
    // What a plane has done by then that dies between its two steps.
    claim(&apart.folder, &waits, "pla-gone", &worker);
    assert_eq!(state(&apart.client, &waits), "running");
    wait_until("it has ended", || !["running", "queued"].contains(&state(&apart.client, &waits).as_str()));
    let done = job(&apart.client, &waits);
    assert_eq!((&done["status"]["state"], &done["attempts"]), (&json!("succeeded"), &json!(1)), "{done}");
    assert_eq!(done["result"]["stdout"], "two\n", "{done}");
}

fn claim(folder: &Folder, id: &str, owner: &str, worker: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store =
            Store::open(&Location::Sqlite(folder.path().join("cofferdam.db"))).await.expect("a store");
        let event = AuditEvent {
            at_ms: 0,
            kind: "job.running",
            actor: "system".to_owned(),
            resource: id.to_owned(),
            details: json!({"worker": worker, "attempt": 1}),
        };
        let (owner, worker) = (owner.to_owned(), worker.to_owned());
        let claim = Claim { owner, worker, lease_ms: 1, room: None, most_running: None };
        store.claim(id.to_owned(), claim, event).await.expect("a claim");
        store.close().await;
    });
}

#[test]
fn a_postgres_that_restarts_under_load_costs_nothing_that_was_acknowledged() {
    let program = OwnProgram::new();
    let mut postgres = postgres::Server::start();
    let address = postgres.address("postgres");
    let folder = Folder::new("restart");
    let server = Server::start_role(&program.path(), "serve", folder.path(), &["--database", &address]);
    let client = Client::of(&server);
    let acknowledged = Ids::default();
    let load = Load::start(4, std::slice::from_ref(&client), &acknowledged);
    for _ in 0..4 {
        sleep(Duration::from_millis(400));
        postgres.crash();
    }
    let before = acknowledged.lock().expect("ids").len();
    wait_until("it goes on", || acknowledged.lock().expect("ids").len() > before + 5);
    load.stop();
    wait_for_all(&client);
    println!("{} artifacts", invariants::check_artifacts(&client));
    let acknowledged = std::mem::take(&mut *acknowledged.lock().expect("ids"));
    assert_eq!(server.stop(), Some(0));
    let counts = invariants::check_at(&Location::Postgres(address), &acknowledged);
    println!("{} acknowledged, {counts:?}", acknowledged.len());
    assert_eq!((counts.jobs, counts.lost), (counts.ended, 0), "{counts:?}");
    program.wait_until_gone();
}
