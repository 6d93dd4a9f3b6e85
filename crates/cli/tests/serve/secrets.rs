//! Secrets: a session has them as files, and nobody else has them anywhere.

use crate::client::Client;
use crate::machine::wait_until;
use crate::pausing::{ROOMY, pause, post, resume, stdout};
use crate::server::{Folder, Server, program};
use crate::sessions::{create, delete, shell};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A word that nothing else has in it.
pub(crate) fn nonce() -> String {
    let mut bytes = [0; 16];
    let mut random = std::fs::File::open("/dev/urandom").expect("randomness");
    std::io::Read::read_exact(&mut random, &mut bytes).expect("randomness");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn files_with(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, word));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(word.len()).any(|window| window == word.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

fn cli(server: &Server, words: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    command.args(words).env("COFFERDAM_URL", format!("http://{}", server.address));
    command.env("COFFERDAM_API_KEY", &server.key).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    child.stdin.take().expect("stdin").write_all(input.as_bytes()).expect("the input");
    let output = child.wait_with_output().expect("its end");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// In one process, and with the worker in another.
#[test]
fn a_secret_is_a_file_in_a_job_and_nowhere_else() {
    let (folder, apart) = (Folder::new("job-secrets"), Folder::new("job-secrets-apart"));
    let logs = Folder::new("job-secrets-log");
    let server = Server::start_logging(folder.path(), &ROOMY, &logs.path().join("serve"));
    check_job_secrets(&server, folder.path(), logs.path());
    let control = Server::start_control_logging(apart.path(), &logs.path().join("control"));
    let token = apart.path().join("service.token");
    let log = logs.path().join("worker");
    let worker = Server::start_worker_logging(program(), &[&control], &token, &[], &log);
    let client = Client::of(&control);
    wait_until("the worker is registered", || client.get("/v1/workers").body.contains("ready"));
    check_job_secrets(&control, apart.path(), logs.path());
    assert_eq!((server.stop(), worker.stop(), control.stop()), (Some(0), Some(0), Some(0)));
}

fn check_job_secrets(server: &Server, data: &Path, logs: &Path) {
    let client = Client::of(server);
    let value = nonce();
    assert_eq!(cli(server, &["secret", "set", "token"], &value).0, Some(0));
    let hash =
        Command::new("sh").args(["-c", &format!("printf %s {value} | sha256sum | cut -c-64")]).output();
    let hash = String::from_utf8(hash.expect("a hash").stdout).expect("text").trim().to_owned();
    // What the job itself says is kept: so it says what tells nothing.
    let look = "cd /run/secrets && sha256sum token deep/other | cut -c-64 && stat -c %a token && \
                df --output=fstype . | tail -1 && cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | wc -l; \
                mkdir -p /workspace/.artifacts && echo kept > /workspace/.artifacts/file";
    let words =
        ["job", "run", "--json", "--secret", "token", "--secret", "token:deep/other", "--", "sh", "-c", look];
    let (code, ran) = cli(server, &words, "");
    assert_eq!(code, Some(0), "{ran}");
    let job: serde_json::Value = serde_json::from_str(&ran).expect("a job");
    let said = job["result"]["stdout"].as_str().expect("output");
    assert!(said.starts_with(&format!("{hash}\n{hash}\n400\ntmpfs\n")), "{job}");
    let env = r#"{"command":"env; cat /proc/*/environ","secrets":[{"name":"token"}]}"#;
    let env = client.post("/v1/jobs?wait_ms=30000", env).body;
    assert!(env.contains("CYNODE_JOB_ID") && !env.contains(&value), "{env}");
    // An interpreter that waited has it as well, before its program begins.
    let python = r#"{"language":"python","code":"import hashlib; print(hashlib.sha256(open('/run/secrets/token','rb').read()).hexdigest())","secrets":[{"name":"token"}]}"#;
    let python = client.post("/v1/jobs?wait_ms=30000", python).json();
    assert_eq!(python["result"]["stdout"], format!("{hash}\n"), "{python}");
    let none = client.post("/v1/jobs?wait_ms=30000", r#"{"command":"ls -A /run/secrets"}"#).json();
    assert_eq!(none["result"]["stdout"], "", "{none}");
    let receipt = client.get(&format!("/v1/jobs/{}/receipt", job["id"].as_str().expect("an id")));
    assert!(receipt.status == 200 && !receipt.body.contains(&value), "{receipt:?}");
    // Refused before anything is kept.
    let count = || client.get("/v1/jobs?limit=500").json()["jobs"].as_array().map(Vec::len);
    let before = count();
    let other = client.post("/v1/keys", r#"{"name":"k","scopes":["jobs:read","jobs:write"]}"#).json();
    let other = client.with_key(other["secret"].as_str().expect("a secret"));
    for (client, extra, status) in [
        (&client, json!({"secrets": [{"name": "nothing"}]}), 422),
        (&client, json!({"secrets": [{"name": "token", "path": "/workspace/token"}]}), 422),
        (&client, json!({"secrets": [{"name": "token"}, {"name": "token"}]}), 422),
        (&client, json!({"secrets": [{"name": "token"}], "limits": {"disk_bytes": 1 << 30}}), 422),
        (&other, json!({"secrets": [{"name": "token"}]}), 403),
    ] {
        let mut body = extra;
        body["command"] = json!("true");
        let refused = client.post("/v1/jobs", &body.to_string());
        assert_eq!(refused.status, status, "{body}: {refused:?}");
    }
    let missing = client.post("/v1/jobs", r#"{"command":"true","secrets":[{"name":"nothing"}]}"#);
    assert!(missing.body.contains("nothing") && missing.body.contains("no such secret"), "{missing:?}");
    assert_eq!(count(), before);
    let noted = client.get("/v1/audit?limit=500").body;
    assert!(noted.contains("secrets_attached") && !noted.contains(&value), "{noted}");
    for folder in [data, logs] {
        assert_eq!(files_with(folder, &value), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_secret_is_a_file_in_a_session_and_nowhere_else() {
    let folder = Folder::new("secrets");
    let log = Folder::new("secrets-log");
    let server = Server::start_logging(folder.path(), &ROOMY, &log.path().join("log"));
    let client = Client::of(&server);
    let (old, value) = (nonce(), nonce());
    for given in [&old, &value] {
        assert_eq!(cli(&server, &["secret", "set", "token"], given), (Some(0), "token\n".to_owned()));
    }
    let (code, listed) = cli(&server, &["secret", "list", "--json"], "");
    assert!(code == Some(0) && listed.contains("token") && !listed.contains(&value), "{listed}");
    let body = json!({"secrets": [{"name": "token"}, {"name": "token", "path": "deep/other"}], "on_drain": "archive"});
    let id = create(&client, &body.to_string());
    let read = |client: &Client, id: &str| {
        let seen =
            shell(client, id, "cd /run/secrets && sha256sum token deep/other | cut -c-64; stat -c %a token");
        stdout(&seen).to_owned()
    };
    let sum = Command::new("sh").args(["-c", &format!("printf %s {value} | sha256sum | cut -c-64")]).output();
    let sum = String::from_utf8(sum.expect("a hash").stdout).expect("text").trim().to_owned();
    let expected = format!("{sum}\n{sum}\n400\n");
    assert_eq!(read(&client, &id), expected);
    // In no environment and no command line, and not to be changed from inside.
    let hidden =
        shell(&client, &id, "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'");
    assert!(!hidden.to_string().contains(&value), "{hidden}");
    let kept = shell(
        &client,
        &id,
        "echo x > /run/secrets/new || echo no; df --output=fstype /run/secrets | tail -1",
    );
    assert_eq!(stdout(&kept), "no\ntmpfs\n", "{kept}");
    // It is not among what is kept, and it comes back.
    shell(&client, &id, "echo mine > file");
    let made = post(&client, &id, "snapshots", &json!({"name": "base"}));
    assert_eq!(made.status, 201, "{made:?}");
    let plain = create(&client, r#"{"snapshot":"base"}"#);
    assert_eq!(stdout(&shell(&client, &plain, "cat file; ls /run/secrets")), "mine\n");
    pause(&client, &id, "archive");
    resume(&client, &id);
    assert_eq!(read(&client, &id), expected);
    // A child has it where whoever asks gave it to the parent.
    let scopes = json!(["sessions:read", "sessions:write"]);
    let key = client.post("/v1/keys", &json!({"name": "k", "scopes": scopes}).to_string()).json();
    let other = client.with_key(key["secret"].as_str().expect("a secret"));
    let own = post(&client, &id, "fork", &json!({"count": 1})).json();
    assert_eq!(read(&client, own["sessions"][0]["id"].as_str().expect("an id")), expected);
    let anothers = post(&other, &id, "fork", &json!({"count": 1})).json();
    assert!(anothers["not_kept"].to_string().contains("secrets"), "{anothers}");
    let child = anothers["sessions"][0]["id"].as_str().expect("an id");
    assert_eq!(stdout(&shell(&other, child, "cat file; ls -A /run/secrets")), "mine\n");
    let denied = other.post("/v1/sessions", &json!({"secrets": [{"name": "token"}]}).to_string());
    assert_eq!(denied.status, 403, "{denied:?}");
    for (secrets, status) in [
        (json!([{"name": "nothing"}]), 422),
        (json!([{"name": "token", "path": "/workspace/token"}]), 422),
        (json!([{"name": "token", "path": "../token"}]), 422),
        (json!([{"name": "token"}, {"name": "token"}]), 422),
    ] {
        let refused = client.post("/v1/sessions", &json!({"secrets": secrets}).to_string());
        assert_eq!(refused.status, status, "{refused:?}");
    }
    let noted = client.get("/v1/audit?limit=500").body;
    assert!(noted.contains("secrets_attached") && noted.contains("secret.put"), "{noted}");
    assert_eq!(delete(&client, "/v1/secrets/token").status, 204);
    assert_eq!(client.get("/v1/secrets").json()["secrets"], json!([]));
    assert_eq!(server.stop(), Some(0));
    for word in [&old, &value] {
        assert_eq!(files_with(folder.path(), word), Vec::<PathBuf>::new());
        assert_eq!(files_with(log.path(), word), Vec::<PathBuf>::new());
    }
}
