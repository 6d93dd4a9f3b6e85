//! What goes with a run to a worker elsewhere and comes back from it: artifacts, and the trace.

use crate::artifacts::{check_what_is_given, check_what_is_left, run, text};
use crate::collector::Collector;
use crate::machine::wait_until;
use crate::roles::Apart;
use serde_json::json;

#[test]
fn artifacts_go_to_a_worker_elsewhere_and_come_back() {
    let apart = Apart::with("apart-artifacts", &[]);
    let _worker = apart.worker(&[]);
    check_what_is_left(&apart.client, apart.folder.path());
    check_what_is_given(&apart.client);
}

/// More than any buffer on the way, the same artifact twice, and an artifact that is refused while it is left.
#[test]
fn large_artifacts_pass_through_in_pieces() {
    let quota = ["--set", "quotas.artifact_bytes=60m"];
    let apart = Apart::with("apart-large", &quota);
    let worker = apart.worker(&[]);
    let code = "import hashlib, os\n\
                data = os.urandom(1 << 20) * 40\n\
                os.makedirs('.artifacts', exist_ok=True)\n\
                open('.artifacts/large', 'wb').write(data)\n\
                print(hashlib.sha256(data).hexdigest(), end='')";
    let before = peak_memory(worker.id());
    let made = run(&apart.client, &json!({"language": "python", "code": code}));
    let large = &made["result"]["artifacts"][0];
    assert_eq!(
        (&large["size_bytes"], &large["sha256"]),
        (&json!(40 << 20), &made["result"]["stdout"]),
        "{made}"
    );
    let file = |path: &str| json!({"path": path, "artifact": large["id"]});
    let check = "sha256sum a b | cut -d' ' -f1; head -c 30000000 a > .artifacts/too-much";
    let taken = json!({"command": check, "files": [file("a"), file("b")]});
    let taken = run(&apart.client, &taken);
    let sum = text(&large["sha256"]);
    assert_eq!(taken["result"]["stdout"], format!("{sum}\n{sum}\n"), "{taken}");
    // What the quota has no room for is not kept, and the job has ended as it did.
    let skipped = &taken["result"]["artifacts_skipped"][0];
    assert_eq!((&skipped["path"], &taken["status"]["state"]), (&json!("too-much"), &json!("succeeded")));
    assert!(text(&skipped["reason"]).contains("quota"), "{skipped}");
    assert_eq!(taken["result"]["artifacts"], json!([]));
    let grown = peak_memory(worker.id()) - before;
    assert!(grown < 32 << 20, "the worker has grown by {grown} bytes");
}

/// The most memory that a process has had.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// An artifact that is gone when the worker asks for it: the job ends and says so.
#[test]
fn an_artifact_that_cannot_be_brought_ends_the_job_with_the_reason() {
    let apart = Apart::with("apart-gone", &[]);
    let _worker = apart.worker(&["--slots", "1"]);
    let made = run(&apart.client, &json!({"command": "echo here > .artifacts/x"}));
    let id = text(&made["result"]["artifacts"][0]["id"]);
    let before = apart.client.post("/v1/jobs", r#"{"command":["sleep","2"]}"#).json();
    let waits = json!({"command": "cat y", "files": [{"path": "y", "artifact": id}]}).to_string();
    let waits = apart.client.post("/v1/jobs", &waits).json();
    assert_eq!(waits["status"]["state"], "queued", "{before}");
    let gone = apart.client.send("DELETE", &format!("/v1/artifacts/{id}"), "", "").expect("an answer");
    assert_eq!(gone.status, 204);
    let path = format!("/v1/jobs/{}", text(&waits["id"]));
    wait_until("it has ended", || apart.client.get(&path).json()["status"]["state"] == "errored");
    let status = apart.client.get(&path).json()["status"].clone();
    assert_eq!(status["reason"], "files_refused");
    assert!(text(&status["message"]).contains(&id), "{status}");
}

#[test]
fn one_trace_goes_from_the_request_through_control_and_worker_to_the_process() {
    let collector = Collector::start();
    let url = collector.url();
    let apart = Apart::with("apart-traces", &["--otlp", &url]);
    let _worker = apart.worker(&["--otlp", &url, "--slots", "1"]);
    let ids: [[u8; 16]; 2] = [[0x4b; 16], [0x5c; 16]];
    let hex = |id: [u8; 16]| id.map(|byte| format!("{byte:02x}")).concat();
    let send = |trace: &str, code: &str| {
        let header = format!("traceparent: 00-{trace}-00f067aa0ba902b7-01\r\n");
        let body = json!({"language": "python", "code": code}).to_string();
        apart.client.send("POST", "/v1/jobs", &header, &body).expect("an answer").json()
    };
    send(&hex(ids[0]), "import time; time.sleep(0.5)");
    assert_eq!(send(&hex(ids[1]), "print(1)")["status"]["state"], "queued");
    for id in ids {
        let names = ["POST /v1/jobs", "job.run", "worker.run", "sandbox.start", "process", "store.finish"];
        let spans = collector.trace(&id, &names);
        let find = |name: &str| {
            let mut found = spans.iter().filter(|span| span.name == name);
            let first = found.next().expect("a span");
            assert!(found.next().is_none(), "{name} is there twice");
            first
        };
        assert_eq!(find("worker.run").parent_span_id, find("job.run").span_id);
        for name in ["sandbox.start", "process"] {
            assert_eq!(find(name).parent_span_id, find("worker.run").span_id, "{name}");
        }
        assert_eq!(find("store.finish").parent_span_id, find("job.run").span_id);
        assert_eq!(collector.role_of(&find("process").span_id), "worker");
        assert_eq!(collector.role_of(&find("job.run").span_id), "control");
    }
}
