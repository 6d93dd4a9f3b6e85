//! The same request again and again, with a kill in between.

use crate::client::Client;
use crate::invariants;
use crate::machine::wait_until;
use crate::server::{Folder, Server};
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier, Mutex};

const HEADER: &str = "Idempotency-Key: one\r\n";
const BODY: &str = r#"{"command":"sleep 0.2; echo once"}"#;

#[test]
fn two_hundred_duplicates_with_a_kill_between_make_one_job() {
    let folder = Folder::new("duplicates");
    let heard = Arc::new(Mutex::new(Vec::new()));
    // The first round is killed in the middle, the second is answered whole.
    for is_killed in [true, false] {
        let server = Server::start(folder.path(), &[]);
        let barrier = Arc::new(Barrier::new(101));
        let clients: Vec<_> = (0..100)
            .map(|_| {
                let (client, heard, barrier) =
                    (Client::of(&server), Arc::clone(&heard), Arc::clone(&barrier));
                std::thread::spawn(move || {
                    barrier.wait();
                    if let Ok(answer) = client.send("POST", "/v1/jobs", HEADER, BODY) {
                        assert_eq!(answer.status, 202, "{answer:?}");
                        heard
                            .lock()
                            .expect("ids")
                            .push(answer.json()["id"].as_str().expect("an id").to_owned());
                    }
                })
            })
            .collect();
        barrier.wait();
        if is_killed {
            wait_until("somebody was answered", || !heard.lock().expect("ids").is_empty());
            server.kill();
            clients.into_iter().for_each(|client| client.join().expect("a client"));
        } else {
            clients.into_iter().for_each(|client| client.join().expect("a client"));
            let client = Client::of(&server);
            crate::load::wait_for_all(&client);
            assert_eq!(server.stop(), Some(0));
        }
    }
    let heard = heard.lock().expect("ids").clone();
    assert!(heard.len() > 100, "{}", heard.len());
    let ids: BTreeSet<_> = heard.iter().collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let counts = invariants::check(folder.path(), &heard);
    assert_eq!((counts.jobs, counts.ended), (1, 1));
}
