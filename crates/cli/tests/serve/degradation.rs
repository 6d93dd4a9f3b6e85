//! What is answered while something is wrong, with the fault itself: each verb at each gate, and that it is noticed
//! when it is over.

use crate::client::{Answer, Client};
use crate::postgres;
use crate::server::{Folder, Server};
use cofferdam_control::{Gate, cell};
use cofferdam_policy::Action;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

#[allow(dead_code)]
#[path = "../../../artifacts/tests/places/s3.rs"]
mod s3;

const PRINT: &str = r#"{"language":"python","code":"print(1)"}"#;

/// How long a fault and its end may take to be noticed; the documentation says seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request of each verb. Whether it finds what it names does not matter here.
fn request(action: Action) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match action {
        Action::JobCreate => ("POST", "/v1/jobs", PRINT),
        Action::JobGet => ("GET", "/v1/jobs/job-none", ""),
        Action::JobList => ("GET", "/v1/jobs", ""),
        Action::JobCancel => ("POST", "/v1/jobs/job-none/cancel", ""),
        Action::JobDelete => ("DELETE", "/v1/jobs/job-none", ""),
        Action::AuditList => ("GET", "/v1/audit", ""),
        Action::KeyCreate => ("POST", "/v1/keys", r#"{"name":"a","scopes":["jobs:read"]}"#),
        Action::KeyList => ("GET", "/v1/keys", ""),
        Action::KeyDelete => ("DELETE", "/v1/keys/key-none", ""),
        Action::ReceiptGet => ("GET", "/v1/jobs/job-none/receipt", ""),
        Action::AuditHead => ("GET", "/v1/audit/head", ""),
        Action::AuditExport => ("GET", "/v1/audit/export", ""),
        Action::ArtifactCreate => ("POST", "/v1/artifacts", r#"{"name":"a","size_bytes":1}"#),
        Action::ArtifactGet => ("GET", "/v1/artifacts/art-none", ""),
        Action::ArtifactList => ("GET", "/v1/artifacts", ""),
        Action::ArtifactLink => ("POST", "/v1/artifacts/art-none/url", "{}"),
        Action::ArtifactDelete => ("DELETE", "/v1/artifacts/art-none", ""),
        Action::TenantCreate => ("POST", "/v1/tenants", r#"{"name":"another"}"#),
        Action::TenantList => ("GET", "/v1/tenants", ""),
        Action::TenantGet => ("GET", "/v1/tenants/ten-none", ""),
        Action::TenantUpdate => ("PATCH", "/v1/tenants/ten-none", r#"{"quotas":{}}"#),
        Action::TenantDelete => ("DELETE", "/v1/tenants/ten-none", ""),
        Action::MetricsRead => ("GET", "/metrics", ""),
        Action::WorkerList => ("GET", "/v1/workers", ""),
        Action::SessionCreate => ("POST", "/v1/sessions", "{}"),
        Action::SessionGet => ("GET", "/v1/sessions/ses-none", ""),
        Action::SessionList => ("GET", "/v1/sessions", ""),
        Action::SessionExtend => ("POST", "/v1/sessions/ses-none/extend", r#"{"ttl_seconds":1}"#),
        Action::SessionDelete => ("DELETE", "/v1/sessions/ses-none", ""),
        Action::StepCreate => ("POST", "/v1/sessions/ses-none/steps", r#"{"command":"true"}"#),
        Action::StepGet => ("GET", "/v1/sessions/ses-none/steps/stp-none", ""),
        Action::StepList => ("GET", "/v1/sessions/ses-none/steps", ""),
        Action::StepInterrupt => ("POST", "/v1/sessions/ses-none/steps/stp-none/interrupt", ""),
        Action::ContextRestart => {
            ("POST", "/v1/sessions/ses-none/contexts/default/restart", r#"{"language":"python"}"#)
        }
        Action::FileRead => ("GET", "/v1/sessions/ses-none/files/stat?path=a", ""),
        Action::FileWrite => ("POST", "/v1/sessions/ses-none/files/mkdir", r#"{"path":"a"}"#),
        Action::ProcessStart => ("POST", "/v1/sessions/ses-none/processes", r#"{"command":"true"}"#),
        Action::ProcessGet => ("GET", "/v1/sessions/ses-none/processes", ""),
        Action::ProcessWrite => ("POST", "/v1/sessions/ses-none/processes/1/signal", r#"{"signal":1}"#),
        Action::SessionPause => ("POST", "/v1/sessions/ses-none/pause", r#"{"mode":"freeze"}"#),
        Action::SessionResume => ("POST", "/v1/sessions/ses-none/resume", ""),
        Action::SessionFork => ("POST", "/v1/sessions/ses-none/fork", r#"{"count":1}"#),
        Action::SnapshotCreate => ("POST", "/v1/sessions/ses-none/snapshots", r#"{"name":"a"}"#),
        Action::SnapshotList => ("GET", "/v1/snapshots", ""),
        Action::SnapshotDelete => ("DELETE", "/v1/snapshots/snp-none", ""),
        Action::SecretPut => ("PUT", "/v1/secrets/a", r#"{"value":"x"}"#),
        Action::SecretList => ("GET", "/v1/secrets", ""),
        Action::SecretDelete => ("DELETE", "/v1/secrets/none", ""),
        Action::ImageRegister => ("POST", "/v1/images", r#"{"name":"a","profiles":["base-tools"]}"#),
        Action::ImageList => ("GET", "/v1/images", ""),
        Action::ImageGet => ("GET", "/v1/images/img-none", ""),
        Action::ImageCheck => ("POST", "/v1/images/img-none/check", ""),
        Action::ImageUnregister => ("DELETE", "/v1/images/img-none", ""),
        // It does not end; its head is all that is looked at. And what is a part of another request.
        Action::EventList | Action::SecretUse | Action::ImagePublish | Action::ImageWithdraw => return None,
    })
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn gates(ready: &Answer) -> Vec<String> {
    let gates = ready.json()["error"]["details"]["gates"].clone();
    let names = gates.as_array().into_iter().flatten().filter_map(|gate| gate["gate"].as_str());
    names.map(str::to_owned).collect()
}

/// Checks every cell of a gate's column, once the fault was noticed.
fn check_column(client: &Client, gate: Gate) {
    // The first to meet the fault is refused as well, and makes it known.
    let first = client.post("/v1/jobs", PRINT);
    assert_eq!(first.status, 503, "{first:?}");
    assert_eq!(
        (&first.json()["error"]["code"], &first.json()["error"]["retryable"]),
        (&"unavailable".into(), &true.into())
    );
    check_cells(client, gate);
}

/// The same once somebody has met the fault.
fn check_cells(client: &Client, gate: Gate) {
    wait_until("the closing of a gate", || gates(&client.get("/readyz")) == [gate.as_str()]);
    let ready = client.get("/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.json()["error"]["details"]["gates"][0]["since"].is_string(), "{ready:?}");
    assert_eq!(client.get("/healthz").status, 200);
    for action in Action::ALL {
        let Some((method, path, body)) = request(action) else { continue };
        let answer = client.send(method, path, "", body).expect("an answer");
        match cell(gate, action) {
            None => assert!(answer.status < 500, "{action:?}: {answer:?}"),
            Some(refusal) => {
                let error = &answer.json()["error"];
                assert_eq!((answer.status, error["code"].as_str()), (503, Some("unavailable")), "{action:?}");
                assert_eq!(error["details"]["gate"], gate.as_str(), "{action:?}: {error}");
                assert_eq!(error["retryable"], true);
                let seconds = answer.header("retry-after").map(str::to_owned);
                assert_eq!(seconds, Some(refusal.retry_after_seconds.to_string()), "{action:?}");
            }
        }
    }
}

fn metric(client: &Client, gate: Gate) -> bool {
    let line = format!("cofferdam_gate_closed{{gate=\"{}\"}} 1", gate.as_str());
    client.get("/metrics").body.lines().any(|known| known == line)
}

/// The end of a fault: work is taken again, and what was accepted before is there.
fn check_recovery(client: &Client, kept: &str) {
    wait_until("the opening of the gate", || client.get("/readyz").status == 200);
    let ran = client.post("/v1/jobs?wait_ms=30000", PRINT);
    assert_eq!((ran.status, ran.json()["result"]["stdout"].as_str()), (200, Some("1\n")), "{ran:?}");
    let job = client.get(&format!("/v1/jobs/{kept}"));
    assert_eq!((job.status, job.json()["status"]["state"].as_str()), (200, Some("succeeded")), "{job:?}");
    let jobs = client.get("/v1/jobs").json()["jobs"].as_array().map(Vec::len);
    assert_eq!(jobs, Some(2), "nothing was accepted that was answered with an error");
}

fn run_one(client: &Client) -> String {
    let ran = client.post("/v1/jobs?wait_ms=30000", PRINT);
    assert_eq!(ran.status, 200, "{ran:?}");
    ran.json()["id"].as_str().expect("an id").to_owned()
}

fn command(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().expect(words[0]);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A file that cannot be written any more, whoever has it open.
struct Immutable(PathBuf);

impl Immutable {
    fn make(path: PathBuf) -> Self {
        command(&["chattr", "+i", path.to_str().expect("a path")]);
        Self(path)
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).status();
    }
}

#[test]
fn a_store_that_takes_no_writes_is_read() {
    let folder = Folder::new("read-only");
    let mut server = Server::start(folder.path(), &["--metrics-listen", "127.0.0.1:0"]);
    let client = Client::of(&server);
    let metrics = client.at(server.metrics_address());
    let kept = run_one(&client);
    let fault = Immutable::make(folder.path().join("cofferdam.db-wal"));
    check_column(&client, Gate::StoreReadOnly);
    assert!(metric(&metrics, Gate::StoreReadOnly));
    let shown = client.get(&format!("/v1/jobs/{kept}"));
    assert_eq!(shown.json()["result"]["stdout"], "1\n", "reads are served");
    drop(fault);
    check_recovery(&client, &kept);
    assert!(!metric(&metrics, Gate::StoreReadOnly));
}

/// A filesystem of a few MiB, gone with the test.
struct SmallDisk<'f>(&'f Path);

impl<'f> SmallDisk<'f> {
    fn mount(path: &'f Path) -> Self {
        command(&[
            "mount",
            "-t",
            "tmpfs",
            "-o",
            "size=8m,mode=700",
            "cofferdam-test",
            path.to_str().expect("a path"),
        ]);
        Self(path)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_store_without_room_is_read() {
    let folder = Folder::new("full");
    let disk = SmallDisk::mount(folder.path());
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let kept = run_one(&client);
    let rest = folder.path().join("rest");
    // Until there is no room for anything.
    let filled =
        Command::new("dd").args(["if=/dev/zero", "bs=4096"]).arg(format!("of={}", rest.display())).output();
    assert!(String::from_utf8_lossy(&filled.expect("dd").stderr).contains("No space left"));
    // What the log of the database has room for may still be written.
    wait_until("the disk to be full", || {
        client.post("/v1/keys", r#"{"name":"a","scopes":["jobs:read"]}"#).status == 503
    });
    check_column(&client, Gate::StoreFull);
    assert_eq!(client.get(&format!("/v1/jobs/{kept}")).json()["result"]["stdout"], "1\n", "reads are served");
    std::fs::remove_file(rest).expect("the file that fills it");
    check_recovery(&client, &kept);
    assert_eq!(server.stop(), Some(0));
    drop(disk);
}

#[test]
fn a_store_that_is_away_is_noticed_and_so_is_its_return() {
    let folder = Folder::new("away");
    let mut database = postgres::Server::start();
    let address = database.address("postgres");
    let options = ["--database", &address, "--metrics-listen", "127.0.0.1:0"];
    let mut server = Server::start(folder.path(), &options);
    let client = Client::of(&server);
    let metrics = client.at(server.metrics_address());
    let kept = run_one(&client);
    database.order("stop");
    check_column(&client, Gate::StoreUnreachable);
    // Only here: with the store the keys are away, too.
    assert!(metric(&metrics, Gate::StoreUnreachable));
    let began = Instant::now();
    assert_eq!(client.get("/v1/jobs").status, 503);
    assert!(began.elapsed() < Duration::from_secs(3), "a known fault is told at once");
    database.order("start");
    check_recovery(&client, &kept);
    assert_eq!(server.stop(), Some(0));
}

/// PostgreSQL that only reads, as after a failover.
#[test]
fn a_database_that_only_reads_is_read() {
    let folder = Folder::new("standby");
    let database = postgres::Server::start();
    let address = database.address("postgres");
    let server = Server::start(folder.path(), &["--database", &address]);
    let client = Client::of(&server);
    let kept = run_one(&client);
    let set = |value: &str| {
        let change = format!("ALTER DATABASE postgres SET default_transaction_read_only = {value}");
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres' \
                   AND pid <> pg_backend_pid()";
        command(&[
            "psql",
            "-q",
            &address,
            "-c",
            "SET default_transaction_read_only = off",
            "-c",
            &change,
            "-c",
            end,
        ]);
    };
    set("on");
    check_column(&client, Gate::StoreReadOnly);
    set("off");
    check_recovery(&client, &kept);
}

#[test]
fn without_a_launcher_no_work_is_taken_and_the_rest_is_served() {
    let folder = Folder::new("launcher");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    run_one(&client);
    // The launcher is the server's only child that has its name.
    let children =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.id())).expect("children");
    for child in children.split_whitespace() {
        command(&["kill", "-KILL", child]);
    }
    wait_until("the closing of a gate", || gates(&client.get("/readyz")) == ["backend_unhealthy"]);
    check_column(&client, Gate::BackendUnhealthy);
}

/// Announces an artifact and sends its bytes.
fn upload(client: &Client) -> Answer {
    let made = client.post("/v1/artifacts", r#"{"name":"a","size_bytes":1}"#);
    let url = made.json()["upload"]["url"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
    client.send("PUT", &url, "", "x").expect("an answer")
}

/// Met by an upload, noticed by all; over as soon as it is over.
fn check_artifacts_down(client: &Client, kept: &str, mend: impl FnOnce()) {
    let met = upload(client);
    assert_eq!((met.status, met.json()["error"]["code"].as_str()), (503, Some("unavailable")), "{met:?}");
    check_cells(client, Gate::ArtifactsDown);
    assert_eq!(client.get(&format!("/v1/jobs/{kept}")).json()["result"]["stdout"], "1\n", "reads are served");
    mend();
    check_recovery(client, kept);
    assert_eq!(upload(client).status, 200);
}

#[test]
fn a_folder_of_artifacts_that_takes_no_writes_is_noticed() {
    let folder = Folder::new("artifacts-read-only");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let kept = run_one(&client);
    let job = client.post("/v1/jobs", r#"{"command":"sleep 3; echo left > .artifacts/one; echo 1"}"#).json();
    wait_until("the job to run", || {
        let path = format!("/v1/jobs/{}", job["id"].as_str().expect("an id"));
        client.get(&path).json()["status"]["state"] == "running"
    });
    let fault = Immutable::make(folder.path().join("artifacts"));
    let met = upload(&client);
    assert_eq!((met.status, met.json()["error"]["code"].as_str()), (503, Some("unavailable")), "{met:?}");
    check_cells(&client, Gate::ArtifactsDown);
    // What ran goes on, and says what could not be kept.
    let path = format!("/v1/jobs/{}", job["id"].as_str().expect("an id"));
    wait_until("the job to end", || client.get(&path).json()["status"]["state"] == "succeeded");
    let warning = client.get(&path).json()["result"]["warnings"][0].as_str().unwrap_or_default().to_owned();
    assert!(warning.contains("one"), "{warning}");
    drop(fault);
    wait_until("the opening of the gate", || client.get("/readyz").status == 200);
    assert_eq!(upload(&client).status, 200);
    assert_eq!(run_one(&client).is_empty(), kept.is_empty());
}

/// Nobody meets it: it is looked at from time to time.
#[test]
fn a_folder_of_artifacts_that_is_gone_is_noticed_and_not_made_anew() {
    let folder = Folder::new("artifacts-gone");
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let kept = run_one(&client);
    let place = folder.path().join("artifacts");
    wait_until("the place to be marked", || place.join("cofferdam-artifacts").exists());
    std::fs::rename(&place, folder.path().join("elsewhere")).expect("a rename");
    check_cells(&client, Gate::ArtifactsDown);
    assert!(!place.exists(), "it was made anew");
    std::fs::rename(folder.path().join("elsewhere"), &place).expect("a rename");
    check_recovery(&client, &kept);
}

#[test]
fn a_bucket_that_is_away_is_noticed_and_so_is_its_return() {
    let folder = Folder::new("bucket-away");
    let mut store = s3::Server::start();
    let bucket = store.bucket();
    let endpoint = bucket.endpoint.clone().expect("an address");
    let variables = [
        ("AWS_ACCESS_KEY_ID", "the-id"),
        ("AWS_SECRET_ACCESS_KEY", "the-secret"),
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
    ];
    let place = format!("s3://{}", bucket.name);
    let server = Server::start_in(folder.path(), &["--artifacts", &place], &variables);
    let client = Client::of(&server);
    let kept = run_one(&client);
    assert_eq!(upload(&client).status, 200);
    store.order("stop");
    check_artifacts_down(&client, &kept, || store.order("start"));
}
