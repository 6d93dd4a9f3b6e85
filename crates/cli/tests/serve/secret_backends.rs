//! Secrets on images and behind other walls: files of a job or a session, and nowhere else.

use crate::backends::{Daemon, store};
use crate::client::Client;
use crate::docker_sandbox::wait_for_none;
use crate::machine::wait_until;
use crate::pausing::{pause, resume, stdout};
use crate::secrets::nonce;
use crate::server::{Folder, Server};
use crate::session_backends::{request, warm};
use crate::sessions::{create, delete, shell};
use crate::snapshots::{fork, snapshot};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn put(client: &Client, name: &str) -> String {
    let value = nonce();
    let body = json!({"value": value}).to_string();
    let put = client.send("PUT", &format!("/v1/secrets/{name}"), "", &body).expect("an answer");
    assert!(put.status < 300, "{put:?}");
    value
}

fn sum(value: &str) -> String {
    let sum = Command::new("sh").args(["-c", &format!("printf %s {value} | sha256sum | cut -c-64")]).output();
    String::from_utf8(sum.expect("a hash").stdout).expect("text").trim().to_owned()
}

/// The plain files below a folder that have a word in them: a daemon has roots with all their links, and pipes.
fn files_with(folder: &Path, word: &str) -> String {
    let found = Command::new("grep").args(["-rlF", "-D", "skip", word]).arg(folder).output().expect("grep");
    String::from_utf8_lossy(&found.stdout).into_owned()
}

/// What tells nothing of a secret, since output is kept.
const LOOK: &str = "cd /run/secrets && \
    python3 -c 'import hashlib, sys; [print(hashlib.sha256(open(path, \"rb\").read()).hexdigest()) for path in sys.argv[1:]]' \
    token deep/other && stat -c '%a %u' token . && stat -f -c %T .";

fn with_secrets(mut request: Value) -> Value {
    request["secrets"] = json!([{"name": "token"}, {"name": "token", "path": "deep/other"}]);
    request
}

/// Of a job and of a session that are asked for like this.
pub(crate) fn check_secrets(client: &Client, wanted: &Value) {
    let value = put(client, "token");
    let sum = sum(&value);
    let expected = format!("{sum}\n{sum}\n400 1000\n700 1000\ntmpfs\n");
    check_job(client, wanted, &value, &expected);
    let id = create(client, &with_secrets(wanted.clone()).to_string());
    let read = |id: &str| stdout(&shell(client, id, LOOK)).to_owned();
    assert_eq!(read(&id), expected, "{wanted}");
    let hidden = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/mounts 2>/dev/null | tr '\\0' '\\n'";
    let hidden = shell(client, &id, hidden).to_string();
    assert!(hidden.contains("CYNODE_TASK_ID") && !hidden.contains(&value), "{hidden}");
    // However much is written there, it is not much.
    let full = "head -c 100M /dev/zero > /run/secrets/fill; rm -f /run/secrets/fill; echo on";
    assert_eq!(stdout(&shell(client, &id, full)), "on\n");
    // It is not among what is kept, and it comes back.
    let name = format!("without-{}", nonce());
    snapshot(client, &id, &name);
    let mut plain = wanted.clone();
    plain["snapshot"] = json!(name);
    let plain = create(client, &plain.to_string());
    assert_eq!(stdout(&shell(client, &plain, "ls -A /run/secrets; echo none")), "none\n");
    pause(client, &id, "archive");
    resume(client, &id);
    assert_eq!(read(&id), expected, "{wanted}");
    let child = fork(client, &id, 1).remove(0);
    assert_eq!(read(&child), expected, "{wanted}");
    for id in [id, plain, child] {
        assert_eq!(delete(client, &format!("/v1/sessions/{id}")).status, 204);
    }
    let audit = client.get("/v1/audit?limit=500").body;
    assert!(audit.contains("secrets_attached") && !audit.contains(&value), "{audit}");
    assert_eq!(delete(client, "/v1/secrets/token").status, 204);
}

fn check_job(client: &Client, wanted: &Value, value: &str, expected: &str) {
    let mut job = json!({"backend": wanted["backend"], "image": wanted["image"], "command": LOOK});
    let run = |job: &Value| client.post("/v1/jobs?wait_ms=60000", &job.to_string()).json();
    let none = run(
        &json!({"backend": job["backend"], "image": job["image"], "command": "ls -A /run/secrets; echo none"}),
    );
    assert_eq!(none["result"]["stdout"], "none\n", "{none}");
    let ran = run(&with_secrets(job.clone()));
    assert_eq!(ran["result"]["stdout"], expected, "{ran}");
    let receipt = client.get(&format!("/v1/jobs/{}/receipt", ran["id"].as_str().expect("an id")));
    assert!(receipt.status == 200 && !receipt.body.contains(value), "{receipt:?}");
    job["command"] = json!("env; cat /proc/*/environ");
    let env = run(&with_secrets(job)).to_string();
    assert!(env.contains("CYNODE_JOB_ID") && !env.contains(value), "{env}");
}

/// Whatever a daemon keeps and says of a container that has one, while it has it.
#[test]
fn a_daemon_knows_no_secret_of_its_containers() {
    let folder = Folder::new("secret-docker");
    let images = store(folder.path());
    let _daemon = Daemon::start(folder.path());
    let socket = format!("backends.docker_socket={}", folder.path().join("socket").display());
    let log = folder.path().join("log");
    let options =
        ["--set", "backends.images=true", "--set", "backends.enabled=native,docker", "--set", &socket];
    let server = Server::start_logging_in(
        &folder.path().join("data"),
        &options,
        &[("COFFERDAM_IMAGES", &images)],
        &log,
    );
    let client = Client::of(&server);
    warm(&client);
    let value = put(&client, "token");
    let id = create(&client, &with_secrets(request("docker")).to_string());
    assert!(stdout(&shell(&client, &id, LOOK)).starts_with(&sum(&value)));
    let docker = |words: &[&str]| {
        let host = format!("unix://{}", folder.path().join("socket").display());
        let output = Command::new("docker").args(["-H", &host]).args(words).output().expect("docker");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let sandbox = client.get(&format!("/v1/sessions/{id}")).json()["sandbox_id"].clone();
    let container = format!("cofferdam-{}", sandbox.as_str().unwrap_or_else(|| panic!("no sandbox of {id}")));
    let inspected = docker(&["inspect", &container]);
    assert!(inspected.contains("/run/secrets") && !inspected.contains(&value), "{inspected}");
    // The container can be copied, committed and exported by whoever has the daemon; memory is in none of that.
    docker(&["commit", &container, "copy:1"]);
    docker(&["export", "-o", &folder.path().join("export.tar").to_string_lossy(), &container]);
    docker(&["save", "-o", &folder.path().join("save.tar").to_string_lossy(), "copy:1"]);
    assert_eq!(files_with(folder.path(), &value), "");
    assert_eq!(delete(&client, &format!("/v1/sessions/{id}")).status, 204);
    wait_until("the container is gone", || {
        docker(&["ps", "-aq", "--filter", &format!("name={container}")]).is_empty()
    });
    assert_eq!(files_with(folder.path(), &value), "");
    assert_eq!(server.stop(), Some(0));
    // What waited for others goes with the server.
    wait_for_none(folder.path());
}
