//! What jobs leave and take, large things, and what is left of uploads when the server is killed.

use crate::client::Client;
use crate::server::{Folder, Server};
use cofferdam_store::{Location, Store};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn server() -> (Folder, Server) {
    let folder = Folder::new("artifacts");
    let server = Server::start(folder.path(), &[]);
    (folder, server)
}

pub(crate) fn run(client: &Client, body: &Value) -> Value {
    let answer = client.post("/v1/jobs?wait_ms=60000", &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn delete(client: &Client, path: &str) -> u16 {
    client.send("DELETE", path, "", "").expect("an answer").status
}

/// Uploads a text, and returns its id.
fn upload(client: &Client, content: &str) -> String {
    let body = json!({"name": "in.txt", "size_bytes": content.len()}).to_string();
    let made = client.post("/v1/artifacts", &body).json();
    let put = client.send("PUT", &text(&made["upload"]["url"]), "", content).expect("an answer");
    assert_eq!(put.status, 200, "{put:?}");
    let id = text(&made["id"]);
    let hash = json!({"sha256": sha256_of(content)}).to_string();
    assert_eq!(client.post(&format!("/v1/artifacts/{id}/finalize"), &hash).status, 200);
    id
}

pub(crate) fn sha256_of(content: &str) -> String {
    let mut child =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sha256sum");
    std::io::Write::write_all(&mut child.stdin.take().expect("its input"), content.as_bytes())
        .expect("a write");
    let output = child.wait_with_output().expect("its output");
    String::from_utf8_lossy(&output.stdout).split(' ').next().expect("a hash").to_owned()
}

/// Every file of an artifact in the folder.
fn files(data: &Path) -> Vec<PathBuf> {
    let output =
        Command::new("find").arg(data.join("artifacts")).args(["-mindepth", "2", "-type", "f"]).output();
    let output = output.expect("find");
    String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_a_job_leaves_is_there_when_it_has_ended() {
    let (folder, server) = server();
    check_what_is_left(&Client::of(&server), folder.path());
}

pub(crate) fn check_what_is_left(client: &Client, data: &Path) {
    let code = "mkdir -p .artifacts/deep; printf one > .artifacts/a.txt; printf two > .artifacts/deep/b.txt; \
                ln -s /etc/passwd .artifacts/link; mkfifo .artifacts/pipe; : > .artifacts/empty";
    let job = run(client, &json!({"command": code}));
    assert_eq!(job["status"]["state"], "succeeded", "{job}");
    let result = &job["result"];
    let listed: Vec<_> = result["artifacts"].as_array().expect("a list").iter().collect();
    let shown: Vec<_> = listed.iter().map(|a| (text(&a["path"]), a["size_bytes"].as_u64())).collect();
    let expected = [("a.txt", 3), ("deep/b.txt", 3), ("empty", 0)];
    assert_eq!(shown, expected.map(|(path, size)| (path.to_owned(), Some(size))), "{result}");
    assert_eq!(result["artifacts_skipped"].as_array().map(Vec::len), Some(2), "{result}");
    for (artifact, content) in listed.iter().zip(["one", "two", ""]) {
        let got = client.get(&format!("/v1/artifacts/{}/content", text(&artifact["id"])));
        assert_eq!((got.status, got.body.as_str()), (200, content));
        assert_eq!(text(&artifact["sha256"]), sha256_of(content));
    }
    let id = text(&job["id"]);
    let of_job = client.get(&format!("/v1/jobs/{id}/artifacts")).json();
    let mut names: Vec<_> =
        of_job["artifacts"].as_array().expect("a list").iter().map(|a| text(&a["name"])).collect();
    names.sort();
    assert_eq!(names, ["a.txt", "deep/b.txt", "empty"]);
    assert_eq!(client.get("/v1/jobs/job-aaaaaaaaaaaaaaaa/artifacts").status, 404);
    // They go with the job.
    assert_eq!(delete(client, &format!("/v1/jobs/{id}")), 204);
    assert_eq!(client.get(&format!("/v1/artifacts/{}", text(&listed[0]["id"]))).status, 404);
    until("their bytes are gone", || files(data).is_empty());
}

#[test]
fn an_artifact_goes_into_a_job() {
    let (_folder, server) = server();
    check_what_is_given(&Client::of(&server));
}

pub(crate) fn check_what_is_given(client: &Client) {
    let id = upload(client, "from an artifact");
    let files = json!([{"path": "in/a.txt", "artifact": id}, {"path": "b.txt", "content": "inline"}]);
    let job = run(
        client,
        &json!({"language": "python",
        "code": "print(open('in/a.txt').read(), open('b.txt').read())", "files": files}),
    );
    assert_eq!(job["result"]["stdout"], "from an artifact inline\n", "{job}");
    // What one job leaves, the next one takes.
    let first = run(client, &json!({"command": "echo passed on > .artifacts/x"}));
    let passed = text(&first["result"]["artifacts"][0]["id"]);
    let next = run(client, &json!({"command": "cat y", "files": [{"path": "y", "artifact": passed}]}));
    assert_eq!(next["result"]["stdout"], "passed on\n");
    for (file, field) in [
        (json!({"path": "a", "artifact": "art-aaaaaaaaaaaaaaaa"}), "files[0].artifact"),
        (json!({"path": "a", "artifact": "../x"}), "files[0].artifact"),
        (json!({"path": "a", "artifact": id, "content": "x"}), "files[0].content"),
    ] {
        let answer = client.post("/v1/jobs", &json!({"command": "true", "files": [file]}).to_string());
        let error = &answer.json()["error"];
        assert_eq!((answer.status, error["details"]["field"].as_str()), (422, Some(field)), "{error}");
    }
}

/// An artifact that goes while the job waits: the job ends and says why.
#[test]
fn an_artifact_that_is_gone_by_then_is_named() {
    let folder = Folder::new("gone");
    let server = Server::start(folder.path(), &["--slots", "1"]);
    let client = Client::of(&server);
    let id = upload(&client, "soon gone");
    let running = client.post("/v1/jobs", r#"{"command":"sleep 60"}"#).json();
    let waiting = json!({"command": "cat y", "files": [{"path": "y", "artifact": id}]});
    let waiting = client.post("/v1/jobs", &waiting.to_string()).json();
    assert_eq!(waiting["status"]["state"], "queued", "{waiting}");
    assert_eq!(delete(&client, &format!("/v1/artifacts/{id}")), 204);
    client.post(&format!("/v1/jobs/{}/cancel", text(&running["id"])), "");
    let path = format!("/v1/jobs/{}", text(&waiting["id"]));
    until("it ends", || client.get(&path).json()["status"]["state"] == "errored");
    let status = client.get(&path).json()["status"].clone();
    assert_eq!(status["reason"], "files_refused", "{status}");
    assert!(text(&status["message"]).contains(&id), "{status}");
}

fn memory_peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["-sS", "-f"]).args(arguments).output().expect("curl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const LARGE: u64 = 300 << 20;

/// Up, down, out of a sandbox and into one: the server never holds the whole.
#[test]
fn what_is_large_does_not_go_through_memory() {
    let (folder, server) = server();
    let client = Client::of(&server);
    run(&client, &json!({"command": "true"}));
    let before = memory_peak(&server);
    // Nothing that compresses or repeats, so that no part could stand for another.
    let job = run(
        &client,
        &json!({
            "command": format!("openssl enc -aes-128-ctr -pass pass:x -nosalt -pbkdf2 -in /dev/zero 2>/dev/null \
                                | head -c {LARGE} > .artifacts/large; sha256sum < .artifacts/large"),
            "limits": {"disk_bytes": 1u64 << 30},
        }),
    );
    let made = &job["result"]["artifacts"][0];
    assert_eq!(made["size_bytes"].as_u64(), Some(LARGE), "{job}");
    let hash = text(&made["sha256"]);
    assert!(text(&job["result"]["stdout"]).starts_with(&hash), "{job}");

    let file = folder.path().join("large");
    let (key, base) = (format!("X-API-Key: {}", server.key), format!("http://{}", server.address));
    let content = format!("{base}/v1/artifacts/{}/content", text(&made["id"]));
    curl(&["-H", &key, "-o", &file.to_string_lossy(), &content]);
    let summed = Command::new("sha256sum").arg(&file).output().expect("sha256sum");
    assert!(String::from_utf8_lossy(&summed.stdout).starts_with(&hash));

    let body = json!({"name": "large", "size_bytes": LARGE, "sha256": hash}).to_string();
    let announced = client.post("/v1/artifacts", &body).json();
    curl(&["-T", &file.to_string_lossy(), &format!("{base}{}", text(&announced["upload"]["url"]))]);
    let id = text(&announced["id"]);
    assert_eq!(client.post(&format!("/v1/artifacts/{id}/finalize"), "").status, 200);
    let job = run(
        &client,
        &json!({
            "command": "sha256sum < in", "files": [{"path": "in", "artifact": id}],
            "limits": {"disk_bytes": 1u64 << 30},
        }),
    );
    assert!(text(&job["result"]["stdout"]).starts_with(&hash), "{job}");
    let grown = memory_peak(&server).saturating_sub(before);
    println!("the peak was {} MiB and grew by {} MiB", memory_peak(&server) >> 20, grown >> 20);
    assert!(grown < 100 << 20, "it grew by {} MiB", grown >> 20);
}

const KILLS: u64 = 12;

/// Uploads over and over, and returns what was acknowledged as ready.
fn upload_until_killed(client: &Client, address: &str, file: &Path, size: u64, hash: &str) -> Vec<String> {
    let mut acknowledged = Vec::new();
    loop {
        let body = json!({"name": "x", "size_bytes": size, "sha256": hash}).to_string();
        let Ok(made) = client.send("POST", "/v1/artifacts", "", &body) else { return acknowledged };
        let Ok(made) = serde_json::from_str::<Value>(&made.body) else { return acknowledged };
        let url = format!("http://{address}{}", text(&made["upload"]["url"]));
        let put = Command::new("curl").args(["-sf", "-o", "/dev/null", "-T"]).arg(file).arg(url).status();
        if !put.is_ok_and(|status| status.success()) {
            return acknowledged;
        }
        let id = text(&made["id"]);
        match client.send("POST", &format!("/v1/artifacts/{id}/finalize"), "", "") {
            Ok(answer) if answer.status == 200 => acknowledged.push(id),
            _ => return acknowledged,
        }
    }
}

/// I6, and nothing else: what was acknowledged is there with its bytes, and nothing stays that was not.
#[test]
fn a_kill_during_an_upload_loses_nothing_and_leaves_nothing() {
    let folder = Folder::new("uploads");
    let size = 20u64 << 20;
    let file = folder.path().join("file");
    let content: Vec<u8> = (0..size).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&file, &content).expect("a file");
    let summed = Command::new("sha256sum").arg(&file).output().expect("sha256sum");
    let hash = String::from_utf8_lossy(&summed.stdout)[..64].to_owned();
    let mut acknowledged = Vec::new();
    let mut cut_off = 0;
    for kill in 0..KILLS {
        let server = Server::start(folder.path(), &[]);
        let (client, address) = (Client::of(&server), server.address.to_string());
        let before = files(folder.path()).len();
        let (path, hash) = (file.clone(), hash.clone());
        let uploads = thread::spawn(move || upload_until_killed(&client, &address, &path, size, &hash));
        // At another moment each time, but never before there is anything to lose.
        until("bytes arrive", || files(folder.path()).len() > before || uploads.is_finished());
        thread::sleep(Duration::from_millis(kill * 37 % 400));
        server.kill();
        acknowledged.extend(uploads.join().expect("the client"));
    }
    let known = files(folder.path());
    // The time of what was never finalised is over.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store =
            Store::open(&Location::Sqlite(folder.path().join("cofferdam.db"))).await.expect("the store");
        let in_two_hours = cofferdam_control::now_ms() + 7_200_000;
        cut_off += store.expire_artifacts(in_two_hours, 1000).await.expect("expired");
        store.close().await;
    });
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    println!("{} acknowledged, {cut_off} cut off, {} files", acknowledged.len(), known.len());
    assert!(cut_off > 0, "no kill hit an upload");
    let segments = size.div_ceil(8 << 20) as usize;
    let listed = || {
        let answer = client.get("/v1/artifacts?limit=500").json();
        let all = answer["artifacts"].as_array().cloned().unwrap_or_default();
        all.iter().map(|artifact| text(&artifact["id"])).collect::<Vec<_>>()
    };
    until("only what can be read is left", || files(folder.path()).len() == listed().len() * segments);
    for id in &acknowledged {
        let content = folder.path().join("got");
        let url = format!("http://{}/v1/artifacts/{id}/content", server.address);
        curl(&["-H", &format!("X-API-Key: {}", server.key), "-o", &content.to_string_lossy(), &url]);
        assert!(std::fs::read(&content).expect("a file") == std::fs::read(&file).expect("a file"), "{id}");
    }
    let listed = listed();
    assert!(acknowledged.iter().all(|id| listed.contains(id)), "{acknowledged:?} of {listed:?}");
    // Of each server at most one was kept whose answer was cut off.
    assert!(listed.len() <= acknowledged.len() + KILLS as usize, "{} are left", listed.len());
}
