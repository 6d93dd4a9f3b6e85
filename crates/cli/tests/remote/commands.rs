//! The commands, as a shell sees them.

use crate::server::{Folder, Server};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

pub(crate) struct Shell {
    _folder: Folder,
    server: Server,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// Of a server with more options.
    pub(crate) fn with(options: &[&str]) -> Self {
        let folder = Folder::new("commands");
        let server = Server::start(folder.path(), options);
        Self { _folder: folder, server }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
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

#[test]
fn tenants_are_made_shown_changed_and_removed() {
    let shell = Shell::new();
    let id = shell.text(&["tenant", "create", "acme", "--max-running", "3", "--artifact-bytes", "5m"]);
    let id = id.trim();
    assert!(id.starts_with("ten-"), "{id}");
    let shown = shell.json(&["tenant", "show", "--json", id]);
    assert_eq!((&shown["name"], &shown["quotas"]["max_running"]), (&"acme".into(), &3.into()));
    assert_eq!(shown["quotas"]["artifact_bytes"], 5 << 20);
    let set = shell.json(&["tenant", "set", "--json", id, "--max-queued", "7"]);
    assert_eq!(set["quotas"]["max_queued"], 7);
    assert_ne!(set["quotas"]["max_running"], 3, "what is left out is as for all tenants");
    assert!(shell.text(&["tenant", "list"]).contains("acme"));
    assert_eq!(shell.json(&["tenant", "list", "--json"])["tenants"].as_array().map(Vec::len), Some(2));
    let shown = shell.text(&["tenant", "show", id]);
    for part in [id, "acme", "max running", "max queued", "requests", "artifacts"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    // A key of the tenant's own, which is no operator's.
    let key = shell.text(&["key", "create", "own", "--scope", "*", "--tenant", id]);
    let output = shell.command(&["tenant", "list"]).env("COFFERDAM_API_KEY", key.trim()).output();
    let (code, _, err) = said(&output.expect("it ends"));
    assert_eq!((code, err.contains("operator")), (Some(125), true), "{err}");
    let other =
        shell.json(&["tenant", "create", "other", "--json"])["id"].as_str().expect("an id").to_owned();
    let page = said(&shell.run(&["tenant", "list", "--limit", "1"]));
    assert!(page.2.contains("there are more: --cursor "), "{page:?}");
    assert_eq!(shell.json(&["tenant", "rm", "--json", &other])["deleted"], true);
    assert_eq!(shell.text(&["tenant", "rm", id]).trim(), id);
    assert_eq!(shell.run(&["tenant", "show", id]).status.code(), Some(125));
}

#[test]
fn what_a_job_left_is_listed_and_brought_here() {
    let shell = Shell::new();
    let command = "mkdir -p .artifacts/sub; printf one > .artifacts/a.txt; head -c 3000000 /dev/zero > .artifacts/sub/zeros";
    let job = shell.json(&["job", "run", "--json", "--", "sh", "-c", command]);
    let id = job["id"].as_str().expect("an id");
    let listed = shell.text(&["job", "artifacts", id]);
    assert!(
        listed.contains("a.txt") && listed.contains("sub/zeros") && listed.contains("3000000"),
        "{listed}"
    );
    let out = Folder::new("artifacts-out");
    let folder = out.path().join("results");
    let folder = folder.to_str().expect("text");
    let got = shell.json(&["job", "artifacts", id, "--json", "--out", folder]);
    assert_eq!(got["artifacts"].as_array().map(Vec::len), Some(2));
    assert_eq!(std::fs::read(out.path().join("results/a.txt")).expect("a file"), b"one");
    assert_eq!(std::fs::read(out.path().join("results/sub/zeros")).expect("a file"), vec![0; 3_000_000]);
    // A link at its place is replaced, and what it leads to is left alone.
    let precious = out.path().join("precious");
    std::fs::write(&precious, "precious").expect("a file");
    std::fs::remove_file(out.path().join("results/a.txt")).expect("a file");
    std::os::unix::fs::symlink(&precious, out.path().join("results/a.txt")).expect("a link");
    shell.text(&["job", "artifacts", id, "--out", folder]);
    assert_eq!(std::fs::read_to_string(&precious).expect("a file"), "precious");
    assert_eq!(std::fs::read(out.path().join("results/a.txt")).expect("a file"), b"one");
}

/// Larger than what a request may carry along.
#[test]
fn a_large_input_is_uploaded_and_gone_afterwards() {
    let shell = Shell::new();
    let folder = Folder::new("input");
    let file = folder.path().join("large.bin");
    std::fs::write(&file, vec![b'x'; 20 << 20]).expect("a file");
    let input = format!("{}:data/in.bin", file.display());
    let count = shell.text(&["job", "run", "--input", &input, "--", "wc", "-c", "data/in.bin"]);
    assert_eq!(count, format!("{} data/in.bin\n", 20 << 20));
    let url = format!("http://{}/v1/artifacts", shell.server.address);
    let header = format!("X-API-Key: {}", shell.server.key);
    let left = Command::new("curl").args(["-sf", "-H", &header, &url]).output().expect("curl");
    let left: Value = serde_json::from_slice(&left.stdout).expect("JSON");
    assert_eq!(left["artifacts"].as_array().map(Vec::len), Some(0), "{left}");
    let (code, _, err) = said(&shell.run(&["job", "run", "--input", "/no/such/file", "--", "true"]));
    assert_eq!((code, err.contains("/no/such/file")), (Some(125), true), "{err}");
}

#[test]
fn a_chain_from_the_service_is_proven_without_it() {
    let shell = Shell::new();
    shell.text(&["job", "run", "-c", "print(1)"]);
    let folder = Folder::new("chain");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (chain, head, keys) = (path("audit.jsonl"), path("head.json"), path("keys.json"));
    shell.text(&["audit", "export", "--out", &chain, "--head", &head]);
    let url = format!("http://{}/v1/signing-keys", shell.server.address);
    let got = Command::new("curl").args(["-sf", "-o", &keys, &url]).status().expect("curl");
    assert!(got.success());
    let verify =
        |chain: &str| said(&shell.run(&["audit", "verify", chain, "--head", &head, "--keys", &keys]));
    let (code, out, err) = verify(&chain);
    assert_eq!(code, Some(0), "{out}{err}");
    let text = std::fs::read_to_string(&chain).expect("a chain");
    let altered = path("altered.jsonl");
    std::fs::write(&altered, text.replace("job.finished", "job.Finished")).expect("a file");
    assert_eq!(verify(&altered).0, Some(1));
    let both = said(&shell.run(&["audit", "export", "--tenant", "default"]));
    assert_eq!((both.0, both.2.contains("--data")), (Some(125), true), "{both:?}");
}
