//! What the interface promises.

use crate::client::Client;
use crate::server::{Folder, Server};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;

fn server() -> (Folder, Server) {
    let folder = Folder::new("api");
    let server = Server::start(folder.path(), &[]);
    (folder, server)
}

const PRINT: &str = r#"{"language":"python","code":"print(1)"}"#;

#[test]
fn the_smallest_exchange_is_as_documented() {
    let (folder, server) = server();
    let key = std::fs::metadata(folder.path().join("admin.key")).expect("the key's file");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    let client = Client::of(&server);
    assert_eq!(client.get("/readyz").status, 200);
    let answer = client.post("/v1/jobs?wait_ms=30000", PRINT);
    assert_eq!(answer.status, 200, "{answer:?}");
    let job = answer.json();
    assert!(job["id"].as_str().is_some_and(|id| id.starts_with("job-")));
    assert_eq!(job["status"]["state"], "succeeded");
    assert!(job["status"]["last_transition_at"].as_str().is_some_and(|time| time.ends_with('Z')));
    let result = &job["result"];
    assert_eq!(result["exit_code"], 0);
    assert_eq!(result["outcome"], json!({"kind": "exited", "code": 0}));
    assert_eq!((result["stdout"].as_str(), result["stderr"].as_str()), (Some("1\n"), Some("")));
    let bearer = client.with_key("none").send(
        "POST",
        "/v1/jobs?wait_ms=30000",
        &format!("Authorization: Bearer {}\r\n", server.key),
        PRINT,
    );
    // X-API-Key comes first, and this one is wrong.
    assert_eq!(bearer.expect("an answer").status, 401);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn without_a_wait_a_job_is_accepted_and_then_there() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let answer = client.post("/v1/jobs", r#"{"command":["sh","-c","echo out; echo err >&2; exit 3"]}"#);
    assert_eq!(answer.status, 202, "{answer:?}");
    let accepted = answer.json();
    assert!(accepted.get("result").is_none(), "{accepted}");
    let id = accepted["id"].as_str().expect("an id").to_owned();
    let events = follow(&client, &id, None);
    let names: Vec<_> = events.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"init"), Some(&"complete")), "{events:?}");
    assert!(
        names.contains(&"stdout") && names.contains(&"stderr") && names.contains(&"result"),
        "{events:?}"
    );
    let job = client.get(&format!("/v1/jobs/{id}")).json();
    assert_eq!(
        (job["status"]["state"].as_str(), job["result"]["exit_code"].as_i64()),
        (Some("failed"), Some(3))
    );
    assert_eq!(job["result"]["stderr"], "err\n");
}

/// The events of a job after one, each with its id, its name and its data.
pub(crate) fn follow(client: &Client, id: &str, after: Option<&str>) -> Vec<(String, String, String)> {
    let header = after.map_or_else(String::new, |after| format!("Last-Event-ID: {after}\r\n"));
    let stream = client.open("GET", &format!("/v1/jobs/{id}/output"), &header, "").expect("a stream");
    let (mut events, mut event) = (Vec::new(), [const { String::new() }; 3]);
    for line in BufReader::new(stream).lines() {
        let line = line.expect("a line");
        for (at, field) in ["id: ", "event: ", "data: "].into_iter().enumerate() {
            if let Some(value) = line.strip_prefix(field) {
                event[at] = value.to_owned();
            }
        }
        if line.is_empty() && !event[1].is_empty() {
            let [id, name, data] = std::mem::take(&mut event);
            events.push((id, name, data));
        }
    }
    events
}

/// Whoever was cut off goes on where they were, and has everything once.
#[test]
fn output_is_resumed_without_loss_or_repetition() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let code = "import time\nfor i in range(40): print(i, flush=True); time.sleep(.02)";
    let body = json!({"language": "python", "code": code}).to_string();
    let id = client.post("/v1/jobs", &body).json()["id"].as_str().expect("an id").to_owned();
    let whole = follow(&client, &id, None);
    let text = |events: &[(String, String, String)]| -> String {
        let of = |(_, name, data): &(String, String, String)| {
            let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
            (name == "stdout").then(|| data["text"].as_str().unwrap_or_default().to_owned())
        };
        events.iter().filter_map(of).collect()
    };
    let expected: String = (0..40).map(|i| format!("{i}\n")).collect();
    assert_eq!(text(&whole), expected);
    let outputs = whole.iter().filter(|(_, name, _)| name == "stdout").count();
    assert!(outputs > 2, "it came in one piece: {whole:?}");
    for cut in 1..=outputs {
        let rest = follow(&client, &id, Some(&whole[cut].0));
        assert_eq!(text(&whole[..=cut]) + &text(&rest), expected, "cut after {cut}");
        assert_eq!(rest.last(), whole.last());
    }
}

#[test]
fn bad_requests_are_refused_with_the_field_and_nothing_is_kept() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    for (body, status, code, field) in [
        ("{", 400, "malformed", None),
        ("[]", 422, "invalid", Some(".")),
        (r#"{"language":"python","code":1}"#, 422, "invalid", Some("code")),
        (r#"{"language":"python","code":"1","colour":"red"}"#, 422, "invalid", Some("colour")),
        (r#"{"language":"cobol","code":"1"}"#, 422, "invalid", Some("language")),
        (r#"{"command":["ls"],"limits":{"memory_bytes":1}}"#, 422, "invalid", Some("limits.memory_bytes")),
        (r#"{"command":["ls"],"limits":{"memory_bytes":-1}}"#, 422, "invalid", Some("limits.memory_bytes")),
        (r#"{"command":["ls"],"files":[{"path":"../x"}]}"#, 422, "invalid", Some("files[0].path")),
        (r#"{"command":["ls"],"limits":[]}"#, 422, "invalid", Some("limits")),
        (r#"{"command":["ls"],"files":[["a.txt","x"]]}"#, 422, "invalid", Some("files[0]")),
        (r#"{"command":["ls"],"webhook":["https://example.org/"]}"#, 422, "invalid", Some("webhook")),
        (r#"{"command":["ls"],"env":{"A=B":"c"}}"#, 422, "invalid", Some("env")),
        (r#"{"command":["ls"],"backend":"docker"}"#, 422, "unsupported", Some("backend")),
        (r#"{"command":["ls"],"retries":11}"#, 422, "invalid", Some("retries.max")),
        (r#"{"command":["ls"],"queue_timeout_ms":0}"#, 422, "invalid", Some("queue_timeout_ms")),
        (r#"{"command":["ls"],"worker_labels":{"zone":"x"}}"#, 422, "invalid", Some("worker_labels")),
    ] {
        let answer = client.post("/v1/jobs?wait_ms=1000", body);
        let error = &answer.json()["error"];
        assert_eq!((answer.status, error["code"].as_str()), (status, Some(code)), "{body}: {error}");
        assert_eq!(error["details"]["field"].as_str(), field, "{body}: {error}");
        assert!(error["remediation"].as_str().is_some_and(|fix| !fix.is_empty()), "{body}");
    }
    for (path, status) in [("/v1/jobs?wait_ms=-1", 422), ("/v1/jobs?wait=1", 422), ("/v1/job", 404)] {
        assert_eq!(client.post(path, PRINT).status, status, "{path}");
    }
    let large = format!(r#"{{"command":["ls"],"stdin":"{}"}}"#, "x".repeat(17 << 20));
    assert!(client.send("POST", "/v1/jobs", "", &large).map_or(true, |answer| answer.status == 413));
    assert_eq!(client.get("/v1/jobs").json()["jobs"], json!([]));
}

#[test]
fn keys_are_scoped_and_can_be_taken_back() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let made = client.post("/v1/keys", r#"{"name":"reader","scopes":["jobs:read"]}"#);
    assert_eq!(made.status, 201, "{made:?}");
    let (id, secret) = (made.json()["id"].clone(), made.json()["secret"].clone());
    let reader = client.with_key(secret.as_str().expect("a secret"));
    assert_eq!(reader.get("/v1/jobs").status, 200);
    let denied = reader.post("/v1/jobs", PRINT);
    assert_eq!((denied.status, denied.json()["error"]["details"]["rule"].as_str()), (403, Some("scope")));
    assert!(
        !client.get("/v1/keys").body.contains(secret.as_str().expect("a secret")),
        "a secret is shown once"
    );
    let path = format!("/v1/keys/{}", id.as_str().expect("an id"));
    assert_eq!(client.send("DELETE", &path, "", "").expect("an answer").status, 204);
    assert_eq!(reader.get("/v1/jobs").status, 401);
    assert_eq!(client.with_key("cof_wrong").get("/v1/jobs").status, 401);
    let audit = client.get("/v1/audit").body;
    for kind in ["key.created", "denied", "key.revoked"] {
        assert!(audit.contains(kind), "{kind}: {audit}");
    }
    assert!(!audit.contains(secret.as_str().expect("a secret")));
}

#[test]
fn the_same_request_is_done_once() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let send = |body: &str| {
        client.send("POST", "/v1/jobs?wait_ms=20000", "Idempotency-Key: one\r\n", body).expect("an answer")
    };
    let (first, again) = (send(PRINT), send(PRINT));
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!((again.status, again.json()["result"]["stdout"].as_str()), (200, Some("1\n")));
    let other = send(r#"{"language":"python","code":"print(2)"}"#);
    assert_eq!((other.status, other.json()["error"]["code"].as_str()), (409, Some("idempotency_conflict")));
    assert_eq!(client.get("/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_job_is_cancelled_and_a_finished_one_deleted() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let id = client.post("/v1/jobs", r#"{"command":["sleep","60"]}"#).json()["id"].clone();
    let path = format!("/v1/jobs/{}", id.as_str().expect("an id"));
    let early = client.send("DELETE", &path, "", "").expect("an answer");
    assert_eq!((early.status, early.json()["error"]["code"].as_str()), (409, Some("wrong_state")));
    assert_eq!(client.post(&format!("{path}/cancel"), "").status, 202);
    let events = follow(&client, id.as_str().expect("an id"), None);
    assert_eq!(events.last().map(|(_, name, _)| name.as_str()), Some("complete"));
    let job = client.get(&path).json();
    assert_eq!(
        (job["status"]["state"].as_str(), job["result"]["exit_code"].as_i64()),
        (Some("cancelled"), None)
    );
    assert_eq!(client.send("DELETE", &path, "", "").expect("an answer").status, 204);
    assert_eq!(client.get(&path).status, 404);
}

/// What is queued when it stops runs when it starts again; what runs may end.
#[test]
fn a_stop_lets_what_runs_end_and_keeps_what_waits() {
    let folder = Folder::new("stop");
    let server = Server::start(folder.path(), &["--slots", "1"]);
    let client = Client::of(&server);
    let run = client.post("/v1/jobs", r#"{"command":"sleep 1; echo ended"}"#).json()["id"].clone();
    let wait = client.post("/v1/jobs", r#"{"command":"echo later"}"#).json();
    assert_eq!(wait["status"]["state"], "queued");
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(folder.path(), &["--slots", "1"]);
    let client = Client::of(&server);
    let job =
        |id: &serde_json::Value| client.get(&format!("/v1/jobs/{}", id.as_str().expect("an id"))).json();
    assert_eq!(job(&run)["result"]["stdout"], "ended\n");
    follow(&client, wait["id"].as_str().expect("an id"), None);
    assert_eq!(job(&wait["id"])["result"]["stdout"], "later\n");
}
