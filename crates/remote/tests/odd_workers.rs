//! Workers that refuse, stop in the middle, or say what none of ours would: what is told of a run is only what is known.

use async_trait::async_trait;
use cofferdam_api::frame::{content, end, word};
use cofferdam_api::{RichResult, RunEvent};
use cofferdam_control::{
    Connector, OutputSink, Placed, RunEnd, RunOrder, RunSignals, ServiceTokens, SessionFailure, StepEnd,
    StepOrder, StepSink, Stream, Worker,
};
use cofferdam_core::{GuestPath, JobId, SessionId, TaskId};
use cofferdam_remote::HttpWorkers;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// What is asked, as its first line without the version, and the bytes that it is answered with; nothing closes the
/// connection without a word.
type Script = Vec<(&'static str, Vec<u8>)>;

/// A worker that answers as it was told to, once for each line of its script, in that order, and with 500 to all else.
struct Odd {
    worker: Arc<dyn Worker>,
    left: Arc<Mutex<Script>>,
}

fn answer(status: u16, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn refusal(status: u16) -> Vec<u8> {
    answer(status, br#"{"error":{"message":"for a reason"}}"#)
}

fn lines(events: &[RunEvent]) -> Vec<u8> {
    let line = |event| [serde_json::to_string(event).expect("as it was written"), "\n".to_owned()].concat();
    answer(200, events.iter().map(line).collect::<String>().as_bytes())
}

fn errored(seq: u64, code: &str) -> RunEvent {
    let event =
        json!({"event": "end", "seq": seq, "end": {"kind": "errored", "code": code, "message": "it ended"}});
    serde_json::from_value(event).expect("as it was written")
}

fn stdout(seq: u64, base64: &str) -> RunEvent {
    RunEvent::Stdout { seq, base64: base64.to_owned() }
}

impl Odd {
    fn new(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("as it was written");
        let url = format!("http://{}", listener.local_addr().expect("as it was written"));
        let left = Arc::new(Mutex::new(script));
        let script = Arc::clone(&left);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let mut reader = BufReader::new(&connection);
                let (mut first, mut length) = (String::new(), 0);
                let _ = reader.read_line(&mut first);
                let mut header = String::new();
                while reader.read_line(&mut header).is_ok_and(|read| read > 2) {
                    if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().expect("as it was written");
                    }
                    header.clear();
                }
                let _ = reader.take(length).read_to_end(&mut Vec::new());
                let mut script = script.lock().expect("as it was written");
                let is_next = script.first().is_some_and(|(asked, _)| first.starts_with(asked));
                let said = if is_next { script.remove(0).1 } else { refusal(500) };
                let _ = (&connection).write_all(&said);
            }
        });
        let workers =
            HttpWorkers::new(&ServiceTokens::parse(&"t".repeat(32)).expect("as it was written"), None)
                .expect("as it was written");
        Self { worker: workers.connect("wrk-odd", &url), left }
    }

    fn is_done(&self) {
        let left: Vec<_> =
            self.left.lock().expect("as it was written").iter().map(|(asked, _)| *asked).collect();
        assert!(left.is_empty(), "it was not asked for {left:?}");
    }
}

#[derive(Default)]
struct Heard(Vec<u8>);

#[async_trait]
impl OutputSink for Heard {
    fn push(&mut self, _: Stream, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    async fn ready(&mut self) {}
}

#[async_trait]
impl StepSink for Heard {
    async fn begun(&mut self) {}

    fn show(&mut self, _: RichResult) {}
}

async fn step(script: Script) -> (StepEnd, String) {
    let odd = Odd::new(script);
    let order = StepOrder {
        session: SessionId::parse("id", "ses-aaaaaaaaaaaaaaaa").expect("as it was written"),
        generation: 1,
        number: 1,
        request: serde_json::from_value(json!({"command": ["true"]})).expect("as it was written"),
    };
    let mut heard = Heard::default();
    let end = odd
        .worker
        .sessions()
        .expect("as it was written")
        .step(order, &mut heard, watch::channel(None).1)
        .await;
    odd.is_done();
    (end, String::from_utf8(heard.0).expect("as it was written"))
}

const BEGIN: &str = "POST /sessions/ses-aaaaaaaaaaaaaaaa/steps ";
const FOLLOW: &str = "GET /runs/ses-aaaaaaaaaaaaaaaa-1/output";

#[tokio::test]
async fn a_step_that_is_refused_was_not_begun_unless_that_is_unknown() {
    for status in [404, 409] {
        assert!(matches!(step(vec![(BEGIN, refusal(status))]).await.0, StepEnd::Lost { .. }), "{status}");
    }
    for (status, code) in [(422, "invalid"), (400, "unsupported")] {
        let (end, _) = step(vec![(BEGIN, refusal(status))]).await;
        assert!(matches!(&end, StepEnd::Errored(failure) if failure.code == code), "{status}: {end:?}");
    }
    // It did not say whether it had begun it, and what it says then is of the second time.
    let (end, _) = step(vec![(BEGIN, Vec::new()), (BEGIN, refusal(422))]).await;
    assert!(matches!(end, StepEnd::Lost { .. }), "{end:?}");
}

#[tokio::test]
async fn output_comes_once_and_in_order_or_not_at_all() {
    let begun = || (BEGIN, answer(201, b"{}"));
    // The second piece is missing, then what comes is no base64, and then it is right.
    let (end, heard) = step(vec![
        begun(),
        (FOLLOW, lines(&[stdout(1, "YQ=="), stdout(3, "Yw==")])),
        (FOLLOW, lines(&[stdout(2, "-")])),
        (FOLLOW, lines(&[errored(3, "lost")])),
    ])
    .await;
    assert!(matches!(&end, StepEnd::Lost { why } if why == "it ended"), "{end:?}");
    assert_eq!(heard, "a", "nothing that is in doubt");
    let (end, _) = step(vec![begun(), (FOLLOW, lines(&[errored(1, "kernel_failed")]))]).await;
    assert!(matches!(&end, StepEnd::Errored(failure) if failure.code == "kernel_failed"), "{end:?}");
    let no_result = json!({"event": "end", "seq": 1, "end": {"kind": "result", "result": {"stdout": 7}}});
    let (end, _) = step(vec![
        begun(),
        (FOLLOW, lines(&[serde_json::from_value(no_result).expect("as it was written")])),
    ])
    .await;
    assert!(matches!(&end, StepEnd::Errored(failure) if failure.code == "unreadable"), "{end:?}");
    let (end, _) = step(vec![begun(), (FOLLOW, refusal(404))]).await;
    assert!(matches!(end, StepEnd::Lost { .. }), "{end:?}");
    let (end, _) = step(vec![begun(), (FOLLOW, lines(&[stdout(1, "YQ==")])), (FOLLOW, refusal(409))]).await;
    assert!(matches!(end, StepEnd::Lost { .. }), "{end:?}");
}

#[tokio::test]
async fn a_worker_that_is_not_there_has_begun_nothing() {
    let gone =
        TcpListener::bind("127.0.0.1:0").expect("as it was written").local_addr().expect("as it was written");
    let workers = HttpWorkers::new(&ServiceTokens::parse(&"t".repeat(32)).expect("as it was written"), None)
        .expect("as it was written");
    let worker = workers.connect("wrk-gone", &format!("http://{gone}"));
    let order = StepOrder {
        session: SessionId::parse("id", "ses-aaaaaaaaaaaaaaaa").expect("as it was written"),
        generation: 1,
        number: 1,
        request: serde_json::from_value(json!({"command": ["true"]})).expect("as it was written"),
    };
    let sessions = worker.sessions().expect("as it was written");
    let end = sessions.step(order, &mut Heard::default(), watch::channel(None).1).await;
    assert!(matches!(end, StepEnd::Errored(_)), "{end:?}");
}

async fn taken_over(script: Script) -> RunEnd {
    let odd = Odd::new(script);
    let order = RunOrder {
        id: JobId::parse("id", "job-aaaaaaaaaaaaaaaa").expect("as it was written"),
        task_id: TaskId::parse("task_id", "task").expect("as it was written"),
        request: serde_json::from_value(json!({"command": ["true"]})).expect("as it was written"),
        attempt: 1,
        fence: 2,
        lease: Duration::from_millis(400),
        is_begun: true,
        secrets: Vec::new(),
    };
    let signals = RunSignals { cancelled: watch::channel(None).1, renewed: watch::channel(0).1 };
    let end = odd.worker.run(order, &mut Heard::default(), signals).await;
    odd.is_done();
    end
}

#[tokio::test]
async fn a_run_that_was_taken_over_is_unstarted_only_if_its_worker_says_so() {
    const FOLLOW: &str = "GET /runs/job-aaaaaaaaaaaaaaaa/output";
    const BAR: &str = "POST /runs/job-aaaaaaaaaaaaaaaa/bar?attempt=1&fence=2";
    let unknown = || (FOLLOW, refusal(404));
    let end = taken_over(vec![unknown(), (BAR, answer(204, b""))]).await;
    assert!(matches!(end, RunEnd::Unstarted { .. }), "{end:?}");
    // Begun after all, between the two questions.
    let end = taken_over(vec![unknown(), (BAR, refusal(409)), (FOLLOW, lines(&[errored(1, "x")]))]).await;
    assert!(matches!(end, RunEnd::Errored { .. }), "{end:?}");
    // Begun, and over.
    let end = taken_over(vec![unknown(), (BAR, refusal(409)), unknown()]).await;
    assert!(matches!(end, RunEnd::Lost { .. }), "{end:?}");
    // It does not say: a worker of before has no such call.
    for bar in [refusal(404), refusal(503)] {
        let end = taken_over(vec![unknown(), (BAR, bar)]).await;
        assert!(matches!(end, RunEnd::Lost { .. }), "{end:?}");
    }
    let end = taken_over(vec![unknown(), (BAR, Vec::new()), (BAR, answer(204, b""))]).await;
    assert!(matches!(end, RunEnd::Unstarted { .. }), "{end:?}");
    // What was heard of was begun.
    let end = taken_over(vec![(FOLLOW, lines(&[stdout(1, "YQ==")])), unknown()]).await;
    assert!(matches!(end, RunEnd::Lost { .. }), "{end:?}");
}

async fn stat(said: Vec<u8>) -> SessionFailure {
    let odd = Odd::new(vec![("POST /sessions/ses-aaaaaaaaaaaaaaaa/calls ", said)]);
    let id = SessionId::parse("id", "ses-aaaaaaaaaaaaaaaa").expect("as it was written");
    let path = GuestPath::parse("path", "/workspace/a").expect("as it was written");
    let told = odd
        .worker
        .sessions()
        .expect("as it was written")
        .stat_file(&Placed { id, generation: 1 }, &path)
        .await;
    odd.is_done();
    told.expect_err("no worker of ours says that")
}

#[tokio::test]
async fn an_answer_that_is_not_as_it_should_be_is_told_as_that() {
    let done = || word(br#"{"kind":"done","value":{}}"#).expect("as it was written");
    for said in [
        content(b"x"),
        end(),
        word(b"no answer").expect("as it was written"),
        [done(), done()].concat(),
        [done(), content(b"x"), end()].concat(),
        done(),
        Vec::new(),
        vec![9; 40],
    ] {
        let failure = stat(answer(200, &said)).await;
        assert!(!["invalid", "unsupported", "files"].contains(&failure.code.as_str()), "{failure:?}");
    }
    for (status, code) in
        [(400, "unsupported"), (404, "session_gone"), (409, "session_stale"), (422, "invalid")]
    {
        assert_eq!(stat(refusal(status)).await.code, code);
    }
}
