//! Secrets: a session has them as files, and nobody else has them anywhere.

use crate::client::Client;
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
