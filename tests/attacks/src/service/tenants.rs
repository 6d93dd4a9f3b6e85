//! Tenants: acting for another, setting what is not one's own to set, and learning of what others have.

use super::client::Client;
use super::server::Ground;
use super::{Outcome, Stop, broke_if, needs};
use serde_json::{Value, json};

fn nothing() -> Value {
    json!({"command": ["true"]})
}

/// Another tenant, named wherever a careless server might look for it.
pub(crate) fn named(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let operator = target.operator();
    let (_, eve) = operator.tenant("eve", json!({}))?;
    let (victim, alice) = operator.tenant("alice", json!({}))?;
    let secret_job = alice.job(&nothing())?;
    let mut tried = 0;
    let all_headers =
        ["X-Tenant", "X-Tenant-Id", "Tenant", "X-Cofferdam-Tenant", "X-Org-Id", "X-Forwarded-User"];
    for name in all_headers {
        for value in [victim.as_str(), "alice", "*"] {
            let header = format!("{name}: {value}\r\n");
            let listed = eve.send("GET", "/v1/jobs", &header, b"")?;
            broke_if(listed.text().contains(&secret_job), || format!("{name} lists another's jobs"))?;
            let shown = eve.send("GET", &format!("/v1/jobs/{secret_job}"), &header, b"")?;
            broke_if(shown.status != 404, || format!("{name} shows another's job: {}", shown.status))?;
            eve.send("POST", "/v1/jobs", &header, nothing().to_string().as_bytes())?;
            tried += 3;
        }
    }
    for field in ["tenant", "tenant_id", "owner"] {
        let mut body = nothing();
        body[field] = json!(victim);
        broke_if(eve.post("/v1/jobs", &body)?.is_good(), || format!("a job with {field}"))?;
        broke_if(eve.get(&format!("/v1/jobs?{field}={victim}"))?.is_good(), || format!("a list by {field}"))?;
        tried += 2;
    }
    let key = eve.post("/v1/keys", &json!({"name": "x", "scopes": ["jobs:read"], "tenant": victim}))?;
    broke_if(key.status != 403, || format!("a key of another tenant's: {}", key.status))?;
    let keys = eve.get(&format!("/v1/keys?tenant={victim}"))?;
    broke_if(keys.status != 403, || format!("another tenant's keys: {}", keys.status))?;
    let jobs = alice.jobs()?;
    broke_if(jobs != [secret_job], || format!("the other tenant has {} jobs", jobs.len()))?;
    Ok(format!("{} tries act for one's own tenant or are refused", tried + 2))
}

/// Fields that a server keeps and nobody sends.
pub(crate) fn assigned(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let operator = target.operator();
    let (tenant, eve) = operator.tenant("eve", json!({}))?;
    needs(eve.post("/v1/jobs", &nothing())?.is_good(), || "a job without them is refused".to_owned())?;
    let key = json!({"name": "k", "scopes": ["jobs:read"]});
    let artifact = json!({"name": "a", "size_bytes": 1});
    let plans: [(&Client, &str, Value, &[&str]); 4] = [
        (
            &eve,
            "/v1/jobs",
            nothing(),
            &[
                "id",
                "status",
                "state",
                "result",
                "tenant_id",
                "created_at",
                "actor",
                "fence",
                "starts",
                "attempt",
                "deadline_at",
                "lease_until",
                "worker",
                "exit_code",
                "__proto__",
            ],
        ),
        (
            &eve,
            "/v1/keys",
            key,
            &["id", "secret", "hash", "created_at", "revoked_at", "tenant_id", "last_used_at"],
        ),
        (
            &eve,
            "/v1/artifacts",
            artifact,
            &["id", "state", "created_at", "expires_at", "job_id", "place", "key"],
        ),
        (&operator, "/v1/tenants", json!({"name": "mallory"}), &["id", "created_at", "scopes", "deleted_at"]),
    ];
    let mut tried = 0;
    for (client, path, body, fields) in plans {
        for field in fields {
            for value in [json!("x"), json!(1), json!({}), json!(null)] {
                let mut body = body.clone();
                body[*field] = value;
                let answer = client.post(path, &body)?;
                broke_if(answer.status != 422, || format!("{path} with {field}: {}", answer.status))?;
                tried += 1;
            }
        }
    }
    let patch = json!({"name": "other", "quotas": {}}).to_string();
    let renamed = operator.send("PATCH", &format!("/v1/tenants/{tenant}"), "", patch.as_bytes())?;
    broke_if(renamed.is_good(), || "a tenant is renamed".to_owned())?;
    let (_, small) = eve.key(&["keys:write"])?;
    for scopes in [&["*"][..], &["operator"], &["jobs:write"], &["keys:write", "operator"]] {
        let made = eve.with_key(&small).post("/v1/keys", &json!({"name": "up", "scopes": scopes}))?;
        broke_if(made.status != 403, || format!("a key that gives {scopes:?}: {}", made.status))?;
        tried += 1;
    }
    broke_if(eve.jobs()?.len() != 1, || "something was kept".to_owned())?;
    Ok(format!("{} fields and scopes refused", tried + 1))
}

/// The interface as it is documented, so that an endpoint that is added is attacked as well.
const DOCUMENT: &str = include_str!("../../../../docs/openapi.json");

fn without_ids(answer: &super::client::Answer, id: &str) -> String {
    let mut value = answer.json();
    value["error"]["request_id"] = Value::Null;
    value.to_string().replace(id, "ID")
}

/// A session with a file, a process and a step, of which the last is named as well.
fn session(owner: &Client) -> Result<(String, String), Stop> {
    let session = owner.post("/v1/sessions", &json!({"ttl_seconds": 600}))?.word("id")?;
    let path = format!("/v1/sessions/{session}");
    let write = json!({"command": ["sh", "-c", "echo mine > /workspace/mine"]});
    let step = owner.post(&format!("{path}/steps?wait_ms=30000"), &write)?.word("id")?;
    let process = owner.post(&format!("{path}/processes"), &json!({"command": ["sleep", "600"]}))?;
    needs(process.is_good(), || format!("a process: {}", process.status))?;
    Ok((session, step))
}

/// What makes a request to this endpoint one that its owner could send.
fn sense(method: &str, path: &str) -> (&'static str, &'static str) {
    let last = path.rsplit('/').next().unwrap_or_default();
    match (method, last) {
        (_, "output") => ("?follow=false", ""),
        (_, "files" | "stat") => ("?path=/workspace/mine", ""),
        (_, "archive") => ("?path=/workspace", ""),
        (_, "search") => ("?name=mine", ""),
        (_, "watch") => ("?follow=false", ""),
        ("POST", "url") if path.contains("/files/") => ("", r#"{"path":"/workspace/mine"}"#),
        ("PATCH", _) => ("", r#"{"quotas":{}}"#),
        ("POST", "extend") => ("", r#"{"ttl_seconds":900}"#),
        ("POST", "restart") => ("", r#"{"language":"python"}"#),
        ("POST", "artifacts") => ("", r#"{"path":"/workspace/mine","name":"theirs"}"#),
        ("POST", "mkdir") => ("", r#"{"path":"/workspace/new"}"#),
        ("POST", "move") => ("", r#"{"from":"/workspace/mine","to":"/workspace/theirs"}"#),
        ("POST", "processes" | "steps") => ("", r#"{"command":["true"]}"#),
        ("POST", "resize") => ("", r#"{"rows":24,"columns":80}"#),
        ("POST", "pause") => ("", r#"{"mode":"archive"}"#),
        ("POST", "fork") => ("", r#"{"count":1}"#),
        ("POST", "snapshots") => ("", r#"{"name":"theirs"}"#),
        ("POST", "signal") => ("", r#"{"signal":9}"#),
        ("POST", "tickets") => ("", "{}"),
        _ => ("", ""),
    }
}

/// Every endpoint that takes an id, with the id of another's and with nobody's: both have to look the same.
pub(crate) fn foreign(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let operator = target.operator();
    let (_, alice) = operator.tenant("alice", json!({}))?;
    let (tenant, eve) = operator.tenant("eve", json!({}))?;
    let running = alice.job(&json!({"command": ["sleep", "600"]}))?;
    let ended = alice.run(&nothing())?["id"].as_str().unwrap_or_default().to_owned();
    let (key, _) = alice.key(&["jobs:read"])?;
    let artifact = alice.post("/v1/artifacts", &json!({"name": "a", "size_bytes": 1}))?.word("id")?;
    let (session, step) = session(&alice)?;
    let kept = alice.post(&format!("/v1/sessions/{session}/snapshots"), &json!({"name": "base"}))?;
    let snapshot = kept.word("id")?;
    let document: Value = serde_json::from_str(DOCUMENT)?;
    let mut tried = 0;
    for (path, methods) in
        document["paths"].as_object().into_iter().flatten().filter(|(path, _)| path.contains("{id}"))
    {
        let kind = path.split('/').nth(2).unwrap_or_default();
        let (ids, none): (&[&str], &str) = match kind {
            "jobs" => (&[&running, &ended], "job-aaaaaaaaaaaaaaaa"),
            "keys" => (&[&key], "key-aaaaaaaaaaaaaaaa"),
            "artifacts" => (&[&artifact], "art-aaaaaaaaaaaaaaaa"),
            "tenants" => (&[&tenant], "ten-aaaaaaaaaaaaaaaa"),
            "sessions" => (&[&session], "ses-aaaaaaaaaaaaaaaa"),
            "snapshots" => (&[&snapshot], "snp-aaaaaaaaaaaaaaaa"),
            // This target has no image store, so nobody has one; crates/cli/tests/serve/images.rs has two who do.
            "images" => (&["img-bbbbbbbbbbbbbbbb"], "img-aaaaaaaaaaaaaaaa"),
            _ => return super::cannot(format!("{path} is of a kind that this attack does not know")),
        };
        for method in
            methods.as_object().into_iter().flat_map(|methods| methods.keys()).map(|m| m.to_uppercase())
        {
            for id in ids {
                let (query, body) = sense(&method, path);
                let path =
                    path.replace("{step_id}", &step).replace("{number}", "1").replace("{name}", "default");
                let send =
                    |id: &str| eve.send(&method, &(path.replace("{id}", id) + query), "", body.as_bytes());
                let (theirs, nobodys) = (send(id)?, send(none)?);
                let is_refused = theirs.status == 404
                    || theirs.status == 403
                        && (kind == "tenants" || path.contains("/upload") || path.contains("/signed"));
                broke_if(!is_refused, || format!("{method} {path}: {}", theirs.status))?;
                let differs = theirs.status != nobodys.status
                    || without_ids(&theirs, id) != without_ids(&nobodys, none);
                broke_if(differs, || format!("{method} {path} tells another's from nobody's"))?;
                tried += 1;
            }
        }
    }
    needs(tried > 15, || format!("only {tried} endpoints"))?;
    for path in [
        format!("/v1/jobs/{running}"),
        format!("/v1/jobs/{ended}"),
        format!("/v1/artifacts/{artifact}"),
        format!("/v1/sessions/{session}/files?path=/workspace/mine"),
        format!("/v1/sessions/{session}/steps/{step}"),
    ] {
        broke_if(alice.get(&path)?.status != 200, || format!("{path} is gone"))?;
    }
    alice.post(&format!("/v1/jobs/{running}/cancel"), &json!({}))?;
    Ok(format!("{tried} requests, each answered as for nobody's"))
}

/// For attacks that need two of them.
pub(crate) fn two(operator: &Client, names: [&str; 2]) -> Result<[Client; 2], Stop> {
    let [one, two] = names;
    Ok([operator.tenant(one, json!({}))?.1, operator.tenant(two, json!({}))?.1])
}
