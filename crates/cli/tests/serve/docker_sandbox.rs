//! Jobs that bring their container with them, on a dockerd of the test's own.

use crate::backends::{Daemon, store};
use crate::client::{Answer, Client};
use crate::server::{Folder, Server};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The first one waits for the daemon to take the image and the helper.
const PATIENCE: Duration = Duration::from_secs(240);

fn body(sandbox: &Value) -> Value {
    let mut sandbox = sandbox.clone();
    sandbox["image"] = json!("app:1");
    json!({"execution_mode": "docker-sandbox", "sandbox": sandbox})
}

fn id(made: &Answer) -> String {
    made.json()["id"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
}

fn wait(client: &Client, id: &str, done: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let job = client.get(&format!("/v1/jobs/{id}")).json();
        if done(&job) {
            return job;
        }
        assert!(Instant::now() < deadline, "{job}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs a job to its end.
fn run(client: &Client, request: &Value) -> Value {
    let id = id(&client.post("/v1/jobs", &request.to_string()));
    wait(client, &id, |job| !job["result"].is_null())
}

/// The entry of the audit on how a job ended.
fn finished(client: &Client, job: &Value) -> Value {
    let audit = client.get("/v1/audit?limit=500").json();
    let mut entries = audit["entries"].as_array().expect("entries").iter();
    let entry = entries.find(|entry| entry["kind"] == "job.finished" && entry["resource"] == job["id"]);
    entry.unwrap_or_else(|| panic!("{audit}"))["details"].clone()
}

pub(crate) fn containers(folder: &Path) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-s", "--unix-socket"]).arg(folder.join("socket"));
    let output = curl.arg("http://daemon/containers/json?all=true").output().expect("curl");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A container goes a moment after its job has ended.
pub(crate) fn wait_for_none(folder: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while containers(folder).contains("cofferdam-sbx-") {
        assert!(Instant::now() < deadline, "{}", containers(folder));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn start(folder: &Path, images: &str, more: &[&str]) -> Server {
    let socket = format!("backends.docker_socket={}", folder.join("socket").display());
    let roots = format!("backends.mount_roots={0}/data,{0}/out:rw", folder.join("host").display());
    let mut options =
        vec!["--set", "backends.images=true", "--set", "backends.enabled=native,docker", "--set", &socket];
    // What is left is counted: nothing may wait.
    options.extend(["--set", &roots, "--set", "backends.waiting=0"]);
    options.extend(more);
    Server::start_in(&folder.join("server"), &options, &[("COFFERDAM_IMAGES", images)])
}

/// Folders to mount, and some that are not to be.
fn host(folder: &Path) {
    let host = folder.join("host");
    for name in ["data/in", "out", "outside", "project"] {
        fs::create_dir_all(host.join(name)).expect("a folder");
        fs::write(host.join(name).join("file"), format!("{name}\n")).expect("a file");
    }
    fs::set_permissions(host.join("out"), Permissions::from_mode(0o777)).expect("a mode");
    symlink("../outside", host.join("data/way-out")).expect("a link");
    symlink("in", host.join("data/way-in")).expect("a link");
}

#[test]
fn a_job_brings_its_container_with_it() {
    let folder = Folder::new("sandbox");
    let images = store(folder.path());
    let _daemon = Daemon::start(folder.path());
    host(folder.path());
    let server = start(folder.path(), &images, &[]);
    let client = Client::of(&server);
    it_runs_and_the_audit_says_where(&client);
    its_workspace_is_where_it_starts(&client);
    folders_are_mounted(&client, &folder.path().join("host"));
    what_is_not_allowed_is_refused_before_there_is_a_container(&client, folder.path());
    a_cancelled_one_is_removed(&client, folder.path());
    let tenants = client.get("/v1/tenants").json();
    let tenant = tenants["tenants"][0]["id"].as_str().unwrap_or_else(|| panic!("{tenants}")).to_owned();
    drop(server);
    let project = format!("backends.project_roots={tenant}={}/host/project", folder.path().display());
    let server = start(folder.path(), &images, &["--set", &project]);
    a_tenant_sees_its_project(&Client::of(&server));
    // Of this server: others may be at it on the same machine.
    let own = format!(":{}:", server.id());
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.lines().any(|line| line.contains("/docker/mounts/") && line.contains(&own)), "{mounts}");
}

fn it_runs_and_the_audit_says_where(client: &Client) {
    let command = json!(["sh", "-c", "cat /etc/motd; id -u; pwd; echo $GREETING"]);
    let job = run(client, &body(&json!({"command": command, "env": {"GREETING": "hello"}})));
    assert_eq!(job["result"]["stdout"], "from the store\n1000\n/workspace\nhello\n", "{job}");
    assert_eq!(job["status"]["state"], "succeeded");
    assert_eq!(job["result"]["isolation"]["backend"], "docker");
    let container = &job["result"]["container_id"];
    assert_eq!(container.as_str().map(str::len), Some(64), "{job}");
    let details = finished(client, &job);
    assert_eq!((&details["container_id"], &details["exit_code"]), (container, &json!(0)), "{details}");
    // A line for a shell, and another end.
    let job = run(client, &body(&json!({"command": "exit 3"})));
    assert_eq!(
        (&job["status"]["state"], &job["result"]["exit_code"]),
        (&json!("failed"), &json!(3)),
        "{job}"
    );
    let details = finished(client, &job);
    assert_eq!((&details["reason"], &details["exit_code"]), (&json!("exited"), &json!(3)), "{details}");
    assert!(details["container_id"].is_string(), "{details}");
    // One that never had a container says why.
    let mut missing = body(&json!({"command": "true"}));
    missing["sandbox"]["image"] = json!("nowhere:1");
    let job = run(client, &missing);
    let details = finished(client, &job);
    assert_eq!((&details["state"], &details["reason"]), (&json!("errored"), &json!("image_not_found")));
    assert!(details.get("container_id").is_none() && details["exit_code"].is_null(), "{details}");
    // The native ones have no container.
    let direct = run(client, &json!({"execution_mode": "direct", "command": "echo on"}));
    assert_eq!((&direct["result"]["stdout"], direct["result"].get("container_id")), (&json!("on\n"), None));
    assert_eq!(direct["result"]["isolation"]["backend"], "native");
}

fn its_workspace_is_where_it_starts(client: &Client) {
    let command = "pwd; cat in.txt; echo out > out.txt; cat /workspace/out.txt";
    for start in ["/app", "/workspace/deep", "/tmp/x"] {
        let mut request = body(&json!({"command": command, "workdir": start}));
        let at = if start == "/workspace/deep" { "deep/in.txt" } else { "in.txt" };
        request["files"] = json!([{"path": at, "content": "brought\n"}]);
        let job = run(client, &request);
        let said = job["result"]["stdout"].as_str().unwrap_or_else(|| panic!("{job}"));
        match start {
            "/app" => assert_eq!(said, "/app\nbrought\nout\n", "{job}"),
            "/workspace/deep" => assert_eq!(said, "/workspace/deep\nbrought\n", "{job}"),
            _ => assert_eq!(said, "/tmp/x\n", "{job}"),
        }
    }
}

fn folders_are_mounted(client: &Client, host: &Path) {
    let at = |name: &str| host.join(name).to_string_lossy().into_owned();
    let command = "cat file /in/file; touch /in/x 2> /dev/null || echo refused; echo made > /out/made; touch a || echo not here";
    let request = body(&json!({
        "command": command, "workdir": "/data",
        "mounts": [
            {"source": at("data/in"), "target": "/data"}, {"source": at("data/way-in"), "target": "/in"},
            {"source": at("out"), "target": "/out", "read_only": false},
        ],
    }));
    let job = run(client, &request);
    assert_eq!(job["result"]["stdout"], "data/in\ndata/in\nrefused\nnot here\n", "{job}");
    assert_eq!(fs::read_to_string(host.join("out/made")).expect("what it made"), "made\n");
    let audit = client.get("/v1/audit?limit=500").json();
    let mut entries = audit["entries"].as_array().expect("entries").iter();
    let accepted = entries
        .find(|entry| entry["kind"] == "job.accepted" && entry["resource"] == job["id"])
        .expect("an entry");
    assert_eq!(accepted["details"]["mounts"][0]["read_only"], true, "{accepted}");
    assert_eq!(accepted["details"]["mounts"][2]["source"], at("out"), "{accepted}");
}

fn what_is_not_allowed_is_refused_before_there_is_a_container(client: &Client, folder: &Path) {
    let at = |name: &str| folder.join("host").join(name).to_string_lossy().into_owned();
    let mount = |source: &str| json!({"command": "true", "mounts": [{"source": source, "target": "/in"}]});
    wait_for_none(folder);
    let count = || client.get("/v1/jobs?limit=200").json()["jobs"].as_array().map(Vec::len);
    let before = count();
    for source in ["/etc".to_owned(), at("outside"), at("data/way-out"), at("data2")] {
        let answer = client.post("/v1/jobs", &body(&mount(&source)).to_string());
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (403, &json!("denied")), "{source}: {error}");
        let text = error["message"].as_str().unwrap_or_default();
        assert!(text.contains("sandbox.mounts[0].source") && text.contains(&source), "{error}");
        let audit = client.get("/v1/audit?limit=500").json();
        let mut entries = audit["entries"].as_array().expect("entries").iter();
        let is_noted = |entry: &Value| entry["kind"] == "denied" && entry.to_string().contains(&source);
        assert!(entries.any(is_noted), "{source}: {audit}");
    }
    let mut writes = mount(&at("data/in"));
    writes["mounts"][0]["read_only"] = json!(false);
    assert_eq!(client.post("/v1/jobs", &body(&writes).to_string()).status, 403);
    for (source, word) in [(at("data/missing"), "no such folder"), (at("data/in/file"), "not a folder")] {
        let answer = client.post("/v1/jobs", &body(&mount(&source)).to_string());
        assert_eq!((answer.status, answer.body.contains(word)), (422, true), "{answer:?}");
    }
    let answer = client.post("/v1/jobs", r#"{"execution_mode": "kvm", "command": "true"}"#);
    assert_eq!((answer.status, answer.body.contains("kvm")), (422, true), "{answer:?}");
    assert_eq!((count(), before.is_some()), (before, true), "a job was kept");
    assert!(!containers(folder).contains("cofferdam-sbx-"), "{}", containers(folder));
}

fn a_cancelled_one_is_removed(client: &Client, folder: &Path) {
    let made = client.post("/v1/jobs", &body(&json!({"command": "echo standing; sleep 1000"})).to_string());
    let id = id(&made);
    let output = || client.get(&format!("/v1/jobs/{id}/output?follow=false")).body;
    let deadline = Instant::now() + PATIENCE;
    while !output().contains("standing") {
        assert!(Instant::now() < deadline, "{}", output());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(containers(folder).contains("cofferdam-sbx-"), "{}", containers(folder));
    assert_eq!(client.post(&format!("/v1/jobs/{id}/cancel"), "").status, 202);
    let job = wait(client, &id, |job| !job["result"].is_null());
    assert_eq!(job["status"]["state"], "cancelled", "{job}");
    assert!(finished(client, &job)["container_id"].is_string());
    wait_for_none(folder);
}

fn a_tenant_sees_its_project(client: &Client) {
    let command = "pwd; cat file; touch x 2> /dev/null || echo refused; touch /workspace/x && echo room";
    for (sandbox, start) in
        [(json!({"command": command}), "/project"), (json!({"command": command, "workdir": "/src"}), "/src")]
    {
        let job = run(client, &body(&sandbox));
        assert_eq!(job["result"]["stdout"], format!("{start}\nproject\nrefused\nroom\n"), "{job}");
    }
}

#[test]
fn a_service_without_docker_says_what_to_configure() {
    let folder = Folder::new("no-docker");
    let server = Server::start(&folder.path().join("data"), &[]);
    let client = Client::of(&server);
    let answer = client.post("/v1/jobs", &body(&json!({"command": "true"})).to_string());
    let error = answer.json()["error"].clone();
    assert_eq!((answer.status, &error["code"]), (422, &json!("unsupported")), "{error}");
    let text = error.to_string();
    assert!(text.contains("execution_mode") && text.contains("backends.enabled"), "{error}");
}
