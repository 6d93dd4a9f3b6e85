//! Following: what happens to jobs and what they write, for many at once, without a loss or a repetition.

use crate::client::Client;
use crate::server::{Folder, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The events of a stream, one at a time.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(client: &Client, path: &str, after: Option<&str>) -> Self {
        let header = after.map_or_else(String::new, |after| format!("Last-Event-ID: {after}\r\n"));
        let stream = client.open("GET", path, &header, "").expect("a stream");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).expect("the head of an answer");
        }
        Self(reader)
    }
}

impl Iterator for Events {
    type Item = (String, String, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let mut event = [const { String::new() }; 3];
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).expect("a line") == 0 {
                return None;
            }
            let line = line.trim_end();
            for (at, field) in ["id: ", "event: ", "data: "].into_iter().enumerate() {
                if let Some(value) = line.strip_prefix(field) {
                    event[at] = value.to_owned();
                }
            }
            if line.is_empty() && !event[1].is_empty() {
                let [id, name, data] = event;
                return Some((id, name, serde_json::from_str(&data).expect("JSON")));
            }
        }
    }
}

fn run(client: &Client, command: &str) -> String {
    let answer = client.post("/v1/jobs?wait_ms=60000", &json!({"command": command}).to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["id"].as_str().expect("an id").to_owned()
}

#[test]
fn the_feed_has_each_change_once_and_goes_on_after_any_of_them() {
    let folder = Folder::new("feed");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    run(&client, "true");
    let mut live = Events::open(&client, "/v1/events", None);
    let (begin, name, _) = live.next().expect("a first event");
    assert_eq!(name, "init");
    let ids = [run(&client, "exit 3"), run(&client, "true")];
    let seen: Vec<_> = live.by_ref().take(6).collect();
    let kinds: Vec<_> = seen.iter().map(|(_, name, data)| (name.as_str(), data["job_id"].as_str())).collect();
    let expected: Vec<_> = ids
        .iter()
        .flat_map(|id| ["job.accepted", "job.running", "job.finished"].map(|kind| (kind, Some(id.as_str()))))
        .collect();
    assert_eq!(kinds, expected, "{seen:?}");
    assert_eq!((&seen[2].2["state"], &seen[5].2["state"]), (&json!("failed"), &json!("succeeded")));
    // From any place on, the rest; also from before anything that was seen.
    let places = std::iter::once(&begin).chain(seen.iter().map(|(id, _, _)| id));
    for (i, place) in places.enumerate().take(6) {
        let rest: Vec<_> = Events::open(&client, "/v1/events", Some(place)).skip(1).take(6 - i).collect();
        assert_eq!(rest, seen[i..], "after {place}");
    }
    let whole: Vec<_> = Events::open(&client, "/v1/events", Some("0")).skip(1).take(9).collect();
    assert_eq!(whole[3..], seen[..]);
    let bad = client.send("GET", "/v1/events", "Last-Event-ID: x\r\n", "").expect("an answer");
    assert_eq!((bad.status, bad.json()["error"]["details"]["field"].as_str()), (422, Some("Last-Event-ID")));
    // Whoever follows does not keep the server from stopping.
    let follower = Events::open(&client, "/v1/events", None);
    assert_eq!(server.stop(), Some(0));
    assert_eq!(follower.count(), 1);
}

const FOLLOWERS: usize = 1000;

/// Opens many connections, reads each to its end on a few threads, and returns what each has seen.
fn follow_all(client: &Client, path: &str, take: usize) -> Vec<Vec<(String, String)>> {
    let opened: Vec<Events> = (0..FOLLOWERS).map(|_| Events::open(client, path, Some("0"))).collect();
    let (sender, seen) = channel();
    for events in opened {
        let sender = sender.clone();
        // A small stack: there are many.
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        let read = move || {
            let seen = events.take(take).map(|(id, name, data)| (id, format!("{name} {}", data["text"])));
            let _ = sender.send(seen.collect());
        };
        thread.spawn(read).expect("a thread");
    }
    drop(sender);
    let patience = Duration::from_secs(120);
    (0..FOLLOWERS).map(|_| seen.recv_timeout(patience).expect("what a follower has seen")).collect()
}

#[test]
fn a_thousand_followers_of_one_output_miss_nothing() {
    let folder = Folder::new("thousand");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let code = "import time\ntime.sleep(3)\nfor i in range(30): print(i, flush=True); time.sleep(.05)";
    let body = json!({"language": "python", "code": code}).to_string();
    let id = client.post("/v1/jobs", &body).json()["id"].as_str().expect("an id").to_owned();
    let all = follow_all(&client, &format!("/v1/jobs/{id}/output"), usize::MAX);
    let expected: String = (0..30).map(|i| format!("{i}\n")).collect();
    for seen in &all {
        let outputs = seen.iter().filter_map(|(_, text)| text.strip_prefix("stdout "));
        let text: String = outputs.map(|text| serde_json::from_str::<String>(text).expect("text")).collect();
        assert_eq!(text, expected, "{:?}", seen.last());
        let ids: BTreeSet<_> = seen.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), seen.len(), "an id came twice: {seen:?}");
        assert!(seen.last().is_some_and(|(_, text)| text.starts_with("complete")), "{seen:?}");
    }
    assert_eq!(all.len(), FOLLOWERS);
}

#[test]
fn a_thousand_followers_of_the_feed_miss_nothing() {
    let folder = Folder::new("feeds");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let jobs = 20;
    let submitter = client.clone();
    let load = std::thread::spawn(move || {
        for _ in 0..jobs {
            run(&submitter, "sleep 0.2");
        }
    });
    let all = follow_all(&client, "/v1/events", 1 + 3 * jobs);
    load.join().expect("the jobs");
    for seen in &all {
        assert_eq!(seen.len(), 1 + 3 * jobs);
        assert_eq!(seen[1..], all[0][1..], "all see the same");
        let numbers: Vec<u64> = seen[1..].iter().map(|(id, _)| id.parse().expect("a number")).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    }
}

/// A program that writes a byte at a time never has a character of its cut in two by an event.
#[test]
fn no_event_ends_inside_a_character() {
    let folder = Folder::new("characters");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let code = "import sys, time\nfor byte in 'añ€😀b'.encode() + b'\\xff\\xe2\\x82':\n  sys.stdout.buffer.write(bytes([byte]))\n  sys.stdout.flush()\n  time.sleep(.15)";
    let body = json!({"language": "python", "code": code}).to_string();
    let id = client.post("/v1/jobs", &body).json()["id"].as_str().expect("an id").to_owned();
    let events: Vec<_> = Events::open(&client, &format!("/v1/jobs/{id}/output"), None).collect();
    let outputs: Vec<_> =
        events.iter().filter(|(_, name, _)| name == "stdout").map(|(_, _, data)| data).collect();
    assert!(outputs.len() > 3, "it came in one piece: {outputs:?}");
    let text: String = outputs.iter().filter_map(|data| data["text"].as_str()).collect();
    assert!(text.starts_with("añ€😀b"), "{text:?}");
    let exact: Vec<_> = outputs.iter().filter_map(|data| data["base64"].as_str()).collect();
    assert!(!exact.is_empty() && outputs[0].get("base64").is_none(), "{outputs:?}");
}

/// Whoever follows is let go when their key is taken back, and told why.
#[test]
fn a_stream_ends_with_the_key_that_opened_it() {
    let folder = Folder::new("revoked");
    let server = Server::start(folder.path(), &[]);
    let admin = Client::of(&server);
    let job = admin.post("/v1/jobs", r#"{"command":"while :; do echo x; sleep .2; done"}"#).json();
    let output = format!("/v1/jobs/{}/output", job["id"].as_str().expect("an id"));
    for path in ["/v1/events", &output] {
        let made = admin.post("/v1/keys", r#"{"name":"follower","scopes":["jobs:read"]}"#).json();
        let follower = admin.with_key(made["secret"].as_str().expect("a secret"));
        let mut events = Events::open(&follower, path, None);
        assert_eq!(events.next().map(|(_, name, _)| name).as_deref(), Some("init"));
        let key = format!("/v1/keys/{}", made["id"].as_str().expect("an id"));
        assert_eq!(admin.send("DELETE", &key, "", "").expect("an answer").status, 204);
        let began = std::time::Instant::now();
        let last = events.inspect(|_| assert!(began.elapsed() < Duration::from_secs(30), "{path}")).last();
        let (id, name, data) = last.expect("a last event");
        assert_eq!((id.as_str(), name.as_str()), ("", "error"), "{path}");
        assert_eq!(data["code"], "unauthenticated", "{path}: {data}");
    }
    let path = format!("/v1/jobs/{}/cancel", job["id"].as_str().expect("an id"));
    assert_eq!(admin.post(&path, "").status, 202);
}
