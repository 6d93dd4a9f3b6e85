//! Servers that are killed in the middle of their work.

use crate::client::Client;
use crate::invariants;
use crate::server::{Folder, Server};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const KILLS: usize = 50;
const CLIENTS: usize = 4;

/// Some that answer at once, some that take a while, some that fail, some with much to say.
const BODIES: [&str; 4] = [
    r#"{"language":"python","code":"print(1)"}"#,
    r#"{"command":"sleep 0.2; echo slept"}"#,
    r#"{"command":["false"]}"#,
    r#"{"command":"head -c 200000 /dev/zero | tr '\\0' x"}"#,
];

/// Sends jobs until it is told to stop, and keeps the ids that it was told.
fn load(client: &Client, number: usize, stop: &AtomicBool, acknowledged: &Mutex<Vec<String>>) {
    let mut round = number;
    while !stop.load(Ordering::Relaxed) {
        let path = if round.is_multiple_of(2) { "/v1/jobs" } else { "/v1/jobs?wait_ms=5000" };
        let body = BODIES[round % BODIES.len()];
        // A server that is killed cuts the answer off: then nothing was acknowledged.
        if let Ok(answer) = client.send("POST", path, "", body)
            && (answer.status == 200 || answer.status == 202)
        {
            let id = answer.json()["id"].as_str().expect("an id").to_owned();
            acknowledged.lock().expect("ids").push(id);
        }
        round += 1;
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_fifty_kills_under_load() {
    let folder = Folder::new("kills");
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    // On a machine that is busy with something else, fewer answers come between two kills: then there are more kills.
    let mut kills = 0;
    while kills < KILLS || (acknowledged.lock().expect("ids").len() <= KILLS && kills < 4 * KILLS) {
        let kill = kills;
        kills += 1;
        let server = Server::start(folder.path(), &[]);
        let client = Client::of(&server);
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (client, stop, ids) = (client.clone(), Arc::clone(&stop), Arc::clone(&acknowledged));
                thread::spawn(move || load(&client, number, &stop, &ids))
            })
            .collect();
        // At another moment each time, from before the first answer to well into the work.
        thread::sleep(Duration::from_millis(5 + (kill as u64 * 37) % 260));
        stop.store(true, Ordering::Relaxed);
        server.kill();
        clients.into_iter().for_each(|client| client.join().expect("a client"));
    }
    // The last one is left to finish what was kept, and stops in peace.
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let acknowledged = std::mem::take(&mut *acknowledged.lock().expect("ids"));
    assert!(acknowledged.len() > KILLS, "only {} were acknowledged", acknowledged.len());
    for id in &acknowledged {
        let job = client.send("GET", &format!("/v1/jobs/{id}"), "", "").expect("an answer");
        assert_eq!(job.status, 200, "I1: {id}");
    }
    while client.get("/v1/jobs?state=queued&limit=1").json()["jobs"]
        .as_array()
        .is_some_and(|jobs| !jobs.is_empty())
    {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.stop(), Some(0));
    let counts = invariants::check(folder.path(), &acknowledged);
    println!("{kills} kills, {} acknowledged, {counts:?}", acknowledged.len());
    assert_eq!(counts.jobs, counts.ended, "{counts:?}");
    assert!(counts.lost > 0 && counts.lost < counts.jobs, "the kills hit nothing, or everything: {counts:?}");
    assert_eq!(invariants::processes_of(folder.path()), Vec::<String>::new(), "I4");
}
