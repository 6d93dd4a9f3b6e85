//! Receipts of steps: taken from a running service, and checked without it by the real program.

use crate::client::Client;
use crate::pausing::ROOMY;
use crate::secrets::nonce;
use crate::server::{Folder, Server, program};
use crate::sessions::{begin, create, delete, step};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn verify(folder: &Path, words: &[&str]) -> (Option<i32>, Value) {
    let file = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    let mut command = Command::new(program());
    command.args(["receipt", "verify", "--json", &file("receipt"), "--keys", &file("keys")]);
    let output: Output = command.args(words).output().expect("the program");
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("a verdict"))
}

#[test]
fn a_step_has_a_receipt_that_is_checked_without_the_service() {
    let (folder, files) = (Folder::new("step-receipts"), Folder::new("step-receipts-files"));
    let files = files.path();
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let session = create(&client, r#"{"task_id":"task-7"}"#);
    let (code, hidden) = ("print(6 * 7)".to_owned(), nonce());
    let body = json!({"language": "python", "code": code, "env": {"TOKEN": hidden},
        "files": [{"path": "a", "content": "x"}]});
    let made = step(&client, &session, &body);
    let id = made["id"].as_str().expect("an id");
    assert_eq!(made["result"].get("terms"), None, "it is kept for the receipt alone: {made}");
    let path = format!("/v1/sessions/{session}/steps/{id}/receipt");
    let url = format!("http://{}", server.address);
    let printed = Command::new(program())
        .args(["session", "receipt", &session, "1"])
        .env("COFFERDAM_URL", url)
        .env("COFFERDAM_API_KEY", &server.key)
        .output()
        .expect("the program");
    assert!(printed.status.success(), "{printed:?}");
    let receipt = client.get(&path);
    assert_eq!(
        (receipt.status, receipt.json()),
        (200, serde_json::from_slice(&printed.stdout).expect("JSON"))
    );
    let write = |name: &str, text: &str| std::fs::write(files.join(name), text).expect("a file");
    write("receipt", &receipt.body);
    write("keys", &client.get("/v1/signing-keys").body);
    write("code", &code);
    write("other", "print(43)");
    write("stdout", "42\n");
    let named = |name: &str| files.join(name).to_str().expect("text").to_owned();
    let right = ["--code", &named("code"), "--stdout", &named("stdout"), "--job", &session, "--step", "1"];
    let (verdict, said) = verify(files, &right);
    assert_eq!((verdict, &said["verdict"]), (Some(0), &json!("proven")), "{said}");
    let content = &said["receipt"];
    assert_eq!((&content["step"]["id"], &content["task_id"]), (&json!(id), &json!("task-7")), "{said}");
    assert_eq!(content["inputs"]["env_names"], json!(["TOKEN"]), "{said}");
    assert_eq!(content["inputs"]["files"][0]["size_bytes"], 1, "{said}");
    assert!(content["policy"]["sha256"].is_string() && content["limits"]["memory_bytes"].is_u64(), "{said}");
    assert_eq!(content["outcome"], json!({"kind": "exited", "code": 0}), "{said}");
    assert!(!said.to_string().contains(&hidden));
    for wrong in [["--code", &named("other")], ["--step", "2"], ["--job", "ses-bbbbbbbbbbbbbbbb"]] {
        assert_eq!(verify(files, &wrong).0, Some(1), "{wrong:?}");
    }
    // Not before the end, not to others, and not once the session is gone.
    let running = begin(&client, &session, &json!({"command": ["sleep", "60"]}));
    let early = client.get(&format!("/v1/sessions/{session}/steps/{running}/receipt"));
    assert_eq!(
        (early.status, early.json()["error"]["code"].clone()),
        (409, json!("wrong_state")),
        "{early:?}"
    );
    let other = client.post("/v1/keys", r#"{"name":"k","scopes":["jobs:read"]}"#).json();
    let other = client.with_key(other["secret"].as_str().expect("a secret"));
    assert_eq!(other.get(&path).status, 403);
    assert!(client.get("/v1/audit?limit=500").body.contains("receipt.read"));
    assert_eq!(delete(&client, &format!("/v1/sessions/{session}")).status, 204);
    assert_eq!(client.get(&path).status, 404);
}
