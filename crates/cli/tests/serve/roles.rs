//! Control and workers apart: what they promise while nothing is broken.

use crate::client::Client;
use crate::load::{id, job, state};
use crate::machine::{processes_with, wait_until};
use crate::server::{Folder, Server, program};
use serde_json::json;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

pub(crate) struct Apart {
    pub(crate) folder: Folder,
    control: Server,
    pub(crate) client: Client,
}

impl Apart {
    fn new(name: &str) -> Self {
        Self::with(name, &[])
    }

    /// Control, with more options.
    pub(crate) fn with(name: &str, options: &[&str]) -> Self {
        let folder = Folder::new(name);
        let options = [&["--lease", "2s"], options].concat();
        let control = Server::start_role(program(), "control", folder.path(), &options);
        let client = Client::of(&control);
        Self { folder, control, client }
    }

    pub(crate) fn worker(&self, options: &[&str]) -> Server {
        self.worker_with(options, &[])
    }

    /// With some variables in its environment.
    pub(crate) fn worker_with(&self, options: &[&str], variables: &[(&str, &str)]) -> Server {
        let before = self.ready();
        let token = self.folder.path().join("service.token");
        let worker = Server::start_worker_with(&[&self.control], &token, options, variables);
        wait_until("the worker is registered", || self.ready() > before);
        worker
    }

    fn ready(&self) -> usize {
        let list = self.client.get("/v1/workers").json();
        let workers = list["workers"].as_array().expect("workers");
        workers.iter().filter(|worker| worker["state"] == "ready").count()
    }
}

const PRINT: &str = r#"{"language":"python","code":"print(1)"}"#;

#[test]
fn a_job_runs_on_a_worker_elsewhere_as_it_does_here() {
    let apart = Apart::new("apart");
    let early = apart.client.post("/v1/jobs", PRINT);
    assert_eq!(
        (early.status, early.json()["error"]["code"].as_str()),
        (503, Some("unavailable")),
        "{early:?}"
    );
    let _worker = apart.worker(&["--label", "zone=a"]);
    let done = apart.client.post("/v1/jobs?wait_ms=30000", PRINT).json();
    assert_eq!((done["status"]["state"].as_str(), done["attempts"].as_i64()), (Some("succeeded"), Some(1)));
    assert_eq!(done["result"]["stdout"], "1\n");
    let much = r#"{"command":"head -c 9000000 /dev/zero | tr '\\0' x; echo err >&2"}"#;
    let much = apart.client.post("/v1/jobs?wait_ms=60000", much).json();
    assert_eq!(much["result"]["stdout"].as_str().map(str::len), Some(8 << 20));
    assert_eq!(
        (&much["result"]["stdout_truncated"], &much["result"]["stderr"]),
        (&json!(true), &json!("err\n"))
    );
    let long = apart.client.post("/v1/jobs", r#"{"command":["sleep","60"]}"#).json();
    wait_until("it runs", || state(&apart.client, &id(&long)) == "running");
    assert_eq!(apart.client.post(&format!("/v1/jobs/{}/cancel", id(&long)), "").status, 202);
    wait_until("it is cancelled", || state(&apart.client, &id(&long)) == "cancelled");
}

#[test]
fn workers_take_no_calls_without_a_token_and_control_no_workers() {
    let apart = Apart::new("tokens");
    let worker = apart.worker(&[]);
    let secret = std::fs::read_to_string(apart.folder.path().join("service.token")).expect("a token");
    // An API key is no service token, however much it may do.
    let with_key = format!("Authorization: Bearer {}\r\n", apart.control.key);
    let with_token = format!("Authorization: Bearer {secret}\r\n");
    let at_worker = Client::of(&worker);
    let run = "/runs/job-aaaaaaaaaaaaaaaa";
    for (method, path) in [
        ("POST", "/runs".to_owned()),
        ("GET", run.to_owned()),
        ("DELETE", format!("{run}?attempt=1&fence=1")),
        ("POST", format!("{run}/lease")),
        ("POST", format!("{run}/terminate")),
        ("GET", format!("{run}/output?attempt=1&fence=1")),
        ("GET", "/metrics?no=1".to_owned()),
    ] {
        for header in ["", "Authorization: Bearer wrong\r\n", &with_key] {
            let answer = at_worker.send(method, &path, header, "{}").expect("an answer");
            assert_eq!(answer.status, 401, "{method} {path} {header}");
        }
        let answer = at_worker.send(method, &path, &with_token, "{}").expect("an answer");
        assert!(answer.status == 404 || answer.status == 422, "{method} {path}: {answer:?}");
    }
    assert_eq!(at_worker.get("/healthz").status, 200);
    let beat = json!({"url": "http://127.0.0.1:1", "backends": ["native"],
        "capacity": {"slots": 1, "cpus_millis": 1, "memory_bytes": 1}});
    let put = |header: &str| {
        apart
            .client
            .send("PUT", "/internal/workers/wrk-x", header, &beat.to_string())
            .expect("an answer")
            .status
    };
    assert_eq!((put(""), put(&with_key), put(&with_token)), (401, 401, 200));
    let reader = apart.client.post("/v1/keys", r#"{"name":"jobs","scopes":["jobs:read"]}"#).json();
    let reader = apart.client.with_key(reader["secret"].as_str().expect("a secret"));
    assert_eq!(reader.get("/v1/workers").status, 403);
}

/// For development a worker takes calls without a token: from programs of this machine, and each is logged.
#[test]
fn a_worker_without_authentication_is_this_machines_alone() {
    let apart = Apart::new("bypass");
    let log = Folder::new("bypass-log");
    let log = log.path().join("log");
    let token = apart.folder.path().join("service.token");
    let options = ["--dev-no-auth"];
    let worker = Server::start_worker_logging(program(), &[&apart.control], &token, &options, &log);
    let at_worker = Client::of(&worker).without_key();
    let run = "/runs/job-aaaaaaaaaaaaaaaa";
    let ask = |headers: &str| at_worker.send("GET", run, headers, "").expect("an answer").status;
    assert_eq!(ask(""), 404);
    assert_eq!(ask("Authorization: Bearer wrong\r\n"), 401);
    assert_eq!(ask("Authorization: Basic eDp5\r\n"), 401);
    // A page in a browser, and one that has our address by another name.
    assert_eq!(ask("Origin: https://page.example\r\n"), 401);
    let renamed = at_worker.with_host("page.example").send("GET", run, "", "").expect("an answer");
    assert_eq!(renamed.status, 401);
    assert!(at_worker.get("/healthz").body.contains("authentication is off"));
    let uses = || {
        let logged = std::fs::read_to_string(&log).expect("a log");
        logged.lines().filter(|line| line.contains("let through")).map(str::to_owned).collect::<Vec<_>>()
    };
    // What is logged is written a moment later.
    wait_until("the use is in the log", || !uses().is_empty());
    let uses = uses();
    assert!(uses.len() == 1 && uses[0].contains(run), "{uses:?}");
    let words = ["worker", "--control", "http://127.0.0.1:1", "--dev-no-auth", "--listen", "0.0.0.0:0"];
    let tls = ["--tls-cert", "x", "--tls-key", "y"];
    for options in [&[][..], &tls] {
        let mut command = Command::new(program());
        command.args(words).arg("--service-token-file").arg(&token).args(options);
        let refused = command.output().expect("the program");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            refused.status.code() == Some(125) && said.contains("(--dev-no-auth) only loopback"),
            "{said}"
        );
    }
}

/// A worker whose launcher is gone makes no sandboxes: it says so, and is given nothing while there is another.
#[test]
fn a_worker_that_cannot_make_sandboxes_is_given_none() {
    let apart = Apart::new("unhealthy");
    let broken = apart.worker(&[]);
    let gates = || {
        let ready = apart.client.get("/readyz");
        let gates = ready.json()["error"]["details"]["gates"].as_array().cloned().unwrap_or_default();
        (ready.status, gates.iter().map(|gate| gate["gate"].clone()).collect::<Vec<_>>())
    };
    assert_eq!(gates(), (200, Vec::new()));
    // The launcher is the worker's only child.
    let children = format!("/proc/{0}/task/{0}/children", broken.id());
    for child in std::fs::read_to_string(children).expect("children").split_whitespace() {
        assert!(Command::new("kill").args(["-KILL", child]).status().expect("kill").success());
    }
    wait_until("the closing of a gate", || gates() == (503, vec![json!("backend_unhealthy")]));
    let refused = apart.client.post("/v1/jobs", PRINT);
    let error = refused.json()["error"].clone();
    assert_eq!((refused.status, &error["details"]["gate"]), (503, &json!("backend_unhealthy")), "{error}");
    let workers = apart.client.get("/v1/workers").json();
    assert_eq!(workers["workers"][0]["state"], "unhealthy", "{workers}");
    assert!(workers["workers"][0]["problem"].as_str().is_some_and(|text| !text.is_empty()), "{workers}");
    assert!(metric(&apart, &broken, "cofferdam_gate_closed{gate=\"backend_unhealthy\"}") == Some(1.0));
    // Another worker takes all of the work.
    let sound = apart.worker(&[]);
    wait_until("the opening of the gate", || gates().0 == 200);
    for _ in 0..5 {
        let done = apart.client.post("/v1/jobs?wait_ms=30000", PRINT).json();
        assert_eq!((&done["status"]["state"], &done["attempts"]), (&json!("succeeded"), &json!(1)), "{done}");
    }
    // It has counted them, under the names that they have where all is in one process.
    let count = |name: &str| metric(&apart, &sound, name);
    assert_eq!(count("cofferdam_outcomes_total{outcome=\"exited\"}"), Some(5.0));
    assert_eq!(count("cofferdam_phase_seconds_count{phase=\"run\"}"), Some(5.0));
    assert_eq!(count("cofferdam_gate_closed{gate=\"backend_unhealthy\"}"), Some(0.0));
    let started =
        ["hit", "miss"].map(|kind| count(&format!("cofferdam_pool_starts_total{{kind=\"{kind}\"}}")));
    assert_eq!(started.into_iter().flatten().sum::<f64>(), 5.0);
    assert_eq!(metric(&apart, &broken, "cofferdam_outcomes_total{outcome=\"failed\"}"), Some(0.0));
    let own = apart.client.get("/metrics").body;
    for line in worker_metrics(&apart, &sound).lines().filter(|line| line.starts_with("# TYPE")) {
        assert!(own.contains(line), "control does not know {line}");
    }
}

fn worker_metrics(apart: &Apart, worker: &Server) -> String {
    let secret = std::fs::read_to_string(apart.folder.path().join("service.token")).expect("a token");
    let header = format!("Authorization: Bearer {secret}\r\n");
    let answer = Client::of(worker).send("GET", "/metrics", &header, "").expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

fn metric(apart: &Apart, worker: &Server, name: &str) -> Option<f64> {
    let text = worker_metrics(apart, worker);
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// The same attempt is begun once, an older claim is refused, and a new owner goes on where the one before was.
#[test]
fn a_run_is_made_once_and_belongs_to_the_newest_claim() {
    let apart = Apart::new("runs");
    let worker = apart.worker(&[]);
    let secret = std::fs::read_to_string(apart.folder.path().join("service.token")).expect("a token");
    let header = format!("Authorization: Bearer {secret}\r\n");
    let at_worker = Client::of(&worker);
    let workers = apart.client.get("/v1/workers").json();
    let order = |attempt: i64, fence: i64| {
        let request = json!({"command": "echo one; sleep 314.151; echo two"});
        json!({"worker_id": workers["workers"][0]["id"], "job_id": "job-aaaaaaaaaaaaaaaa", "task_id": "t",
            "attempt": attempt, "fence": fence, "lease_ms": 60000, "request": request})
        .to_string()
    };
    let send = |method: &str, path: &str, body: &str| {
        at_worker.send(method, path, &header, body).expect("an answer")
    };
    let create = |attempt, fence| send("POST", "/runs", &order(attempt, fence)).status;
    assert_eq!((create(1, 5), create(1, 5), create(1, 6)), (201, 200, 200));
    wait_until("it runs", || processes_with("314.151") == 1);
    assert_eq!((create(1, 5), create(0, 9)), (409, 409), "an older claim, an older attempt");
    let path = "/runs/job-aaaaaaaaaaaaaaaa";
    assert_eq!(send("GET", &format!("{path}/output?attempt=1&fence=5"), "").status, 409);
    assert_eq!(send("POST", &format!("{path}/lease"), r#"{"attempt":1,"fence":5,"lease_ms":9}"#).status, 409);
    let run = send("GET", path, "").json();
    assert_eq!((run["fence"].as_i64(), run["state"].as_str()), (Some(6), Some("running")));
    assert_eq!(send("POST", &format!("{path}/terminate"), r#"{"attempt":1,"fence":6,"by":"x"}"#).status, 202);
    let text = send("GET", &format!("{path}/output?attempt=1&fence=6&after=0"), "").body;
    assert!(text.contains(r#""event":"end""#) && text.contains("cancelled"), "{text}");
    let rest = send("GET", &format!("{path}/output?attempt=1&fence=6&after=1"), "").body;
    assert!(!rest.contains("stdout\",\"seq\":1,") && rest.contains(r#""event":"end""#), "{rest}");
    assert_eq!(send("DELETE", &format!("{path}?attempt=1&fence=6"), "").status, 204);
    assert_eq!((send("GET", path, "").status, create(1, 7), create(2, 8)), (404, 409, 201), "over is over");
    assert_eq!(send("DELETE", &format!("{path}?attempt=2&fence=8"), "").status, 204);
    wait_until("it is ended with its run", || processes_with("314.151") == 0);
    let bar =
        |attempt, fence| send("POST", &format!("{path}/bar?attempt={attempt}&fence={fence}"), "").status;
    assert_eq!((bar(2, 9), bar(3, 9)), (409, 204), "one was begun, the other was not");
    assert_eq!((create(3, 8), create(3, 9), create(3, 10)), (409, 409, 201), "only a newer claim begins it");
    assert_eq!((bar(3, 11), send("DELETE", &format!("{path}?attempt=3&fence=10"), "").status), (409, 204));
    let other = order(4, 12).replace("wrk-", "wrk-x");
    assert_eq!(send("POST", "/runs", &other).status, 503, "it is meant for another worker");
}

/// A control plane that is gone for good sends nothing any more.
#[test]
fn a_run_that_nobody_answers_for_is_ended() {
    let apart = Apart::new("unanswered");
    let worker = apart.worker(&[]);
    let secret = std::fs::read_to_string(apart.folder.path().join("service.token")).expect("a token");
    let header = format!("Authorization: Bearer {secret}\r\n");
    let at_worker = Client::of(&worker);
    let workers = apart.client.get("/v1/workers").json();
    let order = json!({"worker_id": workers["workers"][0]["id"], "job_id": "job-bbbbbbbbbbbbbbbb", "task_id": "t",
        "attempt": 1, "fence": 1, "lease_ms": 1500, "request": {"command": ["sleep", "314.155"]}});
    let send = |method: &str, path: &str, body: &str| {
        at_worker.send(method, path, &header, body).expect("an answer")
    };
    assert_eq!(send("POST", "/runs", &order.to_string()).status, 201);
    wait_until("it runs", || processes_with("314.155") == 1);
    let path = "/runs/job-bbbbbbbbbbbbbbbb";
    // Longer than twice the lease: whoever renews it keeps it.
    for _ in 0..8 {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let lease = r#"{"attempt":1,"fence":1,"lease_ms":1500}"#;
        assert_eq!(send("POST", &format!("{path}/lease"), lease).status, 200);
    }
    assert_eq!(processes_with("314.155"), 1);
    wait_until("it is ended", || processes_with("314.155") == 0);
    assert_eq!(send("GET", path, "").status, 404);
    assert_eq!(send("POST", "/runs", &order.to_string()).status, 409, "a late call does not begin it again");
}

#[test]
fn two_hundred_at_once_never_go_beyond_what_the_workers_have() {
    let apart = Apart::new("capacity");
    let _workers = [apart.worker(&["--slots", "2"]), apart.worker(&["--slots", "3", "--cpus", "2"])];
    let barrier = Arc::new(Barrier::new(200));
    let is_over = AtomicBool::new(false);
    let word = "0.0314152";
    let body = json!({"command": ["sleep", word]}).to_string();
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut most, mut most_claimed) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(processes_with(word));
                let claimed = apart.client.get("/v1/jobs?state=running&limit=500").json();
                most_claimed = most_claimed.max(claimed["jobs"].as_array().map_or(0, Vec::len));
            }
            (most, most_claimed)
        });
        let clients: Vec<_> = (0..200)
            .map(|_| {
                let (barrier, client, body) = (Arc::clone(&barrier), apart.client.clone(), body.clone());
                scope.spawn(move || {
                    barrier.wait();
                    client.post("/v1/jobs", &body).status
                })
            })
            .collect();
        for client in clients {
            assert_eq!(client.join().expect("a client"), 202);
        }
        crate::load::wait_for_all(&apart.client);
        is_over.store(true, Ordering::Relaxed);
        let (most, most_claimed) = watcher.join().expect("the watcher");
        assert!(most <= 4 && most_claimed <= 4, "{most} ran and {most_claimed} were claimed at once");
        assert!(most_claimed >= 3, "hardly anything ran at once: {most_claimed}");
    });
    let done = apart.client.get("/v1/jobs?state=succeeded&limit=500").json();
    assert_eq!(done["jobs"].as_array().map(Vec::len), Some(200));
}

#[test]
fn jobs_go_where_their_labels_say() {
    let apart = Apart::new("labels");
    let _workers = [apart.worker(&["--label", "zone=a"]), apart.worker(&["--label", "zone=b"])];
    let list = apart.client.get("/v1/workers").json();
    for zone in ["a", "b"] {
        let worker =
            list["workers"].as_array().expect("workers").iter().find(|w| w["labels"]["zone"] == zone);
        let expected = worker.expect("a worker")["id"].clone();
        let body = json!({"command": ["true"], "worker_labels": {"zone": zone}}).to_string();
        for _ in 0..4 {
            let done = apart.client.post("/v1/jobs?wait_ms=30000", &body).json();
            assert_eq!(done["status"]["state"], "succeeded");
            let audit = apart.client.get("/v1/audit?limit=1000").json();
            let entries = audit["entries"].as_array().expect("entries").clone();
            let mut running =
                entries.iter().filter(|e| e["kind"] == "job.running" && e["resource"] == done["id"]);
            assert_eq!(running.next().expect("it ran")["details"]["worker"], expected, "{zone}");
        }
    }
    let nowhere = apart.client.post("/v1/jobs", r#"{"command":["true"],"worker_labels":{"zone":"c"}}"#);
    assert_eq!(
        (nowhere.status, nowhere.json()["error"]["details"]["field"].as_str()),
        (422, Some("worker_labels"))
    );
}

/// What runs may end, what waits goes elsewhere, and nothing is lost.
#[test]
fn a_worker_that_is_told_to_stop_takes_no_more_and_finishes_what_it_has() {
    let apart = Apart::new("drain");
    let first = apart.worker(&["--slots", "1"]);
    let runs = apart.client.post("/v1/jobs", r#"{"command":"sleep 2; echo ended"}"#).json();
    wait_until("it runs", || state(&apart.client, &id(&runs)) == "running");
    let waits = apart.client.post("/v1/jobs", r#"{"command":"echo later"}"#).json();
    assert_eq!(waits["status"]["state"], "queued");
    assert_eq!(first.stop(), Some(0));
    assert_eq!(job(&apart.client, &id(&runs))["result"]["stdout"], "ended\n");
    assert_eq!(state(&apart.client, &id(&waits)), "queued");
    let _second = apart.worker(&[]);
    wait_until("it ran elsewhere", || state(&apart.client, &id(&waits)) == "succeeded");
    assert_eq!(job(&apart.client, &id(&waits))["attempts"], 1);
}

#[test]
fn a_retry_is_counted_noted_and_only_its_last_output_is_the_result() {
    let apart = Apart::new("retries");
    let worker = apart.worker(&[]);
    let body = r#"{"command":"echo began; sleep 5","retries":{"max":1,"on":["lost"],"backoff_ms":100}}"#;
    let asked = apart.client.post("/v1/jobs", body).json();
    let not_asked = apart.client.post("/v1/jobs", r#"{"command":"echo began; sleep 5"}"#).json();
    let has_output =
        |id: &str| apart.client.get("/v1/audit").status == 200 && state(&apart.client, id) == "running";
    wait_until("both run", || has_output(&id(&asked)) && has_output(&id(&not_asked)));
    std::thread::sleep(std::time::Duration::from_millis(300));
    worker.kill();
    let _next = apart.worker(&[]);
    wait_until("it is tried again", || state(&apart.client, &id(&asked)) == "succeeded");
    let done = job(&apart.client, &id(&asked));
    assert_eq!(
        (done["attempts"].as_i64(), done["result"]["stdout"].as_str()),
        (Some(2), Some("began\n")),
        "{done}"
    );
    wait_until("it is lost", || state(&apart.client, &id(&not_asked)) == "lost");
    assert_eq!(job(&apart.client, &id(&not_asked))["attempts"], 1);
    let audit = apart.client.get("/v1/audit?limit=1000").json();
    let entries =
        audit["entries"].as_array().expect("entries").iter().filter(|e| e["resource"] == asked["id"]);
    let kinds: Vec<_> = entries.filter_map(|entry| entry["kind"].as_str()).collect();
    let count = |kind: &str| kinds.iter().filter(|known| **known == kind).count();
    // It may be offered to the dead one once more before that is known to be dead.
    assert_eq!(count("job.running"), 2 + count("job.requeued"), "{kinds:?}");
    assert!(
        count("job.requeued") <= 3 && count("job.retried") == 1 && count("job.finished") == 1,
        "{kinds:?}"
    );
}

/// The time is in the store: nobody has to have been there when it ran out.
#[test]
fn a_job_that_waited_too_long_expires_even_if_the_server_was_dead_meanwhile() {
    let folder = Folder::new("expire");
    let server = Server::start(folder.path(), &["--slots", "1"]);
    let client = Client::of(&server);
    let runs = client.post("/v1/jobs", r#"{"command":["sleep","20"]}"#).json();
    let waits = client.post("/v1/jobs", r#"{"command":["true"],"queue_timeout_ms":5000}"#).json();
    let patient = client.post("/v1/jobs", r#"{"command":["true"],"queue_timeout_ms":600000}"#).json();
    let soon = client.post("/v1/jobs", r#"{"command":["true"],"queue_timeout_ms":1}"#).json();
    wait_until("the first is over", || state(&client, &id(&soon)) == "expired");
    assert_eq!(state(&client, &id(&waits)), "queued");
    server.kill();
    std::thread::sleep(std::time::Duration::from_millis(5100));
    let server = Server::start(folder.path(), &["--slots", "1"]);
    let client = Client::of(&server);
    wait_until("it expires", || state(&client, &id(&waits)) == "expired");
    assert_eq!(job(&client, &id(&waits))["attempts"], 0);
    assert_eq!(state(&client, &id(&runs)), "lost");
    wait_until("the patient one runs", || state(&client, &id(&patient)) == "succeeded");
}

#[test]
fn what_would_be_unsafe_is_refused_at_the_start() {
    let folder = Folder::new("unsafe");
    let server = Server::start(folder.path(), &[]);
    let says = |words: &[&str]| {
        // One that is not refused would serve for ever.
        let output = Command::new("timeout").arg("30").arg(program()).args(words).output().expect("timeout");
        assert_eq!(output.status.code(), Some(125), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let data = folder.path().to_str().expect("a path");
    for role in ["serve", "control"] {
        let said = says(&[role, "--data", data, "--listen", "127.0.0.1:0"]);
        assert!(said.contains("in use by another server"), "{said}");
        let said = says(&[role, "--data", data, "--listen", "0.0.0.0:0"]);
        assert!(said.contains("without TLS only loopback"), "{said}");
    }
    let token = folder.path().join("token");
    std::fs::write(&token, "t".repeat(40)).expect("a token");
    let token = token.to_str().expect("a path");
    let worker = |more: &[&str]| says(&[&["worker", "--service-token-file", token][..], more].concat());
    let url = format!("http://{}", server.address);
    assert!(worker(&["--control", &url]).contains("set it to 600"));
    Command::new("chmod").args(["600", token]).status().expect("chmod");
    assert!(worker(&["--control", "http://10.0.0.1:1", "--listen", "127.0.0.1:0"]).contains("use https://"));
    assert!(worker(&["--control", &url, "--listen", "0.0.0.0:0"]).contains("without TLS only loopback"));
    assert!(worker(&["--control", &url, "--label", "zone"]).contains("NAME=VALUE"));
    std::fs::write(token, "short").expect("a token");
    assert!(worker(&["--control", &url]).contains("at least 32"));
}
