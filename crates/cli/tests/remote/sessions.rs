//! Sessions and secrets, as a shell sees them: what a script can take from stdout, and what people are told beside it.

use crate::commands::Shell;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// Room for every session of a test.
const ROOMY: [&str; 4] = ["--slots", "32", "--memory", "64g"];

/// What a command has printed, and how it ended.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    /// Its one line.
    fn line(&self) -> String {
        assert_eq!((self.code, self.out.lines().count()), (0, 1), "{} {}", self.out, self.err);
        self.out.trim_end().to_owned()
    }

    fn json(&self) -> Value {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        serde_json::from_str(&self.out).expect("JSON and nothing else")
    }

    /// Its rows, which fit a terminal, without the heading.
    fn rows(&self, heading: &str) -> Vec<String> {
        assert_eq!(self.code, 0, "{}", self.err);
        assert!(self.out.starts_with(heading), "{}", self.out);
        assert!(self.out.lines().all(|line| line.chars().count() <= 100), "{}", self.out);
        assert!(!self.out.contains('\x1b'), "colours are for terminals: {:?}", self.out);
        self.out.lines().skip(1).map(str::to_owned).collect()
    }

    /// One line on stderr that has all of this in it.
    fn refused(&self, parts: &[&str]) {
        assert_eq!((self.code, self.out.as_str(), self.err.lines().count()), (125, "", 1), "{}", self.err);
        assert!(parts.iter().all(|part| self.err.contains(part)), "{}", self.err);
    }
}

fn run(shell: &Shell, words: &[&str]) -> Said {
    feed(shell, words, "")
}

fn feed(shell: &Shell, words: &[&str], input: &str) -> Said {
    let mut command = shell.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    // One that is refused for its words does not read.
    let _ = child.stdin.take().expect("its input").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("its end");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Said { code: output.status.code().expect("a code"), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_session_is_made_used_put_off_and_ended() {
    let shell = Shell::with(&ROOMY);
    let run = |words: &[&str]| run(&shell, words);
    let words = ["session", "create", "--ttl-seconds", "600", "--memory", "512m", "--env", "LEVEL=2"];
    let id = run(&[&words[..], &["--metadata", "for=me", "--task-id", "task-9"]].concat()).line();
    let made = run(&["session", "show", &id, "--json"]).json();
    assert_eq!((&made["metadata"]["for"], &made["task_id"]), (&json!("me"), &json!("task-9")), "{made}");
    let level = ["session", "exec", &id, "-c", "import os; print(os.environ['LEVEL'])"];
    assert_eq!(run(&level).out, "2\n");
    let shown = run(&["session", "show", &id]).line();
    assert!(shown.starts_with(&format!("{id} ready, until ")) && shown.ends_with(", 1 steps"), "{shown}");
    let later = run(&["session", "extend", &id, "--ttl-seconds", "3600", "--json"]).json();
    assert!(later["expires_at"].as_str() > made["expires_at"].as_str(), "{later}");
    let rows = run(&["session", "list", "--state", "ready", "--task-id", "task-9"]).rows("ID");
    assert!(rows.len() == 1 && rows[0].starts_with(&id) && rows[0].contains("ready"), "{rows:?}");
    let second = run(&["session", "create", "--json"]).json()["id"].as_str().expect("an id").to_owned();
    let page = run(&["session", "list", "--limit", "1"]);
    assert_eq!(page.rows("ID").len(), 1);
    let cursor = page.err.trim_end().rsplit(' ').next().expect("a cursor").to_owned();
    let rest = run(&["session", "list", "--limit", "1", "--cursor", &cursor, "--json"]).json();
    assert_eq!(rest["sessions"][0]["id"], id.as_str(), "{rest}");
    assert_eq!(run(&["session", "rm", &id]).line(), id);
    assert_eq!(run(&["session", "rm", &second, "--json"]).json(), json!({"id": second, "deleted": true}));
    let ended = run(&["session", "list", "--state", "ended"]).rows("ID");
    assert_eq!(ended.len(), 2, "{ended:?}");
    run(&["session", "show", "ses-aaaaaaaaaaaaaaaa"]).refused(&["no such session", "not_found"]);
    run(&["session", "list", "--state", "asleep"]).refused(&["--state", "asleep", "ready"]);
    run(&["session", "create", "--env", "LEVEL"]).refused(&["--env", "LEVEL", "NAME=VALUE"]);
    run(&["session", "create", "--memory", "much"]).refused(&["--memory", "much"]);
}

#[test]
fn a_session_is_paused_forked_and_kept() {
    let shell = Shell::with(&ROOMY);
    let run = |words: &[&str]| run(&shell, words);
    let id = run(&["session", "create"]).line();
    let put = |id: &str, text: &str| run(&["session", "exec", id, "--", "sh", "-c", text]);
    assert_eq!(put(&id, "echo one > file").code, 0);
    let paused = run(&["session", "pause", &id]);
    assert!(
        paused.line().contains(" paused") && paused.err.contains("kept: files, processes, interpreters"),
        "{}",
        paused.err
    );
    assert!(run(&["session", "resume", &id]).line().contains(" ready"));
    let children = run(&["session", "fork", &id, "--count", "2"]);
    assert!(children.err.contains("not kept: "), "{}", children.err);
    let children: Vec<_> = children.out.lines().map(str::to_owned).collect();
    assert_eq!(children.len(), 2);
    for child in &children {
        assert_eq!(put(child, "cat file").out, "one\n");
    }
    let forks = run(&["session", "fork", &id, "--json"]).json();
    assert_eq!(forks["sessions"].as_array().map(Vec::len), Some(1), "{forks}");
    let snapshot = run(&["session", "snapshot", &id, "with-file"]).line();
    assert!(snapshot.starts_with("snp-"), "{snapshot}");
    assert_eq!(run(&["session", "snapshot", &id, "again", "--json"]).json()["name"], "again");
    let rows = run(&["snapshot", "list"]).rows("ID");
    assert!(rows.len() == 2 && rows.iter().any(|row| row.contains("with-file")), "{rows:?}");
    assert_eq!(run(&["snapshot", "list", "--json"]).json()["snapshots"].as_array().map(Vec::len), Some(2));
    let made = run(&["session", "create", "--snapshot", "with-file"]).line();
    assert_eq!(put(&made, "cat file").out, "one\n");
    assert_eq!(run(&["snapshot", "rm", "with-file"]).line(), "with-file");
    assert_eq!(run(&["snapshot", "rm", "again", "--json"]).json()["deleted"], true);
    let archived = run(&["session", "pause", &id, "--mode", "archive"]);
    assert!(archived.line().contains(" paused") && archived.err.contains("not kept: "), "{}", archived.err);
    assert_eq!(run(&["session", "resume", &id, "--json"]).json()["status"]["state"], "ready");
    assert_eq!(put(&id, "cat file").out, "one\n");
    run(&["session", "pause", &id, "--mode", "nap"]).refused(&["--mode", "nap", "freeze"]);
    run(&["snapshot", "rm", "with-file"]).refused(&["no such snapshot", "not_found"]);
}

#[test]
fn a_secret_is_set_from_stdin_and_never_shown() {
    let shell = Shell::new();
    let run = |words: &[&str]| run(&shell, words);
    let value = "not to be seen";
    assert_eq!(feed(&shell, &["secret", "set", "token"], value).line(), "token");
    assert_eq!(feed(&shell, &["secret", "set", "other", "--json"], "x").json()["name"], "other");
    let list = run(&["secret", "list"]);
    assert_eq!(list.rows("NAME").len(), 2);
    let told = run(&["secret", "list", "--json"]);
    assert_eq!(told.json()["secrets"].as_array().map(Vec::len), Some(2));
    assert!(!list.out.contains(value) && !told.out.contains(value));
    let id = run(&["session", "create", "--secret", "token", "--secret", "other:named"]).line();
    let read = ["session", "exec", &id, "--", "sh", "-c", "cat /run/secrets/token /run/secrets/named"];
    assert_eq!(run(&read).out, format!("{value}x"));
    assert_eq!(run(&["secret", "rm", "token"]).line(), "token");
    assert_eq!(run(&["secret", "rm", "other", "--json"]).json()["deleted"], true);
    run(&["secret", "rm", "token"]).refused(&["no such secret", "not_found"]);
    feed(&shell, &["secret", "set", "token"], &"x".repeat(70_000)).refused(&["value"]);
}
