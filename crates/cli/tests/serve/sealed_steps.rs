//! What steps are and write, at rest: nobody finds it in the data folder, neither while the session lives nor afterwards.

use crate::client::Client;
use crate::master_keys::sql;
use crate::pausing::ROOMY;
use crate::secrets::{files_with, nonce};
use crate::server::{Folder, Server, program};
use crate::sessions::{create, delete, step};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

fn shred_check(folder: &Path, id: &str) -> Option<i32> {
    let mut command = Command::new(program());
    command
        .args(["session", "shred-check", id, "--data"])
        .arg(folder)
        .output()
        .expect("the program")
        .status
        .code()
}

/// Three words that were planted, each in another place.
struct Planted {
    code: String,
    output: String,
    raised: String,
}

impl Planted {
    fn draw() -> Self {
        Self { code: nonce(), output: nonce(), raised: nonce() }
    }

    fn all(&self) -> [&str; 3] {
        [&self.code, &self.output, &self.raised]
    }

    /// Code that has the first word as it is, and makes the other two of halves.
    fn request(&self) -> Value {
        let halves = |word: &str| format!("'{}' + '{}'", &word[..16], &word[16..]);
        let (output, raised) = (halves(&self.output), halves(&self.raised));
        let code = format!("# {}\nprint({output})\nraise ValueError({raised})", self.code);
        json!({"language": "python", "code": code})
    }

    fn check_shown(&self, client: &Client, path: &str) {
        let shown = client.get(path).json();
        assert_eq!(shown["result"]["stdout"], format!("{}\n", self.output), "{shown}");
        assert_eq!(shown["result"]["error"]["value"], self.raised, "{shown}");
        assert_eq!(shown["status"]["message"], format!("ValueError: {}", self.raised), "{shown}");
        assert_eq!(shown["language"], "python", "{shown}");
        let followed = client.get(&format!("{path}/output?follow=false")).body;
        assert!(followed.contains(&self.output) && followed.contains("event: complete"), "{followed}");
        let list = path.rsplit_once('/').expect("a path").0;
        assert!(client.get(list).body.contains(&self.raised));
    }
}

fn assert_nowhere(folder: &Path, words: &[&str]) {
    for word in words {
        assert_eq!(files_with(folder, word), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_steps_are_and_write_is_sealed_until_it_is_gone() {
    let folder = Folder::new("sealed");
    let path = folder.path();
    let server = Server::start(path, &ROOMY);
    let client = Client::of(&server);
    let planted = Planted::draw();
    let session = create(&client, "{}");
    let made = step(&client, &session, &planted.request());
    let shown = format!("/v1/sessions/{session}/steps/{}", made["id"].as_str().expect("an id"));
    planted.check_shown(&client, &shown);
    assert_nowhere(path, &planted.all());
    assert_eq!(shred_check(path, &session), Some(1), "its key is there");
    // Another one, to be read when the server was killed and is back.
    let other = Planted::draw();
    let kept = create(&client, "{}");
    let made = step(&client, &kept, &other.request());
    let later = format!("/v1/sessions/{kept}/steps/{}", made["id"].as_str().expect("an id"));
    assert_eq!(delete(&client, &format!("/v1/sessions/{session}")).status, 204);
    assert_nowhere(path, &planted.all());
    assert_eq!(shred_check(path, &session), Some(0));
    assert_eq!(client.get(&shown).status, 404);
    let audit = client.get(&format!("/v1/audit?resource={session}&limit=50")).json();
    let deleted = audit["entries"].as_array().expect("entries").iter();
    let deleted: Vec<_> = deleted.filter(|entry| entry["kind"] == "session.deleted").collect();
    assert_eq!(deleted[0]["details"]["key_destroyed"], true, "{audit}");
    server.kill();
    let server = Server::start(path, &ROOMY);
    let client = Client::of(&server);
    other.check_shown(&client, &later);
    assert_nowhere(path, &other.all());
    // An end is no deletion, and a deletion of what has ended is one.
    assert_eq!(delete(&client, &format!("/v1/sessions/{kept}")).status, 204);
    assert_eq!(shred_check(path, &kept), Some(0));
    assert_eq!(server.stop(), Some(0));
    assert_nowhere(path, &[&planted.all()[..], &other.all()].concat());
}

/// As a program of before has left them.
#[test]
fn steps_that_were_kept_as_they_are_are_sealed_at_the_next_start() {
    let folder = Folder::new("unsealed");
    let path = folder.path();
    let server = Server::start(path, &ROOMY);
    let client = Client::of(&server);
    let planted = Planted::draw();
    let session = create(&client, "{}");
    let made = step(&client, &session, &planted.request());
    let id = made["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.stop(), Some(0));
    let (spec, result) = (planted.request().to_string().replace('\'', "''"), made["result"].to_string());
    let message = format!("ValueError: {}", planted.raised);
    sql(
        path,
        &format!(
            "DELETE FROM session_keys; DELETE FROM output WHERE job_id = '{id}'; \
             UPDATE steps SET spec = '{spec}', result = '{}', message = '{message}' WHERE id = '{id}'; \
             INSERT INTO output VALUES ('{id}', 1, 'stdout', 1, CAST('{}' || char(10) AS BLOB)); SELECT 1",
            result.replace('\'', "''"),
            planted.output
        ),
    );
    assert!(!files_with(path, &planted.code).is_empty(), "it was planted");
    let server = Server::start(path, &ROOMY);
    let client = Client::of(&server);
    assert_nowhere(path, &planted.all());
    planted.check_shown(&client, &format!("/v1/sessions/{session}/steps/{id}"));
    assert_eq!(server.stop(), Some(0));
    assert_nowhere(path, &planted.all());
}
