//! Who may ask for what: every endpoint by every kind of caller, and the status that comes. The table is kept in
//! `roles.md`; a change of it is a change of who may do what, and is made with COFFERDAM_BLESS=1.

use crate::bed::Bed;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use cofferdam_control::{BackendSettings, Settings};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use tower::ServiceExt;

/// An endpoint, as the router has it.
type Endpoint = (String, String);

/// The endpoints, read off the document, which has every route of the router: one that is added is in the table, or
/// this fails.
fn endpoints() -> Vec<Endpoint> {
    let document: Value = serde_json::from_str(cofferdam_http::openapi_json()).unwrap();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in
            ["get", "post", "put", "patch", "delete"].into_iter().filter(|method| item.get(method).is_some())
        {
            found.push((method.to_uppercase(), path.clone()));
        }
    }
    found.sort_by(|a, b| (&a.1, &a.0).cmp(&(&b.1, &b.0)));
    assert!(found.len() > 10, "the search is broken: {found:?}");
    found
}

pub(crate) async fn ask(
    bed: &Bed,
    method: &str,
    path: &str,
    key: Option<&str>,
    body: Option<Value>,
) -> (StatusCode, Value) {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(key) = key {
        request = request.header("x-api-key", key);
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let answer =
        cofferdam_http::router(bed.control.clone()).oneshot(request.body(body).unwrap()).await.unwrap();
    let status = answer.status();
    let is_json = answer.headers().get("content-type").is_some_and(|kind| kind == "application/json");
    let bytes = match is_json {
        true => axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap(),
        false => axum::body::Bytes::new(),
    };
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

pub(crate) async fn make(bed: &Bed, path: &str, body: Value) -> Value {
    let (status, made) = ask(bed, "POST", path, Some(&bed.key), Some(body)).await;
    assert!(status.is_success(), "{path}: {made}");
    made
}

pub(crate) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name}: {value}")).to_owned()
}

fn with_images() -> Settings {
    Settings {
        backends: BackendSettings { images: true, ..BackendSettings::default() },
        ..Settings::default()
    }
}

/// The callers, each with its key.
async fn callers(bed: &Bed) -> Vec<(&'static str, Option<String>)> {
    let key = async |body: Value| Some(text(&make(bed, "/v1/keys", body).await, "secret"));
    let other = text(&make(bed, "/v1/tenants", json!({"name": "other"})).await, "id");
    let reader = ["jobs:read", "keys:read", "audit:read", "artifacts:read", "sessions:read", "images:read"];
    let writer =
        ["jobs:read", "jobs:write", "artifacts:read", "artifacts:write", "sessions:read", "sessions:write"];
    vec![
        ("no key", None),
        ("wrong key", Some(format!("cof_{}", "0".repeat(64)))),
        ("reader", key(json!({"name": "reader", "scopes": reader})).await),
        ("writer", key(json!({"name": "writer", "scopes": writer})).await),
        ("agent", key(json!({"name": "agent", "scopes": writer, "agent": "one"})).await),
        ("admin", key(json!({"name": "admin of the tenant", "scopes": ["*"]})).await),
        ("other tenant", key(json!({"name": "foreign", "scopes": ["*"], "tenant": other})).await),
        ("operator", Some(bed.key.clone())),
    ]
}

/// The path with the id of something of the first tenant's in it, made for this one request.
async fn place(bed: &Bed, path: &str, number: usize) -> String {
    let id = match path {
        _ if !path.contains("{id}") => String::new(),
        _ if path.starts_with("/v1/jobs/") => {
            text(&make(bed, "/v1/jobs?wait_ms=10000", json!({"command": ["true"]})).await, "id")
        }
        _ if path.starts_with("/v1/keys/") => {
            text(&make(bed, "/v1/keys", json!({"name": "x", "scopes": ["jobs:read"]})).await, "id")
        }
        _ if path.starts_with("/v1/tenants/") => {
            text(&make(bed, "/v1/tenants", json!({"name": format!("t{number}")})).await, "id")
        }
        _ if path.starts_with("/v1/sessions/") => text(&make(bed, "/v1/sessions", json!({})).await, "id"),
        _ if path.starts_with("/v1/snapshots/") => {
            let session = text(&make(bed, "/v1/sessions", json!({})).await, "id");
            let path = format!("/v1/sessions/{session}/snapshots");
            text(&make(bed, &path, json!({"name": format!("s{number}")})).await, "id")
        }
        _ if path.starts_with("/v1/artifacts/") => {
            text(&make(bed, "/v1/artifacts", json!({"name": "x", "size_bytes": 1})).await, "id")
        }
        _ if path.starts_with("/v1/images/") => {
            let image = json!({"name": format!("app:{number}"), "profiles": ["base-tools"]});
            text(&make(bed, "/v1/images", image).await, "id")
        }
        _ => panic!("{path} is new: say here what its id is of"),
    };
    // What belongs to a session is looked for in it, and not there: whoever may look gets a 404.
    let path = path
        .replace("{step_id}", "stp-aaaaaaaaaaaaaaaa")
        .replace("{number}", "1")
        .replace("{name}", "default");
    let names_one = ["/files", "/files/stat", "/archive"].iter().any(|end| path.ends_with(end));
    let path = match path {
        path if names_one => path + "?path=a",
        path if path.ends_with("/files/search") => path + "?name=a",
        path => path,
    };
    path.replace("{id}", &id).replace("{code}", "denied")
}

fn body(method: &str, path: &str, number: usize) -> Option<Value> {
    match (method, path) {
        ("GET" | "HEAD" | "DELETE", _) | ("POST", "/v1/jobs/{id}/cancel") => None,
        ("POST", "/v1/jobs") => Some(json!({"command": ["true"]})),
        ("POST", "/v1/keys") => Some(json!({"name": "new", "scopes": ["jobs:read"]})),
        ("POST", "/v1/artifacts") => Some(json!({"name": "new", "size_bytes": 1})),
        ("POST", "/v1/artifacts/{id}/finalize") => Some(json!({})),
        ("POST", "/v1/artifacts/{id}/url") => Some(json!({"ttl_seconds": 60})),
        // Not by a key: without a signed address nobody may.
        ("PUT", "/v1/artifacts/{id}/upload") => Some(json!(1)),
        ("POST", "/v1/sessions") => Some(json!({})),
        ("POST", "/v1/sessions/{id}/extend") => Some(json!({"ttl_seconds": 1})),
        ("POST", "/v1/sessions/{id}/steps") => Some(json!({"command": "true"})),
        ("POST", "/v1/sessions/{id}/steps/{step_id}/interrupt") => None,
        ("POST", "/v1/sessions/{id}/contexts/{name}/restart") => Some(json!({"language": "python"})),
        ("POST", "/v1/sessions/{id}/pause") => Some(json!({"mode": "archive"})),
        // It is not paused: whoever may resume it is told so.
        ("POST", "/v1/sessions/{id}/resume") => None,
        ("POST", "/v1/sessions/{id}/fork") => Some(json!({"count": 1})),
        ("POST", "/v1/sessions/{id}/snapshots") => Some(json!({"name": format!("n{number}")})),
        ("PUT", "/v1/secrets/{name}") => Some(json!({"value": "x"})),
        ("PUT", "/v1/sessions/{id}/files") => Some(json!(1)),
        ("PUT", "/v1/sessions/{id}/archive") => Some(json!(1)),
        // Not by a key, either.
        ("PUT", "/v1/sessions/{id}/files/signed") => Some(json!(1)),
        ("POST", "/v1/sessions/{id}/files/url") => Some(json!({"path": "a"})),
        ("POST", "/v1/sessions/{id}/artifacts") => Some(json!({"path": "a"})),
        ("POST", "/v1/sessions/{id}/files/mkdir") => Some(json!({"path": "a"})),
        ("POST", "/v1/sessions/{id}/files/move") => Some(json!({"from": "a", "to": "b"})),
        ("POST", "/v1/sessions/{id}/files/watch/tickets") => Some(json!({})),
        ("POST", "/v1/sessions/{id}/processes") => Some(json!({"command": "true"})),
        ("POST", "/v1/sessions/{id}/processes/{number}/input") => None,
        ("POST", "/v1/sessions/{id}/processes/{number}/tickets") => Some(json!({})),
        ("POST", "/v1/sessions/{id}/processes/{number}/signal") => Some(json!({"signal": 15})),
        ("POST", "/v1/sessions/{id}/processes/{number}/resize") => Some(json!({"rows": 1, "columns": 1})),
        ("POST", "/v1/images") => Some(json!({"name": format!("new:{number}"), "profiles": ["base-tools"]})),
        ("POST", "/v1/images/{id}/check") => None,
        ("POST", "/v1/tenants") => Some(json!({"name": format!("new{number}")})),
        ("PATCH", "/v1/tenants/{id}") => Some(json!({"quotas": {"max_running": 1}})),
        _ => panic!("{method} {path} is new: say here what it is sent"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_answers_every_caller_as_agreed() {
    let bed = Bed::new(with_images()).await;
    let callers = callers(&bed).await;
    let names: Vec<_> = callers.iter().map(|(name, _)| *name).collect();
    let mut table =
        format!("| endpoint | {} |\n| --- |{}\n", names.join(" | "), " --- |".repeat(names.len()));
    let mut number = 0;
    for (method, path) in endpoints() {
        let _ = write!(table, "| `{method} {path}` |");
        for (_, key) in &callers {
            number += 1;
            let place = place(&bed, &path, number).await;
            let (status, _) = ask(&bed, &method, &place, key.as_deref(), body(&method, &path, number)).await;
            let _ = write!(table, " {} |", status.as_u16());
        }
        table.push('\n');
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/roles.md");
    if std::env::var_os("COFFERDAM_BLESS").is_some() {
        std::fs::write(&golden, &table).unwrap();
    }
    let kept = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(table, kept, "if this is meant, make roles.md anew with COFFERDAM_BLESS=1");
}

/// What is another's and what is nobody's cannot be told apart.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_id_is_answered_as_one_that_is_not_there() {
    let bed = Bed::new(with_images()).await;
    let callers = callers(&bed).await;
    let foreign =
        callers.iter().find(|(name, _)| *name == "other tenant").and_then(|(_, key)| key.clone()).unwrap();
    let mut number = 0;
    for (method, path) in endpoints().into_iter().filter(|(_, path)| path.contains("{id}")) {
        number += 1;
        let there = place(&bed, &path, number).await;
        let prefix = path.split("/{id}").next().unwrap().rsplit('/').next().unwrap();
        let none = match prefix {
            "jobs" => "job-aaaaaaaaaaaaaaaa",
            "keys" => "key-aaaaaaaaaaaaaaaa",
            "artifacts" => "art-aaaaaaaaaaaaaaaa",
            "sessions" => "ses-aaaaaaaaaaaaaaaa",
            "snapshots" => "snp-aaaaaaaaaaaaaaaa",
            "images" => "img-aaaaaaaaaaaaaaaa",
            _ => "ten-aaaaaaaaaaaaaaaa",
        };
        let none = there.replace(&id_in(&there), none);
        let mut answers = Vec::new();
        for place in [&there, &none] {
            let (status, mut answer) =
                ask(&bed, &method, place, Some(&foreign), body(&method, &path, number)).await;
            answer["error"]["request_id"] = Value::Null;
            answers.push((status, answer));
        }
        assert_eq!(answers[0], answers[1], "{method} {path}");
        assert!(answers[0].0.is_client_error(), "{method} {path}: {answers:?}");
    }
}

/// The first id in a path.
fn id_in(path: &str) -> String {
    let is_id = |part: &&str| part.len() == 20 && part.as_bytes()[3] == b'-';
    path.split(['/', '?']).find(is_id).unwrap_or_else(|| panic!("no id in {path}")).to_owned()
}

/// An image for all tenants is an operator's: others see it, and neither make nor take it.
#[tokio::test(flavor = "multi_thread")]
async fn everybodys_images_are_the_operators() {
    let bed = Bed::new(with_images()).await;
    let callers = callers(&bed).await;
    let key =
        |wanted: &str| callers.iter().find(|(name, _)| *name == wanted).and_then(|(_, key)| key.clone());
    let (admin, other) = (key("admin").unwrap(), key("other tenant").unwrap());
    let image = json!({"name": "all:1", "profiles": ["base-tools"], "visibility": "global"});
    let (status, denied) = ask(&bed, "POST", "/v1/images", Some(&admin), Some(image.clone())).await;
    assert_eq!((status.as_u16(), &denied["error"]["details"]["rule"]), (403, &json!("operator")), "{denied}");
    let made = make(&bed, "/v1/images", image).await;
    let path = format!("/v1/images/{}", text(&made, "id"));
    for key in [&admin, &other] {
        let (status, seen) = ask(&bed, "GET", &path, Some(key), None).await;
        assert_eq!((status.as_u16(), &seen["visibility"]), (200, &json!("global")), "{seen}");
        assert_eq!(seen["created_by"], Value::Null, "{seen}");
        let (status, denied) = ask(&bed, "DELETE", &path, Some(key), None).await;
        assert_eq!(
            (status.as_u16(), &denied["error"]["details"]["rule"]),
            (403, &json!("operator")),
            "{denied}"
        );
    }
    let (status, _) = ask(&bed, "DELETE", &path, Some(&bed.key), None).await;
    assert_eq!(status.as_u16(), 204);
    let (status, _) = ask(&bed, "GET", &path, Some(&other), None).await;
    assert_eq!(status.as_u16(), 404);
}
