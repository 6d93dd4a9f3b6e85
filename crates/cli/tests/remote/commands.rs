//! The commands, as a shell sees them.

use crate::server::{Folder, Server};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

struct Shell {
    _folder: Folder,
    server: Server,
}

impl Shell {
    fn new() -> Self {
        let folder = Folder::new("commands");
        let server = Server::start(folder.path(), &[]);
        Self { _folder: folder, server }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
        command.args(words).env("COFFERDAM_URL", format!("http://{}", self.server.address));
        command.env("COFFERDAM_API_KEY", &self.server.key).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program starts")
    }

    fn text(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.text(words)).expect("JSON")
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_job_ends_here_as_it_ended_there() {
    let shell = Shell::new();
    let job = |words: &[&str]| said(&shell.run(&[&["job", "run"], words].concat()));
    let both = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)";
    assert_eq!(job(&["-c", both]), (Some(3), "out\n".into(), "err\n".into()));
    let (code, _, err) = job(&["--timeout", "200ms", "--", "sleep", "20"]);
    assert_eq!(code, Some(124));
    assert!(err.contains("timed_out: it ran out of time"), "{err}");
    assert_eq!(job(&["--", "sh", "-c", "kill -11 $$"]).0, Some(139));
    let (code, _, err) = job(&["--memory", "64m", "-c", "x = 'x' * (1 << 30)"]);
    assert_eq!((code, err.contains("memory")), (Some(137), true), "{err}");
    let (code, out, err) = job(&["--", "/no/such/program"]);
    assert_eq!((code, out.as_str(), err.contains("errored")), (Some(125), "", true), "{err}");
    let (code, _, err) = job(&["--memory", "1", "--", "true"]);
    assert_eq!((code, err.contains("limits.memory_bytes")), (Some(125), true), "{err}");
}

#[test]
fn files_arguments_variables_and_input_get_there() {
    let shell = Shell::new();
    let folder = Folder::new("files");
    let script = folder.path().join("script.py");
    let code = "import os, sys\nprint(sys.argv[1:], os.environ['A'], open('data.bin', 'rb').read(), sys.stdin.read())\nprint(__file__)";
    std::fs::write(&script, code).expect("a script");
    std::fs::write(folder.path().join("data.bin"), b"\xff\x00").expect("a file");
    let data = format!("{}/data.bin", folder.path().display());
    let words =
        ["job", "run", "-i", "--env", "A=b", "--file", &data, script.to_str().expect("text"), "x", "-y"];
    let mut child =
        shell.command(&words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("its input").write_all(b"typed").expect("it reads");
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text, "['x', '-y'] b b'\\xff\\x00' typed\n/workspace/script.py\n", "{output:?}");
}

#[test]
fn jobs_are_listed_shown_cancelled_and_deleted() {
    let shell = Shell::new();
    let id =
        shell.text(&["job", "run", "--detach", "--metadata", "k=v", "--", "sleep", "60"]).trim().to_owned();
    let list = shell.text(&["job", "list"]);
    assert!(list.starts_with("ID") && list.contains(&id) && list.contains("running"), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
    assert!(!list.contains('\x1b'), "colours without a terminal: {list:?}");
    assert_eq!(shell.json(&["job", "list", "--json", "--state", "running"])["jobs"][0]["id"], id.as_str());
    assert_eq!(shell.json(&["job", "show", "--json", &id])["metadata"]["k"], "v");
    // A job that goes on is not waited for.
    assert_eq!(shell.text(&["job", "logs", &id]), "");
    assert_eq!(shell.json(&["job", "cancel", "--json", &id])["id"], id.as_str());
    shell.text(&["job", "logs", "-f", &id]);
    let page = shell.text(&["job", "show", &id]);
    assert!(page.contains("cancelled") && page.contains("k=v"), "{page}");
    assert_eq!(shell.text(&["job", "delete", &id]).trim(), id);
    let (code, out, err) = said(&shell.run(&["job", "show", &id]));
    assert_eq!((code, out.as_str()), (Some(125), ""));
    assert!(err.starts_with("cofferdam: there is no such job") && err.lines().count() == 1, "{err}");
}

/// What the service signs is what the command that checks it takes.
#[test]
fn a_receipt_is_fetched_and_stands_a_check() {
    let shell = Shell::new();
    let id =
        shell.json(&["job", "run", "--json", "-c", "print(1)"])["id"].as_str().expect("an id").to_owned();
    let folder = Folder::new("receipt");
    let file = folder.path().join("receipt.json");
    std::fs::write(&file, shell.text(&["job", "receipt", &id])).expect("a file");
    let verdict = shell.run(&["receipt", "verify", "--job", &id, file.to_str().expect("text")]);
    // Without keys that are trusted, it is whole and unproven.
    assert_eq!(verdict.status.code(), Some(2), "{verdict:?}");
    let other =
        shell.run(&["receipt", "verify", "--job", "job-aaaaaaaaaaaaaaaa", file.to_str().expect("text")]);
    assert_eq!(other.status.code(), Some(1), "{other:?}");
}

#[test]
fn a_signal_cancels_the_job_that_is_waited_for() {
    let shell = Shell::new();
    let words = ["job", "run", "--", "sh", "-c", "echo started; sleep 60"];
    let mut child = shell.command(&words).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut reader = std::io::BufReader::new(child.stdout.take().expect("its output"));
    std::io::BufRead::read_line(&mut reader, &mut line).expect("a line");
    assert_eq!(line, "started\n");
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(status.success());
    assert_eq!(child.wait().expect("its end").code(), Some(130));
    let jobs = shell.json(&["job", "list", "--json"]);
    assert_eq!(jobs["jobs"][0]["status"]["state"], "cancelled", "{jobs}");
}

#[test]
fn keys_are_made_used_listed_and_taken_back() {
    let shell = Shell::new();
    let folder = Folder::new("keys");
    let output = shell.run(&["key", "create", "ci", "--scope", "jobs:read"]);
    let (code, secret, note) = said(&output);
    assert_eq!((code, secret.starts_with("cof_"), note.contains("not shown again")), (Some(0), true, true));
    let file = folder.path().join("ci.key");
    std::fs::write(&file, &secret).expect("a file");
    let file = file.to_str().expect("text");
    assert!(shell.run(&["job", "list", "--key-file", file]).status.success());
    let (code, _, err) = said(&shell.run(&["job", "run", "--key-file", file, "--", "true"]));
    assert_eq!((code, err.contains("use a key with the scope jobs:write")), (Some(125), true), "{err}");
    let keys = shell.json(&["key", "list", "--json"]);
    let id = keys["keys"].as_array().and_then(|keys| keys.iter().find(|key| key["name"] == "ci"));
    let id = id.and_then(|key| key["id"].as_str()).expect("its id").to_owned();
    assert_eq!(shell.text(&["key", "revoke", &id]).trim(), id);
    assert!(shell.text(&["key", "list"]).lines().any(|line| line.contains(&id) && line.contains("revoked")));
    assert_eq!(shell.run(&["job", "list", "--key-file", file]).status.code(), Some(125));
}

#[test]
fn what_is_missing_is_named() {
    let run = |words: &[&str], url: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
        command.args(words).env_remove("COFFERDAM_API_KEY").env("COFFERDAM_URL", url);
        said(&command.output().expect("the program starts"))
    };
    let (code, out, err) = run(&["job", "list"], "http://127.0.0.1:1");
    assert_eq!((code, out.as_str()), (Some(125), ""));
    assert!(err.contains("COFFERDAM_API_KEY") && err.contains("--key-file"), "{err}");
    let began = std::time::Instant::now();
    let (code, _, err) = run(&["job", "list", "--key-file", "/dev/null"], "http://127.0.0.1:1");
    assert_eq!((code, err.contains("is the service running")), (Some(125), true), "{err}");
    assert!(began.elapsed() < Duration::from_secs(20), "it took {:?} to say so", began.elapsed());
}
