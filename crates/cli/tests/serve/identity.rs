//! Who is recognised, and how much they may have, by the real program.

use crate::client::{Answer, Client};
use crate::server::{Folder, Server};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

const PRINT: &str = r#"{"language":"python","code":"print(1)"}"#;

fn text(answer: &Answer, name: &str) -> String {
    answer.json()[name].as_str().unwrap_or_else(|| panic!("no {name}: {answer:?}")).to_owned()
}

/// A tenant made by the operator, and a key for everything in it.
fn tenant(operator: &Client, name: &str, quotas: &Value) -> (String, Client) {
    let made = operator.post("/v1/tenants", &json!({"name": name, "quotas": quotas}).to_string());
    assert_eq!(made.status, 201, "{made:?}");
    let id = text(&made, "id");
    let key = operator.post("/v1/keys", &json!({"name": "all", "scopes": ["*"], "tenant": id}).to_string());
    assert_eq!(key.status, 201, "{key:?}");
    (id, operator.with_key(&text(&key, "secret")))
}

#[test]
fn an_operator_makes_tenants_that_see_nothing_of_each_other() {
    let folder = Folder::new("tenants");
    let server = Server::start(folder.path(), &[]);
    let operator = Client::of(&server);
    let (one, client) = tenant(&operator, "one", &json!({}));
    let (_, other) = tenant(&operator, "two", &json!({}));
    let twice = operator.post("/v1/tenants", r#"{"name":"one"}"#);
    assert_eq!((twice.status, twice.json()["error"]["code"].as_str()), (409, Some("conflict")));
    let job = client.post("/v1/jobs?wait_ms=30000", PRINT);
    assert_eq!(job.json()["result"]["stdout"], "1\n", "{job:?}");
    let path = format!("/v1/jobs/{}", text(&job, "id"));
    assert_eq!(
        (client.get(&path).status, other.get(&path).status, operator.get(&path).status),
        (200, 404, 404)
    );
    // All of one's own is not all: neither tenants, nor keys of others, nor a key that could.
    assert_eq!(client.get("/v1/tenants").status, 403);
    assert_eq!(client.get("/v1/keys?tenant=ten-aaaaaaaaaaaaaaaa").status, 403);
    let escalated = client.post("/v1/keys", r#"{"name":"up","scopes":["operator"]}"#);
    assert_eq!(escalated.json()["error"]["details"]["rule"], "escalation", "{escalated:?}");
    // An operator may read a tenant's audit, and that is in it; others may not.
    let path = format!("/v1/audit?tenant={one}");
    assert!(operator.get(&path).body.contains("job.finished"));
    let read = client.get("/v1/audit?kind=audit.read").json();
    assert!(read["entries"][0]["actor"].as_str().is_some_and(|actor| actor.starts_with("key-")), "{read}");
    assert!(operator.get(&format!("/v1/audit/export?tenant={one}")).body.contains("job.finished"));
    assert_eq!(operator.get(&format!("/v1/audit/head?tenant={one}")).status, 200);
    assert_eq!((other.get(&path).status, client.get(&path).status), (403, 200));
    assert_eq!(operator.get("/v1/audit?tenant=ten-aaaaaaaaaaaaaaaa").status, 404);
    // A tenant goes when nothing of it runs, and its keys go with it.
    let deleted = operator.send("DELETE", &format!("/v1/tenants/{one}"), "", "").expect("an answer");
    assert_eq!(deleted.status, 204, "{deleted:?}");
    assert_eq!(client.get("/v1/jobs").status, 401);
    assert_eq!(operator.get(&format!("/v1/tenants/{one}")).status, 404);
    let audit = operator.get("/v1/audit").body;
    assert!(audit.contains("tenant.created") && audit.contains("tenant.deleted"), "{audit}");
}

#[test]
fn a_key_ends_when_it_says() {
    let folder = Folder::new("expiry");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let made = client.post("/v1/keys", r#"{"name":"short","scopes":["jobs:read"],"ttl_seconds":1}"#);
    assert!(text(&made, "expires_at").ends_with('Z'));
    let short = client.with_key(&text(&made, "secret"));
    let began = std::time::Instant::now();
    while short.get("/v1/jobs").status == 200 {
        assert!(began.elapsed().as_secs() < 20, "it is still good");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(short.get("/v1/jobs").status, 401);
    let wrong = client.post("/v1/keys", r#"{"name":"x","scopes":["jobs:read"],"ttl_seconds":0}"#);
    assert_eq!(
        (wrong.status, wrong.json()["error"]["details"]["field"].as_str()),
        (422, Some("ttl_seconds"))
    );
}

#[test]
fn too_many_requests_are_told_when_to_come_again() {
    let folder = Folder::new("rate");
    let server = Server::start(folder.path(), &[]);
    let operator = Client::of(&server);
    let (_, client) = tenant(&operator, "slow", &json!({"requests_per_second": 1, "burst": 3}));
    let answers: Vec<Answer> = (0..12).map(|_| client.get("/v1/jobs")).collect();
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(refused.len() >= 5 && answers[0].status == 200, "{answers:?}");
    for answer in &refused {
        let wait: u64 = answer.header("retry-after").expect("a time").parse().expect("whole seconds");
        assert_eq!(wait, 1);
        assert_eq!(answer.json()["error"]["details"]["quota"], "requests_per_second");
    }
    // When it says, it is so; and others were never held up.
    assert_eq!(operator.get("/v1/jobs").status, 200);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(client.get("/v1/jobs").status, 200);
}

#[test]
fn without_keys_only_where_it_was_asked_for_and_audited() {
    let folder = Folder::new("bypass");
    let server = Server::start(folder.path(), &["--dev-no-auth"]);
    let admin = Client::of(&server);
    let nobody = admin.without_key();
    let job = nobody.send("POST", "/v1/jobs?wait_ms=30000", "", PRINT).expect("an answer");
    assert_eq!(job.json()["result"]["stdout"], "1\n", "{job:?}");
    assert!(nobody.get("/readyz").body.contains("authentication is off"));
    // A wrong key is wrong, an operator's verbs stay an operator's, and pages of a browser are not served.
    assert_eq!(admin.with_key("cof_wrong").get("/v1/jobs").status, 401);
    assert_eq!(nobody.get("/v1/tenants").status, 403);
    for header in ["Origin: https://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        assert_eq!(nobody.send("GET", "/v1/jobs", header, "").expect("an answer").status, 401, "{header}");
    }
    assert_eq!(nobody.with_host("evil.example").get("/v1/jobs").status, 401);
    let audit = admin.get("/v1/audit").json();
    let entries = audit["entries"].as_array().expect("entries").clone();
    let bypassed: Vec<_> = entries.iter().filter(|entry| entry["kind"] == "auth.bypassed").collect();
    assert_eq!((bypassed.len(), bypassed[0]["details"]["uses"].as_u64()), (1, Some(1)), "{entries:?}");
    assert!(entries.iter().any(|entry| entry["kind"] == "job.accepted" && entry["actor"] == "dev-no-auth"));
    assert_eq!(server.stop(), Some(0));
    // The rest of the uses was noted at the stop.
    let server = Server::start(folder.path(), &[]);
    let audit = Client::of(&server).get("/v1/audit").body;
    assert_eq!(audit.matches("auth.bypassed").count(), 2, "{audit}");
    assert_eq!(Client::of(&server).without_key().get("/v1/jobs").status, 401);
}

#[test]
fn other_machines_are_served_only_with_tls_and_keys() {
    let folder = Folder::new("listen");
    for (options, said) in [
        (&["--listen", "0.0.0.0:0"][..], "without TLS only loopback is served"),
        (&["--listen", "0.0.0.0:0", "--plain-http-anywhere", "--dev-no-auth"], "only loopback is served"),
        (&["--tls-cert", "/nowhere/cert.pem"], "give both"),
        (&["--tls-cert", "/nowhere/cert.pem", "--tls-key", "/nowhere/key.pem"], "/nowhere/cert.pem"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
        command.arg("serve").arg("--data").arg(folder.path().join("data")).args(options);
        let output = command.stdin(Stdio::null()).output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{options:?}: {stderr}");
        assert!(stderr.contains(said), "{options:?}: {stderr}");
    }
}

/// Signs with Node: another implementation than the one under test.
fn sign(claims: &Value, secret: &str) -> String {
    let script = "const c=require('crypto'),[p,k]=process.argv.slice(1),b=x=>Buffer.from(x).toString('base64url');\
        const t=b('{\"alg\":\"HS256\",\"kid\":\"k1\"}')+'.'+b(p);\
        console.log(t+'.'+c.createHmac('sha256',Buffer.from(k,'base64url')).update(t).digest('base64url'))";
    let output =
        Command::new("node").args(["-e", script, &claims.to_string(), secret]).output().expect("node");
    String::from_utf8(output.stdout).expect("a token").trim().to_owned()
}

const TOKEN_SECRET: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA";

/// Writes settings by which tokens are taken, and returns their file.
fn token_settings(folder: &Path) -> String {
    let keys = folder.join("keys.json");
    let all = json!({"keys": [{"kty": "oct", "kid": "k1", "alg": "HS256", "k": TOKEN_SECRET}]});
    std::fs::write(&keys, all.to_string()).expect("keys");
    let file = folder.join("cofferdam.toml");
    let text =
        format!("[jwt]\nissuer = \"https://issuer\"\naudience = \"cofferdam\"\njwks_file = {keys:?}\n");
    std::fs::write(&file, text).expect("a file");
    file.to_string_lossy().into_owned()
}

/// The settings, and what makes good tokens for a tenant with scopes.
pub(crate) fn token_maker(folder: &Path) -> (String, impl Fn(&str, &str) -> String) {
    let sign = |tenant: &str, scope: &str| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
        let claims = json!({"iss": "https://issuer", "aud": "cofferdam", "exp": now.as_secs() + 600, "sub": "ann",
            "tenant": tenant, "scope": scope});
        sign(&claims, TOKEN_SECRET)
    };
    (token_settings(folder), sign)
}

#[test]
fn a_token_acts_for_its_tenant_with_its_scopes() {
    let folder = Folder::new("jwt");
    let (secret, file) = (TOKEN_SECRET, token_settings(folder.path()));
    let server = Server::start(folder.path(), &["--config", &file]);
    let operator = Client::of(&server);
    let (id, _) = tenant(&operator, "acme", &json!({}));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_secs();
    let claims = |tenant: &str, scope: &str| {
        json!({"iss": "https://issuer", "aud": "cofferdam", "exp": now + 600, "sub": "ann",
            "tenant": tenant, "agent": "planner", "scope": scope})
    };
    let bearer = |token: &str, method: &str, path: &str, body: &str| {
        let header = format!("Authorization: Bearer {token}\r\n");
        operator.without_key().send(method, path, &header, body).expect("an answer")
    };
    let good = sign(&claims("acme", "jobs:write jobs:read"), secret);
    let job = bearer(&good, "POST", "/v1/jobs?wait_ms=30000", PRINT);
    assert_eq!((job.status, job.json()["agent"].as_str()), (200, Some("planner")), "{job:?}");
    let by_id = sign(&claims(&id, "jobs:read"), secret);
    assert_eq!(bearer(&by_id, "GET", "/v1/jobs", "").json()["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(bearer(&by_id, "POST", "/v1/jobs", PRINT).status, 403);
    for wrong in [
        sign(&claims("nobody", "jobs:read"), secret),
        sign(&claims("acme", "jobs:read"), "AAAA"),
        sign(&json!({"iss": "https://issuer", "aud": "x", "exp": now + 600, "tenant": "acme"}), secret),
        format!("{}x", by_id),
    ] {
        assert_eq!(bearer(&wrong, "GET", "/v1/jobs", "").status, 401);
    }
    // A deleted tenant's tokens are not believed, however long they are good for.
    assert_eq!(operator.send("DELETE", &format!("/v1/tenants/{id}"), "", "").expect("an answer").status, 204);
    assert_eq!(bearer(&good, "GET", "/v1/jobs", "").status, 401);
}
