//! What an operator sees of the service, and what nobody must see.

use crate::client::Client;
use crate::collector::Collector;
use crate::server::{Folder, Server};
use cofferdam_store::{Location, Store};
use serde_json::json;
use std::path::Path;

#[test]
fn metrics_count_what_was_done_and_repeat_nothing_that_was_said() {
    let folder = Folder::new("metrics");
    let mut server = Server::start(folder.path(), &["--metrics-listen", "127.0.0.1:0"]);
    let client = Client::of(&server);
    for code in ["print(1)", "exit(3)"] {
        let body = json!({"language": "python", "code": code}).to_string();
        assert_eq!(client.post("/v1/jobs?wait_ms=30000", &body).status, 200);
    }
    assert_eq!(client.get("/v1/jobs/unlikely-word").status, 404);
    assert_eq!(client.get("/unlikely-word").status, 404);
    assert_eq!(client.send("UNLIKELY", "/v1/jobs", "", "").expect("an answer").status, 405);
    let made = client.post("/v1/keys", r#"{"name":"reader","scopes":["jobs:read"]}"#).json();
    let reader = client.with_key(made["secret"].as_str().expect("a secret"));
    assert_eq!(reader.get("/metrics").status, 403);
    assert_eq!(client.with_key("cof_none").get("/metrics").status, 401);
    let answer = client.get("/metrics");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = answer.body;
    for line in [
        r#"cofferdam_requests_total{method="POST",route="/v1/jobs",status="200"} 2"#,
        r#"cofferdam_requests_total{method="GET",route="/v1/jobs/{id}",status="404"} 1"#,
        r#"cofferdam_requests_total{method="GET",route="none",status="404"} 1"#,
        r#"cofferdam_requests_total{method="other",route="/v1/jobs",status="405"} 1"#,
        r#"cofferdam_outcomes_total{outcome="exited"} 2"#,
        r#"cofferdam_denials_total{rule="scope"} 1"#,
        r#"cofferdam_gate_closed{gate="store_full"} 0"#,
        "cofferdam_queue_depth 0",
        "cofferdam_jobs_running 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
    for phase in ["auth", "store_write", "wait_for_room", "sandbox_start", "run", "finish"] {
        let line = format!("cofferdam_phase_seconds_count{{phase=\"{phase}\"}} ");
        let count = text.lines().find_map(|known| known.strip_prefix(&line)?.parse::<u64>().ok());
        assert!(count.is_some_and(|count| count >= 2), "{phase}: {count:?}");
    }
    let number =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let (hits, misses) =
        (r#"cofferdam_pool_starts_total{kind="hit"}"#, r#"cofferdam_pool_starts_total{kind="miss"}"#);
    assert_eq!(number(hits).unwrap_or(0) + number(misses).unwrap_or(0), 2, "{text}");
    assert!(number("cofferdam_store_batch_size_count").is_some_and(|count| count >= 4), "{text}");
    assert!(!text.contains("nlikely"), "{text}");
    let apart = client.at(server.metrics_address()).with_key("");
    assert!(apart.get("/metrics").body.contains("cofferdam_phase_seconds_count"));
    assert_eq!(apart.get("/v1/jobs").status, 404);
}

#[test]
fn every_answer_has_the_id_of_its_request() {
    let folder = Folder::new("ids");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let given = client.send("GET", "/v1/nothing", "X-Request-Id: from-me.1\r\n", "").expect("an answer");
    assert_eq!(given.header("x-request-id"), Some("from-me.1"));
    assert_eq!(given.json()["error"]["request_id"], "from-me.1");
    for sent in ["X-Request-Id: two words\r\n", ""] {
        let made = client.send("GET", "/v1/jobs/none", sent, "").expect("an answer");
        let id = made.header("x-request-id").expect("an id").to_owned();
        assert!(id.starts_with("req-"), "{id}");
        assert_eq!(made.json()["error"]["request_id"].as_str(), Some(id.as_str()));
    }
    assert!(client.get("/healthz").header("x-request-id").is_some());
}

/// The trace goes from the caller's span through the request to the process, also for a job that had to wait.
#[test]
fn one_trace_goes_from_the_request_to_the_process() {
    let (folder, collector) = (Folder::new("traces"), Collector::start());
    let server = Server::start(folder.path(), &["--otlp", &collector.url(), "--slots", "1"]);
    let client = Client::of(&server);
    let send = |trace: &str, code: &str| {
        let header = format!("traceparent: 00-{trace}-00f067aa0ba902b7-01\r\n");
        let body = json!({"language": "python", "code": code}).to_string();
        client.send("POST", "/v1/jobs", &header, &body).expect("an answer").json()
    };
    let ids: [[u8; 16]; 2] = [[0x4b; 16], [0x5c; 16]];
    let hex = |id: [u8; 16]| id.map(|byte| format!("{byte:02x}")).concat();
    send(&hex(ids[0]), "import time; time.sleep(0.5)");
    let waiting = send(&hex(ids[1]), "print(1)");
    assert_eq!(waiting["status"]["state"], "queued");
    for (i, id) in ids.iter().enumerate() {
        let names = ["POST /v1/jobs", "store.accept", "job.run", "sandbox.start", "process", "store.finish"];
        let spans = collector.trace(id, &names);
        let find = |name: &str| spans.iter().find(|span| span.name == name).expect("a span");
        let request = find("POST /v1/jobs");
        assert_eq!(request.parent_span_id, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert_eq!(find("store.accept").parent_span_id, request.span_id);
        let above_run = if i == 0 { &request.span_id } else { &find("job.dispatch").span_id };
        assert_eq!(&find("job.run").parent_span_id, above_run);
        for name in ["sandbox.start", "process", "store.finish"] {
            assert_eq!(find(name).parent_span_id, find("job.run").span_id, "{name}");
        }
        let process = find("process");
        assert!(process.end_time_unix_nano >= process.start_time_unix_nano, "{process:?}");
    }
}

/// The words of a caller that may be secret, each planted where it belongs.
#[test]
fn what_may_be_secret_is_in_no_log_trace_metric_or_audit() {
    let (folder, collector) = (Folder::new("nonces"), Collector::start());
    let log = folder.path().join("log");
    let otlp = collector.url();
    let (config, sign) = crate::identity::token_maker(folder.path());
    let options = ["--otlp", &otlp, "--log-format", "json", "--log-level", "trace", "--config", &config];
    let server = Server::start_logging(folder.path(), &options, &log);
    let client = Client::of(&server);
    let nonce = |name: &str| format!("nonce{name}c0ffee");
    let body = json!({
        "language": "python", "code": format!("print('{}')", nonce("code")), "stdin": nonce("stdin"),
        "env": {"A": nonce("env")}, "args": [nonce("arg")], "metadata": {"a": nonce("metadata")},
        "files": [{"path": "a.txt", "content": nonce("file")}],
        "webhook": {"url": format!("https://127.0.0.1/{}", nonce("url")), "secret": nonce("secret")},
    });
    let ran = client.post("/v1/jobs?wait_ms=30000", &body.to_string());
    assert_eq!(ran.status, 200, "{ran:?}");
    let id = ran.json()["id"].as_str().expect("an id").to_owned();
    let failing = json!({"language": "python", "code": format!("raise SystemExit('{}')", nonce("failing"))});
    assert_eq!(client.post("/v1/jobs?wait_ms=30000", &failing.to_string()).status, 200);
    // Requests that fail, with what they should not have.
    client.with_key(&format!("cof_{}", nonce("key"))).get("/v1/jobs");
    let jwt = format!("Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.{}.c2ln\r\n", nonce("jwt"));
    client.with_key("").send("GET", "/v1/jobs", &jwt, "").expect("an answer");
    client.get(&format!("/v1/artifacts/art-1?signature={}&expires=1", nonce("query")));
    client.get(&format!("/v1/jobs?cursor={}", nonce("cursor")));
    client.post("/v1/jobs", &format!("{{\"code\": {}", nonce("malformed")));
    client.post("/v1/jobs", &json!({"colour": nonce("field")}).to_string());
    let key = format!("Idempotency-Key: {}\r\n", nonce("idempotency"));
    client.send("POST", "/v1/jobs?wait_ms=30000", &key, r#"{"command":["true"]}"#).expect("an answer");
    let cookie = format!("Cookie: {}\r\nX-Other: {}\r\n", nonce("cookie"), nonce("header"));
    client.send("GET", "/v1/jobs", &cookie, "").expect("an answer");
    // What is good is as secret as what is not: a key, a token, and a link that bytes were sent to and read by.
    let made = client.post("/v1/keys", r#"{"name":"good","scopes":["jobs:read"]}"#).json();
    let key = made["secret"].as_str().expect("a secret").to_owned();
    assert_eq!(client.with_key(&key).get("/v1/jobs").status, 200);
    let token = sign("default", "jobs:read");
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(client.without_key().send("GET", "/v1/jobs", &bearer, "").expect("an answer").status, 200);
    let announced = client.post("/v1/artifacts", r#"{"name":"a","size_bytes":1}"#).json();
    let up = announced["upload"]["url"].as_str().expect("a link").to_owned();
    assert_eq!(client.without_key().send("PUT", &up, "", "x").expect("an answer").status, 200);
    let artifact = announced["id"].as_str().expect("an id").to_owned();
    let hash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let finalized =
        client.post(&format!("/v1/artifacts/{artifact}/finalize"), &json!({"sha256": hash}).to_string());
    assert_eq!(finalized.status, 200, "{finalized:?}");
    let down = client.post(&format!("/v1/artifacts/{artifact}/url"), "{}").json();
    let down = down["url"].as_str().expect("a link").to_owned();
    assert_eq!(client.without_key().get(&down).body, "x");
    let signature = |url: &str| {
        let (_, query) = url.split_once('?').expect("a query");
        let longest = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
        longest.max_by_key(|value| value.len()).expect("a signature").to_owned()
    };
    let secrets = [
        ("key", key),
        ("token", token.rsplit('.').next().expect("a signature").to_owned()),
        ("upload link", signature(&up)),
        ("download link", signature(&down)),
        ("own key", server.key.clone()),
    ];
    let metrics = client.get("/metrics").body;
    let audit = client.get("/v1/audit?limit=1000").body;
    assert_eq!(server.stop(), Some(0));
    let logged = std::fs::read_to_string(&log).expect("the log");
    let traced = String::from_utf8_lossy(&collector.bytes()).into_owned();
    // There is something to look at, and the planted words are where they belong.
    assert!(logged.lines().filter(|line| line.contains("\"route\":\"/v1/jobs\"")).count() > 5, "{logged}");
    assert!(traced.contains("process") && metrics.contains("cofferdam") && audit.contains("job.finished"));
    let spec = kept_spec(folder.path(), &id);
    for word in ["code", "stdin", "env", "arg", "metadata", "file"] {
        assert!(spec.contains(&nonce(word)), "{word} was planted in vain: {spec}");
    }
    assert!(!spec.contains(&nonce("secret")), "the secret of a webhook is kept apart: {spec}");
    for (name, text) in [("log", &logged), ("traces", &traced), ("metrics", &metrics), ("audit", &audit)] {
        let found = text.find("c0ffee").map(|at| &text[at.saturating_sub(200)..(at + 50).min(text.len())]);
        assert_eq!(found, None, "in the {name}");
        for (what, secret) in &secrets {
            assert!(secret.len() >= 16 && !text.contains(secret.as_str()), "the {what} is in the {name}");
        }
    }
    assert!(!logged.contains("cof_"), "{logged}");
}

fn kept_spec(data: &Path, id: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Store::open(&Location::Sqlite(data.join("cofferdam.db"))).await.expect("the store");
        let tenant = store.ensure_tenant("ten-x".into(), "default".into(), 0).await.expect("the tenant");
        store.job(&tenant, id).await.expect("a job").expect("the job").spec
    })
}
