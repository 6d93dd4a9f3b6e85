//! Receipts, heads and exported chains: taken from a running service, and checked without it by the real program.

use crate::client::Client;
use crate::server::{Folder, Server};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
}

fn encode(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

struct Bed {
    folder: Folder,
    server: Server,
    client: Client,
}

impl Bed {
    fn new() -> Self {
        let folder = Folder::new("proofs");
        let server = Server::start(&folder.path().join("data"), &[]);
        let client = Client::of(&server);
        Self { folder, server, client }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Writes a file beside the data, and returns its path.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path.to_str().expect("text").to_owned()
    }

    /// What the service answers, in a file.
    fn fetch(&self, name: &str, path: &str) -> String {
        let answer = self.client.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        self.file(name, answer.body)
    }

    /// The same for an answer that comes in pieces, as a user would fetch it.
    fn curl(&self, name: &str, path: &str) -> String {
        let (url, key) =
            (format!("http://{}{path}", self.server.address), format!("X-API-Key: {}", self.server.key));
        let output = Command::new("curl").args(["-sSf", "-H", &key, &url]).output().expect("curl");
        assert!(output.status.success(), "{path}: {output:?}");
        self.file(name, output.stdout)
    }

    fn run_job(&self, body: &str) -> String {
        let job = self.client.post("/v1/jobs?wait_ms=60000", body).json();
        assert!(job["result"].is_object(), "{job}");
        job["id"].as_str().expect("an id").to_owned()
    }

    fn keys(&self, name: &str) -> String {
        self.fetch(name, "/v1/signing-keys")
    }

    fn rotate(&self, words: &[&str]) {
        let data = self.data();
        let mut line = vec!["signing-key", "rotate", "--data", data.to_str().expect("text")];
        line.extend(words);
        let done = cofferdam(&line);
        assert!(done.status.success(), "{done:?}");
    }
}

fn cofferdam(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cofferdam")).args(words).output().expect("the program starts")
}

/// The exit code of a check, and what it said.
fn check(words: &[&str]) -> (i32, String) {
    let output = cofferdam(words);
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().expect("a code"), said)
}

fn verdict(words: &[&str]) -> Value {
    let output = cofferdam(&[words, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("not JSON: {output:?}"))
}

const HELLO: &str = r#"{"language":"python","code":"import sys; print(sys.stdin.read()); print('err', file=sys.stderr)",
    "stdin":"in","env":{"TOKEN":"s3cret-nonce"},"files":[{"path":"a.txt","content":"x"}]}"#;
const HELLO_CODE: &str = "import sys; print(sys.stdin.read()); print('err', file=sys.stderr)";

#[test]
fn a_receipt_is_checked_offline_against_code_and_output() {
    let bed = Bed::new();
    let id = bed.run_job(HELLO);
    let receipt = bed.fetch("receipt.json", &format!("/v1/jobs/{id}/receipt"));
    let keys = bed.keys("keys.json");
    let again = bed.client.get(&format!("/v1/jobs/{id}/receipt")).body;
    assert_eq!(again, std::fs::read_to_string(&receipt).expect("text"), "the same job has the same receipt");
    let (code, out) = (bed.file("code.py", HELLO_CODE), bed.file("out.txt", "in\n"));
    let err = bed.file("err.txt", "err\n");
    // From here on there is no service.
    let Bed { folder: _folder, server, .. } = bed;
    assert_eq!(server.stop(), Some(0));
    let whole =
        ["receipt", "verify", &receipt, "--keys", &keys, "--code", &code, "--stdout", &out, "--stderr", &err];
    let (exit, said) = check(&[&whole[..], &["--job", &id]].concat());
    assert_eq!(exit, 0, "{said}");
    let told = verdict(&whole);
    assert_eq!(told["verdict"], "proven", "{told}");
    let says = &told["receipt"];
    assert_eq!(says["outcome"], json!({"kind": "exited", "code": 0}));
    assert_eq!((says["state"].as_str(), says["image"]["name"].as_str()), (Some("succeeded"), Some("host")));
    assert_eq!(says["inputs"]["env_names"], json!(["TOKEN"]));
    assert_eq!(says["inputs"]["files"][0]["path"], "a.txt");
    assert_eq!(says["limits"]["pids"], 100);
    assert_eq!(says["policy"]["sha256"].as_str().map(str::len), Some(64));
    assert_eq!(says["isolation"]["backend"], "native");
    assert!(says["isolation"]["controls"].as_array().is_some_and(|rows| rows.len() > 40), "{says}");
    assert!(says["sandbox_id"].as_str().is_some_and(|id| id.starts_with("sbx-")), "{says}");
    assert!(says["worker"].as_str().is_some_and(|id| id.starts_with("wrk-")), "{says}");
    assert!(says["started_at"].is_string() && says["finished_at"].is_string(), "{says}");
    assert!(!told.to_string().contains("s3cret-nonce"));
    // Without keys it may be anybody's; with anything else in its place it is broken.
    assert_eq!(check(&["receipt", "verify", &receipt]).0, 2);
    for wrong in [["--code", &out], ["--stdout", &err], ["--stderr", &out], ["--job", "job-aaaaaaaaaaaaaaaa"]]
    {
        let (exit, said) = check(&[&["receipt", "verify", &receipt, "--keys", &keys][..], &wrong].concat());
        assert_eq!(exit, 1, "{wrong:?}: {said}");
    }
    assert_eq!(check(&["receipt", "verify", "/no/such/file"]).0, 125);
    assert_eq!(check(&["receipt", "verify", &code, "--keys", &keys]).0, 125);
}

#[test]
fn a_forged_receipt_is_refused() {
    let bed = Bed::new();
    let id = bed.run_job(r#"{"command":["false"]}"#);
    let whole = bed.client.get(&format!("/v1/jobs/{id}/receipt")).json();
    let keys = bed.keys("keys.json");
    let forge = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut forged = whole.clone();
        change(&mut forged);
        let file = bed.file(name, forged.to_string());
        check(&["receipt", "verify", &file, "--keys", &keys])
    };
    assert_eq!(forge("whole", &|_| {}).0, 0);
    let payload = whole["payload"].as_str().expect("text");
    let (exit, said) = forge("altered", &|receipt| {
        let said = String::from_utf8(decode(payload)).expect("text").replace("failed", "succeeded");
        receipt["payload"] = json!(encode(said.as_bytes()));
    });
    assert_eq!(exit, 1, "{said}");
    // A head is signed by the same key, and is no receipt.
    let head = bed.client.get("/v1/audit/head").json();
    assert_eq!(forge("head", &|receipt| *receipt = head.clone()).0, 1);
    assert_eq!(forge("relabelled", &|receipt| receipt["payload"] = head["payload"].clone()).0, 1);
    let unknown = "sgn-00000000000000000000000000000000";
    assert_eq!(forge("stranger", &|receipt| receipt["signatures"][0]["keyid"] = json!(unknown)).0, 1);
    // Keys that go by another's name are not read at all.
    let mut list: Value = bed.client.get("/v1/signing-keys").json();
    list["keys"][0]["keyid"] = json!(unknown);
    let renamed = bed.file("renamed.json", list.to_string());
    let receipt = bed.file("receipt.json", whole.to_string());
    assert_eq!(check(&["receipt", "verify", &receipt, "--keys", &renamed]).0, 125);
}

#[test]
fn jobs_without_a_receipt_say_why() {
    let bed = Bed::new();
    let id = bed.client.post("/v1/jobs", r#"{"command":["sleep","60"]}"#).json()["id"].clone();
    let path = format!("/v1/jobs/{}/receipt", id.as_str().expect("an id"));
    let early = bed.client.get(&path);
    assert_eq!(
        (early.status, early.json()["error"]["code"].as_str()),
        (409, Some("wrong_state")),
        "{early:?}"
    );
    bed.client.post(&path.replace("receipt", "cancel"), "");
    while bed.client.get(&path).status == 409 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let receipt = bed.fetch("cancelled.json", &path);
    let told = verdict(&["receipt", "verify", &receipt, "--keys", &bed.keys("keys.json")]);
    assert_eq!(
        (&told["verdict"], &told["receipt"]["state"]),
        (&json!("proven"), &json!("cancelled")),
        "{told}"
    );
    let job = path.trim_end_matches("/receipt");
    assert_eq!(bed.client.send("DELETE", job, "", "").expect("an answer").status, 204);
    let deleted = bed.client.get(&path);
    let never = bed.client.get("/v1/jobs/job-aaaaaaaaaaaaaaaa/receipt");
    assert_eq!((deleted.status, never.status), (404, 404));
    let without_id = |answer: &crate::client::Answer| {
        let mut error = answer.json()["error"].clone();
        error["request_id"] = Value::Null;
        error
    };
    assert_eq!(without_id(&deleted), without_id(&never));
    let writer = bed.client.post("/v1/keys", r#"{"name":"w","scopes":["jobs:write"]}"#).json();
    let writer = bed.client.with_key(writer["secret"].as_str().expect("a secret"));
    assert_eq!(writer.get(&path).status, 403);
    assert_eq!(writer.get("/v1/audit/head").status, 403);
    assert_eq!(writer.get("/v1/audit/export").status, 403);
    // The public keys are for everybody.
    assert_eq!(bed.client.with_key("none").get("/v1/signing-keys").status, 200);
}

#[test]
fn a_rotation_while_the_server_runs_keeps_old_receipts_good() {
    let bed = Bed::new();
    let id = bed.run_job(r#"{"command":["true"]}"#);
    let path = format!("/v1/jobs/{id}/receipt");
    let old = bed.fetch("old.json", &path);
    let old_keys = bed.keys("old-keys.json");
    bed.rotate(&[]);
    let new = bed.fetch("new.json", &path);
    let keys = bed.keys("keys.json");
    let good = |receipt: &str, keys: &str| check(&["receipt", "verify", receipt, "--keys", keys]).0;
    assert_eq!((good(&old, &keys), good(&new, &keys), good(&new, &old_keys)), (0, 0, 1));
    // A leaked key proves nothing any more, and the same job gets a new receipt.
    bed.rotate(&["--leaked"]);
    let newest = bed.fetch("newest.json", &path);
    let keys = bed.keys("keys.json");
    assert_eq!((good(&old, &keys), good(&new, &keys), good(&newest, &keys)), (0, 1, 0));
    let data = bed.data();
    let list = cofferdam(&["signing-key", "list", "--data", data.to_str().expect("text")]).stdout;
    let list: Value = serde_json::from_slice(&list).expect("JSON");
    assert_eq!(list, bed.client.get("/v1/signing-keys").json());
    assert_eq!(list["keys"].as_array().map(Vec::len), Some(3));
    assert!(!list.to_string().contains("seed"));
    assert_eq!(check(&["signing-key", "rotate", "--data", "/no/such/folder"]).0, 125);
    assert!(!Path::new("/no/such/folder").exists());
}

/// Whoever rotates leaves a note, whether the server runs at the time or not, and leaves it once.
#[test]
fn a_rotation_is_noted_in_the_audit() {
    let mut bed = Bed::new();
    let noted = |bed: &Bed| -> Vec<Value> {
        let entries = bed.client.get("/v1/audit?kind=signing_key.rotated").json()["entries"].clone();
        entries.as_array().expect("entries").clone()
    };
    let until = |bed: &Bed, count: usize| {
        let began = std::time::Instant::now();
        while noted(bed).len() != count {
            assert!(began.elapsed().as_secs() < 30, "{:?}", noted(bed));
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    assert!(noted(&bed).is_empty());
    bed.rotate(&[]);
    until(&bed, 1);
    let keys = bed.client.get("/v1/signing-keys").json();
    let note = &noted(&bed)[0];
    assert_eq!((&note["resource"], &note["actor"]), (&keys["keys"][1]["keyid"], &"system".into()));
    assert_eq!(note["details"]["retired"], keys["keys"][0]["keyid"]);
    // While nobody is there to see it.
    let data = bed.data();
    let server = std::mem::replace(&mut bed.server, Server::start(&bed.folder.path().join("other"), &[]));
    assert_eq!(server.stop(), Some(0));
    bed.rotate(&["--leaked"]);
    bed.server = Server::start(&data, &[]);
    bed.client = Client::of(&bed.server);
    until(&bed, 2);
    assert_eq!(noted(&bed)[1]["details"]["leaked"], true);
}

/// An exported chain as lines, to be altered.
fn lines(file: &str) -> Vec<String> {
    std::fs::read_to_string(file).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn an_exported_chain_is_checked_offline() {
    let bed = Bed::new();
    bed.run_job(r#"{"command":["true"]}"#);
    bed.run_job(r#"{"command":["false"]}"#);
    let keys = bed.keys("keys.json");
    let (file, head) = (bed.file("audit.jsonl", ""), bed.file("head.json", ""));
    let data = bed.data();
    let data = data.to_str().expect("text");
    let done = cofferdam(&["audit", "export", "--data", data, "--out", &file, "--head", &head]);
    assert!(done.status.success(), "{done:?}");
    let verify = |file: &str, options: &[&str]| check(&[&["audit", "verify", file][..], options].concat());
    let with_all = ["--head", head.as_str(), "--keys", keys.as_str()];
    let (exit, said) = verify(&file, &with_all);
    assert_eq!(exit, 0, "{said}");
    let (exit, said) = verify(&file, &["--keys", &keys]);
    assert!(exit == 2 && said.contains("unproven"), "{exit}: {said}");
    assert_eq!(verify(&file, &["--head", &head]).0, 2);
    // What somebody may do to the file.
    let whole = lines(&file);
    assert!(whole.len() > 6, "{whole:?}");
    let altered = |name: &str, change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = whole.clone();
        change(&mut lines);
        bed.file(name, lines.join("\n") + "\n")
    };
    let edit = altered("edit", &|lines| lines[3] = lines[3].replace("job.", "jab."));
    let gap = altered("gap", &|lines| drop(lines.remove(3)));
    let swap = altered("swap", &|lines| lines.swap(3, 4));
    let half = altered("half", &|lines| lines[3].truncate(20));
    let other = altered("other", &|lines| lines[0] = lines[0].replace("ten-", "tem-"));
    for file in [&edit, &gap, &swap, &half, &other] {
        for options in [&with_all[..], &[]] {
            let (exit, said) = verify(file, options);
            assert!(exit == 1 && said.contains("broken"), "{file} {options:?}: {exit}: {said}");
        }
    }
    let cut = altered("cut", &|lines| drop(lines.pop()));
    assert_eq!((verify(&cut, &with_all).0, verify(&cut, &[]).0), (1, 2));
    assert_eq!(verify(&head, &[]).0, 125);
    // The same file comes over HTTP, and the head before it is in it.
    let head = bed.fetch("head-2.json", "/v1/audit/head");
    let file = bed.curl("audit-2.jsonl", "/v1/audit/export");
    let told = verdict(&["audit", "verify", &file, "--head", &head, "--keys", &keys]);
    assert_eq!(
        (&told["chain"]["findings"], &told["chain"]["tail"]["kind"]),
        (&json!([]), &json!("proven")),
        "{told}"
    );
    let last = told["chain"]["tail"]["up_to"].to_string();
    let file = bed.curl("audit-3.jsonl", &format!("/v1/audit/export?up_to_seq={last}"));
    assert_eq!(verify(&file, &["--head", &head, "--keys", &keys]).0, 0);
    assert_eq!(lines(&file)[..whole.len()], whole);
}

/// A row that was changed in the database itself, with the rights of whoever owns it.
#[test]
fn a_tampered_database_is_found_by_its_export() {
    let bed = Bed::new();
    bed.run_job(r#"{"command":["true"]}"#);
    let (head, keys) = (bed.fetch("head.json", "/v1/audit/head"), bed.keys("keys.json"));
    let database = bed.data().join("cofferdam.db");
    let Bed { folder, server, .. } = bed;
    assert_eq!(server.stop(), Some(0));
    let statement = "UPDATE audit SET actor = 'key-nobody' WHERE seq = 2";
    let script = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute(sys.argv[2]); d.commit()";
    let harm = Command::new("python3").args(["-c", script]).arg(&database).arg(statement).status();
    assert!(harm.expect("python3").success());
    let file = folder.path().join("audit.jsonl");
    let (file, data) = (file.to_str().expect("text"), folder.path().join("data"));
    let export = cofferdam(&["audit", "export", "--data", data.to_str().expect("text"), "--out", file]);
    assert!(export.status.success(), "{export:?}");
    let told = verdict(&["audit", "verify", file, "--head", &head, "--keys", &keys]);
    assert_eq!(told["chain"]["findings"][0], json!({"kind": "altered", "seq": 2}), "{told}");
}

#[test]
fn the_audit_says_what_happened_and_can_be_asked() {
    let bed = Bed::new();
    let id = bed.run_job(r#"{"command":["sh","-c","exit 3"]}"#);
    bed.client.get(&format!("/v1/jobs/{id}/receipt"));
    bed.client.get(&format!("/v1/jobs/{id}/receipt"));
    let reader = bed.client.post("/v1/keys", r#"{"name":"r","scopes":["jobs:read"]}"#).json();
    let reader_id = reader["id"].as_str().expect("an id").to_owned();
    let reader = bed.client.with_key(reader["secret"].as_str().expect("a secret"));
    for _ in 0..5 {
        assert_eq!(reader.get("/v1/audit").status, 403);
    }
    let ask = |query: &str| {
        let answer = bed.client.get(&format!("/v1/audit?{query}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["entries"].as_array().expect("a list").clone()
    };
    let kinds = |entries: &[Value]| -> Vec<String> {
        entries.iter().map(|entry| entry["kind"].as_str().expect("a kind").to_owned()).collect()
    };
    let of_job = ask(&format!("resource={id}"));
    // Twice where an hour ends in between.
    let mut kinds = kinds(&of_job);
    kinds.dedup();
    assert_eq!(kinds, ["job.accepted", "job.running", "job.finished", "receipt.read"]);
    let end = &of_job[2]["details"];
    assert_eq!((end["exit_code"].as_i64(), end["outcome"]["kind"].as_str()), (Some(3), Some("exited")));
    assert_eq!(end["stdout_sha256"].as_str().map(str::len), Some(64));
    assert!(end["worker"].as_str().is_some_and(|id| id.starts_with("wrk-")), "{end}");
    assert!(end["sandbox_id"].as_str().is_some_and(|id| id.starts_with("sbx-")), "{end}");
    assert_eq!(of_job[0]["details"]["policy_sha256"].as_str().map(str::len), Some(64));
    // Each denial by itself, and that the key was used once.
    assert_eq!(ask(&format!("actor={reader_id}&kind=denied")).len(), 5);
    // Nobody waited for this one.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut used = Vec::new();
    while used.is_empty() && std::time::Instant::now() < deadline {
        used = ask(&format!("actor={reader_id}&kind=key.used"));
    }
    assert!((1..=2).contains(&used.len()) && used[0]["details"]["first"] == json!(true), "{used:?}");
    assert!((1..=2).contains(&ask("kind=audit.read").len()));
    // Times, places and pages.
    let all = ask("limit=1000");
    let at = of_job[2]["at"].as_str().expect("a time");
    let since = ask(&format!("from={at}&limit=1000"));
    assert!(!since.is_empty() && since.iter().all(|entry| entry["at"].as_str() >= Some(at)), "{since:?}");
    let before = ask(&format!("to={at}&limit=1000"));
    assert!(before.len() < all.len() && before.len() + since.len() >= all.len());
    let second = all[1]["seq"].to_string();
    assert_eq!(ask(&format!("after_seq={second}&limit=2")), all[2..4]);
    for query in ["from=yesterday", "to=2026-13-01T00:00:00Z", "colour=red", "after_seq=-1", "actor=%00"] {
        let refused = bed.client.get(&format!("/v1/audit?{query}"));
        assert_eq!(refused.status, 422, "{query}: {refused:?}");
    }
}
