//! Requests that name themselves and do more than one write: once, however often they are sent.

use crate::client::{Answer, Client};
use crate::master_keys::sql;
use crate::pausing::{ROOMY, stdout};
use crate::secrets::nonce;
use crate::server::{Folder, Server};
use crate::sessions::{create, get, shell};
use serde_json::{Value, json};

fn named(client: &Client, method: &str, path: &str, key: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.send(method, path, &format!("Idempotency-Key: {key}\r\n"), &body).expect("an answer")
}

#[test]
fn what_is_done_to_sessions_and_secrets_is_done_once() {
    let folder = Folder::new("named");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let id = create(&client, "{}");
    shell(&client, &id, "echo mine > file");
    let path = |verb: &str| format!("/v1/sessions/{id}/{verb}");
    // Each a second time, which would be another child, a name that is taken, a session in the wrong state.
    let fork = |key: &str, count: u64| named(&client, "POST", &path("fork"), key, &json!({"count": count}));
    let ids = |answer: Answer| {
        assert_eq!(answer.status, 201, "{answer:?}");
        let list = answer.json();
        let ids = list["sessions"].as_array().expect("sessions").iter().map(|child| child["id"].clone());
        ids.collect::<Vec<_>>()
    };
    let first = ids(fork("f", 2));
    assert_eq!((first.len(), ids(fork("f", 2))), (2, first.clone()));
    assert_eq!(fork("f", 1).status, 409, "another body");
    assert_ne!(ids(fork("g", 2)), first);
    let sessions = client.get("/v1/sessions?limit=500").json()["sessions"].as_array().map(Vec::len);
    assert_eq!(sessions, Some(5));
    let child = first[0].as_str().expect("an id");
    assert_eq!(stdout(&shell(&client, child, "cat file")), "mine\n");
    let snapshot = || named(&client, "POST", &path("snapshots"), "s", &json!({"name": "base"}));
    let (one, two) = (snapshot(), snapshot());
    assert_eq!((one.status, two.status, one.json()), (201, 201, two.json()));
    for _ in 0..2 {
        let paused = named(&client, "POST", &path("pause"), "p", &json!({"mode": "archive"}));
        assert_eq!(
            (paused.status, paused.json()["status"]["state"].clone()),
            (200, json!("paused")),
            "{paused:?}"
        );
    }
    for _ in 0..2 {
        let resumed = named(&client, "POST", &path("resume"), "r", &Value::Null);
        assert_eq!(
            (resumed.status, resumed.json()["status"]["state"].clone()),
            (200, json!("ready")),
            "{resumed:?}"
        );
    }
    // The same pause again does nothing, however the session is by now.
    assert_eq!(named(&client, "POST", &path("pause"), "p", &json!({"mode": "archive"})).status, 200);
    assert_eq!(get(&client, &id)["status"]["state"], "ready");
    // One that failed has not used its key.
    let wrong = named(&client, "POST", &path("resume"), "w", &Value::Null);
    assert_eq!(wrong.status, 409, "{wrong:?}");
    assert_eq!(named(&client, "POST", &path("pause"), "q", &json!({"mode": "freeze"})).status, 200);
    assert_eq!(named(&client, "POST", &path("resume"), "w", &Value::Null).status, 200);
    let value = nonce();
    let put =
        |key: &str, value: &str| named(&client, "PUT", "/v1/secrets/token", key, &json!({"value": value}));
    let (one, two) = (put("k", &value), put("k", &value));
    assert_eq!((one.status, one.json()), (200, two.json()), "it is not changed again");
    assert_eq!(put("k", "another").status, 409);
    let hash = sql(folder.path(), "SELECT body_hash FROM idempotency WHERE route LIKE 'PUT%'");
    let body = json!({"value": value}).to_string();
    assert_ne!(hash[0][0], cofferdam_control::hash(body.as_bytes()), "nobody can try values on it");
    for _ in 0..2 {
        assert_eq!(named(&client, "DELETE", "/v1/secrets/token", "d", &Value::Null).status, 204);
    }
    assert_eq!(named(&client, "DELETE", "/v1/secrets/token", "e", &Value::Null).status, 404);
    // A death in the middle leaves a key that says so.
    assert_eq!(server.stop(), Some(0));
    sql(folder.path(), "UPDATE idempotency SET resource = '' WHERE route LIKE '%snapshots'; SELECT 1");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let cut = named(&client, "POST", &path("snapshots"), "s", &json!({"name": "base"}));
    assert!(cut.status == 409 && cut.body.contains("cut off"), "{cut:?}");
}
