//! Clients that send jobs for as long as they are told to, and remember what they were told.

use crate::client::Client;
use crate::machine::PATIENCE;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Some that answer at once, some that take a while, some that fail, some with much to say, some that leave an artifact,
/// some to be tried again.
const BODIES: [&str; 6] = [
    r#"{"language":"python","code":"print(1)"}"#,
    r#"{"command":"sleep 0.2; echo slept"}"#,
    r#"{"command":["false"]}"#,
    r#"{"command":"head -c 200000 /dev/zero | tr '\\0' x"}"#,
    LEAVES_AN_ARTIFACT,
    r#"{"command":"sleep 0.1; echo again","retries":{"max":2,"on":["lost"],"backoff_ms":10}}"#,
];

pub(crate) const LEAVES_AN_ARTIFACT: &str =
    r#"{"command":"seq 1 20000 > .artifacts/numbers; echo $CYNODE_JOB_ID >> .artifacts/numbers"}"#;

/// What was acknowledged so far.
pub(crate) type Ids = Arc<Mutex<Vec<String>>>;

pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts clients, which share what they send between the servers.
    pub(crate) fn start(count: usize, servers: &[Client], acknowledged: &Ids) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let stop = Arc::new(AtomicBool::new(false));
        let clients = (0..count).map(|number| {
            let (client, stop) = (servers[number % servers.len()].clone(), Arc::clone(&stop));
            let ids = Arc::clone(acknowledged);
            // Each begins with something else, so that short loads do not all send the same.
            let first = NEXT.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || send(&client, first, &stop, &ids))
        });
        Self { clients: clients.collect(), stop }
    }

    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().for_each(|client| client.join().expect("a client"));
    }
}

fn send(client: &Client, first: usize, stop: &AtomicBool, acknowledged: &Mutex<Vec<String>>) {
    let mut round = first;
    while !stop.load(Ordering::Relaxed) {
        let path = if round.is_multiple_of(2) { "/v1/jobs" } else { "/v1/jobs?wait_ms=2000" };
        let body = BODIES[round % BODIES.len()];
        // A server that is killed cuts the answer off: then nothing was acknowledged.
        match client.send("POST", path, "", body) {
            Ok(answer) if answer.status == 200 || answer.status == 202 => {
                let id = answer.json()["id"].as_str().expect("an id").to_owned();
                acknowledged.lock().expect("ids").push(id);
            }
            // It says so when it cannot take work, and is not asked at once again.
            Ok(answer) => {
                assert_eq!(answer.status, 503, "{answer:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
        round += 1;
    }
}

/// Waits until every job has ended. There may be very many, so what must not be is that none ends for a while.
pub(crate) fn wait_for_all(client: &Client) {
    let (mut least, mut since) = (usize::MAX, Instant::now());
    loop {
        let left = unfinished(client);
        if left == 0 {
            return;
        }
        if left < least {
            (least, since) = (left, Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "{left} jobs have not ended, and none has for {PATIENCE:?}");
        // To look costs the server as much as a job does where there are many.
        std::thread::sleep(Duration::from_millis(if left > 100 { 1_000 } else { 20 }));
    }
}

/// The jobs that have not ended. Each is looked at once, in whatever state it is: a job that is tried again goes back
/// from running to queued, and would be missed by whoever counts the queued ones first and the running ones then.
fn unfinished(client: &Client) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let page = client.get(&format!("/v1/jobs?limit=500{cursor}")).json();
        // A server that does not answer has not said that nothing is left.
        let Some(jobs) = page["jobs"].as_array() else { return usize::MAX };
        let is_open = |job: &&Value| matches!(job["status"]["state"].as_str(), Some("queued" | "running"));
        count += jobs.iter().filter(is_open).count();
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return count,
        }
    }
}

pub(crate) fn id(answer: &Value) -> String {
    answer["id"].as_str().expect("an id").to_owned()
}

pub(crate) fn state(client: &Client, id: &str) -> String {
    job(client, id)["status"]["state"].as_str().expect("a state").to_owned()
}

pub(crate) fn job(client: &Client, id: &str) -> Value {
    client.get(&format!("/v1/jobs/{id}")).json()
}
