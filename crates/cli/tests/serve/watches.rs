//! What changes in a folder of a session, as it is told over HTTP: the same on every backend.

use crate::client::Client;
use crate::session_files::head;
use crate::sessions::shell;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;

/// Events of a stream: name, id, data.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(client: &Client, path: &str, headers: &str) -> Self {
        let stream = client.open("GET", path, headers, "").expect("a connection");
        let mut answer = BufReader::new(stream);
        assert_eq!(head(&mut answer).0, 200);
        Self(answer)
    }

    fn next(&mut self) -> (String, String, Value) {
        let (mut name, mut id, mut data, mut line) =
            (String::new(), String::new(), Value::Null, String::new());
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).expect("a line") > 0, "the stream ended");
            if let Some(value) = line.strip_prefix("event: ") {
                name = value.trim().to_owned();
            } else if let Some(value) = line.strip_prefix("id: ") {
                id = value.trim().to_owned();
            } else if let Some(value) = line.strip_prefix("data: ") {
                data = serde_json::from_str(value).expect("JSON");
            } else if line.trim().is_empty() && !name.is_empty() {
                return (name, id, data);
            }
        }
    }

    /// Until one of this path and name, leaving out what was only written to.
    fn until(&mut self, last: &str) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        loop {
            let (name, id, data) = self.next();
            let what = format!("{name} {}", data["path"].as_str().unwrap_or_default());
            if name != "modified" {
                seen.push((what.clone(), id));
            }
            if what == last {
                return seen;
            }
        }
    }
}

/// Of a session that is there, in a folder of its own.
pub(crate) fn check_watch(client: &Client, id: &str) {
    let path = |path: &str| format!("/v1/sessions/{id}/files/watch?path={path}");
    let watch = |headers: &str| Events::open(client, &path("w"), headers);
    let run = |line: &str| assert_eq!(shell(client, id, line)["result"]["exit_code"], 0, "{line}");
    run("mkdir -p w/old; ln -s /tmp w/way");
    let mut events = watch("");
    let (name, _, data) = events.next();
    assert_eq!((name.as_str(), &data["path"]), ("ready", &json!("/workspace/w")));
    run("cd w; echo 1 > a; mv a b; mkdir new; rm b; touch way/unseen; echo 2 > old/c");
    let seen = events.until("created old/c");
    let names: Vec<_> = seen.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(names, ["created a", "moved b", "created new", "removed b", "created old/c"]);
    drop(events);
    // Meanwhile, and then from the second on.
    run("echo 3 > w/new/d; rm w/new/d");
    let mut again = watch(&format!("Last-Event-ID: {}\r\n", seen[1].1));
    let names: Vec<_> = again.until("removed new/d").into_iter().map(|(what, _)| what).collect();
    assert_eq!(names, ["created new", "removed b", "created old/c", "created new/d", "removed new/d"]);
    // Who was away for too long is told so.
    let mut late = watch("Last-Event-ID: 1\r\n");
    assert_eq!(late.next().0, "truncated");
    run("rm -r w");
    assert!(again.until("gone /workspace/w").iter().any(|(what, _)| what == "removed old"));
    run("echo x > file");
    for (name, status) in [("missing", 404), ("file", 422)] {
        assert_eq!(client.get(&path(name)).status, status, "{name}");
    }
}
