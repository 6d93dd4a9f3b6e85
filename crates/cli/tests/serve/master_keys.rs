//! The master key: one takes another's place, wherever the command is killed, and nothing is lost or left.

use crate::client::Client;
use crate::pausing::{ROOMY, post, stdout};
use crate::secrets::{files_with, nonce};
use crate::server::{Folder, Server, program};
use crate::sessions::{create, shell};
use cofferdam_artifacts::MasterKey;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// So many that a rewrapping takes a while, in pages.
const FILLERS: usize = 4000;

fn rotate(folder: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program());
    command.args(["master-key", "rotate", "--data"]).arg(folder).envs(variables.iter().copied());
    command.output().expect("the program")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Runs statements on the database of a folder, and returns the rows of the last one.
pub(crate) fn sql(folder: &Path, statements: &str) -> Value {
    let script = "import json, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
                  *first, last = sys.stdin.read().split(';'); [c.execute(text) for text in first]; \
                  print(json.dumps(c.execute(last).fetchall())); c.commit()";
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", script]).arg(folder.join("cofferdam.db")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn().expect("Python");
    python.stdin.take().expect("stdin").write_all(statements.as_bytes()).expect("a write");
    let output = python.wait_with_output().expect("its end");
    serde_json::from_slice(&output.stdout).expect("rows")
}

/// Every text that is sealed in the database, with where it lies.
fn sealed(folder: &Path) -> BTreeSet<String> {
    let rows = sql(
        folder,
        "SELECT 'artifacts', wrapped_key FROM artifacts WHERE wrapped_key IS NOT NULL \
         UNION ALL SELECT 'archives', wrapped_key FROM archives WHERE wrapped_key IS NOT NULL \
         UNION ALL SELECT 'secrets', sealed FROM secrets \
         UNION ALL SELECT 'steps', wrapped_key FROM session_keys \
         UNION ALL SELECT 'webhooks', secret FROM webhooks \
         UNION ALL SELECT 'deliveries', secret FROM webhook_deliveries",
    );
    rows.as_array().expect("rows").iter().map(Value::to_string).collect()
}

/// A service that keeps one of each kind.
struct Kept {
    artifact: String,
    secret: String,
    text: String,
}

impl Kept {
    fn make(folder: &Path) -> Self {
        let server = Server::start(folder, &ROOMY);
        let client = Client::of(&server);
        let (secret, text) = (nonce(), nonce());
        let put = client.send("PUT", "/v1/secrets/token", "", &json!({"value": secret}).to_string());
        assert_eq!(put.expect("an answer").status, 200);
        let hook = json!({"url": "https://hooks.invalid/x", "secret": nonce()});
        let command = format!("mkdir -p .artifacts; printf {text} > .artifacts/file");
        let job = json!({"command": command, "webhook": hook}).to_string();
        let job = client.post("/v1/jobs?wait_ms=30000", &job).json();
        let artifact = job["result"]["artifacts"][0]["id"].as_str().expect("an artifact").to_owned();
        let base = create(&client, "{}");
        shell(&client, &base, &format!("printf {text} > kept"));
        assert_eq!(post(&client, &base, "snapshots", &json!({"name": "base"})).status, 201);
        assert_eq!(server.stop(), Some(0));
        Self { artifact, secret, text }
    }

    /// That all of it can be read.
    fn check(&self, folder: &Path, variables: &[(&str, &str)]) {
        let server = Server::start_in(folder, &ROOMY, variables);
        let client = Client::of(&server);
        assert_eq!(client.get(&format!("/v1/artifacts/{}/content", self.artifact)).body, self.text);
        let id = create(&client, r#"{"snapshot":"base","secrets":[{"name":"token"}]}"#);
        let seen = shell(&client, &id, "cat kept /run/secrets/token");
        assert_eq!(stdout(&seen), format!("{}{}", self.text, self.secret));
        assert_eq!(server.stop(), Some(0));
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name().into_string().expect("a name"));
    let mut names: Vec<_> = names.filter(|name| name.starts_with("master")).collect();
    names.sort();
    names
}

#[test]
fn a_new_master_key_takes_the_place_of_the_old_one() {
    let folder = Folder::new("rotated");
    let path = folder.path();
    let kept = Kept::make(path);
    let key = std::fs::read_to_string(path.join("master.key")).expect("a key");
    let before = sealed(path);
    let kinds: BTreeSet<_> = before.iter().filter_map(|row| row.split(',').next()).collect();
    assert_eq!(kinds.len(), 6, "{before:?}");
    // Not beneath a server, and not where there is none.
    let server = Server::start(path, &ROOMY);
    let refused = rotate(path, &[]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(said(&refused).contains("stop that"), "{}", said(&refused));
    assert_eq!(server.stop(), Some(0));
    let refused = rotate(&path.join("nowhere"), &[]);
    assert!(said(&refused).contains("has no store") && !path.join("nowhere").exists(), "{}", said(&refused));

    let before = sealed(path);
    let done = rotate(path, &[]);
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(before.intersection(&sealed(path)).count(), 0);
    assert_eq!(sealed(path).len(), before.len());
    assert_ne!(std::fs::read_to_string(path.join("master.key")).expect("a key"), key);
    assert_eq!(names(path), ["master.key"]);
    assert!(files_with(path, &key).is_empty());
    for row in &before {
        let text = row.rsplit(['"', ':']).nth(1).expect("a text");
        assert!(files_with(path, text).is_empty(), "{row}");
    }
    kept.check(path, &[]);
    let audit = sql(path, "SELECT details FROM audit WHERE kind = 'master_key.rotated'");
    assert_eq!(audit.as_array().map(Vec::len), Some(1), "{audit}");

    // A key that is not the one is said to be, and nothing is begun with it.
    let right = std::fs::read(path.join("master.key")).expect("a key");
    std::fs::write(path.join("master.key"), &key).expect("the old one");
    let words = ["serve", "--listen", "127.0.0.1:0", "--data"];
    for refused in
        [Command::new(program()).args(words).arg(path).output().expect("the program"), rotate(path, &[])]
    {
        assert_eq!(refused.status.code(), Some(125));
        assert!(said(&refused).contains("put the right one there"), "{}", said(&refused));
    }
    std::fs::write(path.join("master.key"), right).expect("the right one");
    kept.check(path, &[]);
}

#[test]
fn a_master_key_may_be_in_the_environment() {
    let folder = Folder::new("environment");
    let path = folder.path();
    let kept = Kept::make(path);
    let (first, second) = (nonce() + &nonce(), nonce() + &nonce());
    let refused = rotate(path, &[("COFFERDAM_NEW_MASTER_KEY", "short")]);
    assert!(said(&refused).contains("64 hexadecimal digits"), "{}", said(&refused));
    // Out of the file; a second time it is done already.
    for _ in 0..2 {
        let done = rotate(path, &[("COFFERDAM_NEW_MASTER_KEY", &first)]);
        assert!(done.status.success(), "{}", said(&done));
        assert_eq!(names(path), [""; 0]);
    }
    kept.check(path, &[("COFFERDAM_MASTER_KEY", &first)]);
    let refused = rotate(path, &[("COFFERDAM_MASTER_KEY", &first)]);
    assert!(said(&refused).contains("COFFERDAM_NEW_MASTER_KEY"), "{}", said(&refused));
    let both = [("COFFERDAM_MASTER_KEY", first.as_str()), ("COFFERDAM_NEW_MASTER_KEY", second.as_str())];
    for _ in 0..2 {
        let done = rotate(path, &both);
        assert!(done.status.success(), "{}", said(&done));
    }
    kept.check(path, &[("COFFERDAM_MASTER_KEY", &second)]);
    assert!(files_with(path, &second).is_empty() && files_with(path, &first).is_empty());
}

/// Killed after each page, and at the end.
#[test]
fn a_rotation_that_is_killed_loses_nothing() {
    let folder = Folder::new("killed-rotation");
    let path = folder.path();
    let kept = Kept::make(path);
    let master = MasterKey::open_or_make(&path.join("master.key")).expect("the key");
    let tenant =
        sql(path, "SELECT id FROM tenants WHERE name = 'default'")[0][0].as_str().expect("an id").to_owned();
    let rows: Vec<_> = (0..FILLERS)
        .map(|number| {
            let about = format!("cofferdam secret 1\0{tenant}\0filler-{number}");
            let text = master.seal_secret("value", about.as_bytes()).expect("sealed");
            format!("('{tenant}', 'filler-{number}', '{text}', 'test', 1, 1)")
        })
        .collect();
    sql(path, &format!("INSERT INTO secrets VALUES {}; SELECT 1", rows.join(", ")));
    let mut seen = BTreeSet::new();
    for pages in 0..14 {
        let mut command = Command::new(program());
        command
            .args(["master-key", "rotate", "--data"])
            .arg(path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let stderr = BufReader::new(child.stderr.take().expect("stderr"));
        let lines = stderr.lines().take(pages).count();
        let _ = child.kill();
        child.wait().expect("its end");
        seen.insert((lines, names(path).join(" ")));
        if pages % 3 == 2 {
            kept.check(path, &[]);
            assert_eq!(names(path), ["master.key"]);
        }
    }
    assert!(
        seen.iter().any(|(_, names)| names.contains("next")),
        "it was never killed in the middle: {seen:?}"
    );
    let done = rotate(path, &[]);
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(names(path), ["master.key"]);
    kept.check(path, &[]);
}
