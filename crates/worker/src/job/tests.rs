//! Jobs from end to end, on the fake backend. Time is paused: only what waits for it passes.

use super::*;
use crate::output::{Discard, LiveOutput, OutputStream};
use crate::runtime;
use crate::terminal::{WindowSize, terminal};
use crate::testing::{FakeBackend, Guest, Node};
use cofferdam_backend::{BackendError, ExitStatus, Stats, Stdio, async_trait};
use cofferdam_core::{
    GuestPath, JobId, JobResult, LimitKind, Limits, OUTPUT_KEPT_BYTES, Outcome, ResourceUsage,
};
use std::io::Cursor;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};

const SIGINT: i32 = 2;

fn command(words: &[&str]) -> JobSpec {
    let argv = words.iter().map(|word| (*word).to_owned()).collect();
    JobSpec::new(JobId::from_random([0; 10]), Work::Command { argv })
}

fn code(language: &str, code: &str) -> JobSpec {
    let runtime = runtime::by_name("lang", language).unwrap();
    JobSpec::new(JobId::from_random([0; 10]), Work::Code { runtime, code: code.to_owned() })
}

async fn done(backend: &FakeBackend, spec: JobSpec) -> JobResult {
    let result = run(backend, spec, &mut Discard, Cancellation::never()).await.unwrap();
    assert_eq!(backend.standing(), 0, "every sandbox is gone");
    result
}

/// Remembers what it saw, and can refuse to take more.
#[derive(Default)]
struct Seen {
    bytes: Vec<(OutputStream, Vec<u8>)>,
    stuck: bool,
}

#[async_trait]
impl LiveOutput for Seen {
    fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.bytes.push((stream, bytes.to_vec()));
    }

    async fn ready(&mut self) {
        if self.stuck {
            std::future::pending().await
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_command_runs_and_leaves_nothing() {
    let stats = Stats {
        usage: ResourceUsage { cpu_time_ms: Some(3), ..ResourceUsage::default() },
        ..Stats::default()
    };
    let backend = FakeBackend::new().with_stats(stats);
    let result = done(&backend, command(&["/bin/true"])).await;
    assert_eq!(result.outcome, Outcome::Exited { code: 0 });
    assert_eq!(result.resource_usage.cpu_time_ms, Some(3));
    assert!(result.warnings.is_empty() && result.limits_hit.is_empty());
    let process = &backend.started()[0];
    assert_eq!(process.stdio, Stdio::Pipes { stdin: false });
    assert!(process.cwd.as_str() == "/workspace" && !process.make_cwd);
}

#[tokio::test(start_paused = true)]
async fn output_is_kept_apart_and_shown_live() {
    let backend = FakeBackend::new().with_program("talk", |mut guest: Guest| async move {
        guest.print("out").await;
        guest.stderr.write_all(b"err").await.unwrap();
        ExitStatus::Exited(3)
    });
    let mut seen = Seen::default();
    let result = run(&backend, command(&["talk"]), &mut seen, Cancellation::never()).await.unwrap();
    assert_eq!(result.outcome, Outcome::Exited { code: 3 });
    assert_eq!((result.stdout.text().as_str(), result.stderr.text().as_str()), ("out", "err"));
    seen.bytes.sort_by_key(|(stream, _)| *stream == OutputStream::Stderr);
    let expected = [(OutputStream::Stdout, b"out".to_vec()), (OutputStream::Stderr, b"err".to_vec())];
    assert_eq!(seen.bytes, expected);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_stuck_holds_up_neither_the_deadline_nor_the_rest() {
    let backend = FakeBackend::new().with_program("flood", |mut guest: Guest| async move {
        loop {
            guest.print([b'x'; 4096]).await;
        }
    });
    let mut seen = Seen { stuck: true, ..Seen::default() };
    let result = run(&backend, command(&["flood"]), &mut seen, Cancellation::never()).await.unwrap();
    assert_eq!(result.outcome, Outcome::TimedOut);
    let shown: usize = seen.bytes.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(shown > 64 << 10, "what was in the pipe was read after the end: {shown}");
    assert_eq!(shown, result.stdout.bytes.len());
}

/// Leaves a child behind that holds the output, so that the sandbox is asked to end before the job is done.
fn hold_output(guest: &mut Guest) {
    let (mine, _) = tokio::io::duplex(1);
    let held = std::mem::replace(&mut guest.stdout, mine);
    guest.leave_behind(async move {
        let _held = held;
        std::future::pending().await
    });
}

async fn orphan(mut guest: Guest, status: ExitStatus) -> ExitStatus {
    guest.orphan_sandbox();
    hold_output(&mut guest);
    status
}

#[tokio::test(start_paused = true)]
async fn a_lost_sandbox_is_said_once() {
    let backend = FakeBackend::new().with_program("lost", |guest| orphan(guest, ExitStatus::Lost));
    let result = done(&backend, command(&["lost"])).await;
    assert_eq!((result.outcome, result.warnings), (Outcome::Lost, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_could_not_be_removed_is_said() {
    let backend = FakeBackend::new().with_program("left", |guest| orphan(guest, ExitStatus::Exited(0)));
    let result = done(&backend, command(&["left"])).await;
    assert_eq!(result.outcome, Outcome::Exited { code: 0 });
    let expected = "the sandbox was not removed cleanly: the sandbox is gone: nobody is left to ask";
    assert_eq!(result.warnings, [expected]);
}

#[tokio::test(start_paused = true)]
async fn output_past_the_limit_is_counted_and_still_shown() {
    let backend = FakeBackend::new().with_program("flood", |mut guest: Guest| async move {
        for _ in 0..9 {
            guest.print(vec![b'x'; 1 << 20]).await;
        }
        ExitStatus::Exited(0)
    });
    let mut seen = Seen::default();
    let result = run(&backend, command(&["flood"]), &mut seen, Cancellation::never()).await.unwrap();
    assert_eq!((result.stdout.bytes.len(), result.stdout.dropped_bytes), (OUTPUT_KEPT_BYTES, 1 << 20));
    assert_eq!(seen.bytes.iter().map(|(_, bytes)| bytes.len()).sum::<usize>(), 9 << 20);
    let hits: Vec<_> = result.limits_hit.iter().map(|hit| (hit.limit, hit.count)).collect();
    assert_eq!(hits, [(LimitKind::Output, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_child_left_behind_does_not_hold_the_job() {
    let backend = FakeBackend::new().with_program("fork", |mut guest: Guest| async move {
        guest.print("parent").await;
        hold_output(&mut guest);
        ExitStatus::Exited(0)
    });
    let began = Instant::now();
    let result = done(&backend, command(&["fork"])).await;
    assert_eq!((result.outcome, result.stdout.text().as_str()), (Outcome::Exited { code: 0 }, "parent"));
    assert!(result.warnings.is_empty() && began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_a_process_may_say_goodbye() {
    let backend = FakeBackend::new().with_program("polite", |mut guest: Guest| async move {
        guest.handle_signals();
        let signal = guest.signal().await;
        guest.print(format!("bye {signal}")).await;
        ExitStatus::Exited(0)
    });
    let mut spec = command(&["polite"]);
    spec.limits.timeout = Duration::from_secs(7);
    let result = done(&backend, spec).await;
    assert_eq!((result.outcome, result.stdout.text().as_str()), (Outcome::TimedOut, "bye 15"));
    assert_eq!((result.duration_ms, backend.signals()), (7000, vec![15]));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ignores_the_deadline_has_its_grace_and_no_more() {
    let backend = FakeBackend::new().with_program("deaf", |mut guest: Guest| async move {
        guest.handle_signals();
        guest.print("last words").await;
        std::future::pending().await
    });
    let mut spec = command(&["deaf"]);
    spec.limits =
        Limits { timeout: Duration::from_secs(7), grace: Duration::from_secs(3), ..Limits::default() };
    let result = done(&backend, spec).await;
    assert_eq!((result.outcome, result.stdout.text().as_str()), (Outcome::TimedOut, "last words"));
    assert_eq!((result.duration_ms, backend.signals()), (10_000, vec![15, 9]));
}

#[tokio::test(start_paused = true)]
async fn a_request_sends_its_signal_and_a_second_one_kills() {
    let deaf = FakeBackend::new().with_program("deaf", |guest: Guest| async move {
        guest.handle_signals();
        std::future::pending().await
    });
    let (canceller, cancellation) = cancellation();
    let asking = async {
        sleep(Duration::from_millis(100)).await;
        canceller.cancel("me", SIGINT);
        sleep(Duration::from_millis(100)).await;
        canceller.cancel("me again", SIGINT);
    };
    let mut live = Discard;
    let running = run(&deaf, command(&["deaf"]), &mut live, cancellation);
    let (result, ()) = tokio::join!(running, asking);
    let result = result.unwrap();
    assert_eq!(result.outcome, Outcome::Cancelled { by: "me".to_owned() });
    assert_eq!((result.duration_ms, deaf.signals()), (200, vec![SIGINT, 9]));
}

#[tokio::test(start_paused = true)]
async fn a_request_before_the_start_starts_nothing() {
    struct Endless;
    impl tokio::io::AsyncRead for Endless {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Pending
        }
    }
    let backend = FakeBackend::new();
    let mut spec = command(&["true"]);
    let path = GuestPath::parse("file", "/workspace/x").unwrap();
    spec.files.push(FileIn { path, mode: 0o644, content: Box::new(Endless) });
    let (canceller, cancellation) = cancellation();
    canceller.cancel("me", SIGINT);
    let result = run(&backend, spec, &mut Discard, cancellation).await.unwrap();
    assert_eq!(result.outcome, Outcome::Cancelled { by: "me".to_owned() });
    assert_eq!((backend.started().len(), backend.standing()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_is_heard_while_the_sandbox_is_being_made() {
    let stuck = FakeBackend::new().that_never_makes();
    let (canceller, cancellation) = cancellation();
    let asking = async {
        sleep(Duration::from_millis(100)).await;
        canceller.cancel("me", SIGINT);
    };
    let mut live = Discard;
    let running = run(&stuck, command(&["true"]), &mut live, cancellation);
    let both = async { tokio::join!(running, asking).0 };
    let result = tokio::time::timeout(Duration::from_secs(5), both).await.expect("an answer").unwrap();
    assert_eq!(result.outcome, Outcome::Cancelled { by: "me".to_owned() });
    assert_eq!(stuck.standing(), 0);
}

#[tokio::test(start_paused = true)]
async fn out_of_memory_is_told_by_the_kernels_count() {
    let stats = Stats { oom_kills: Some(1), memory_limit_hits: Some(40), ..Stats::default() };
    let backend =
        FakeBackend::new().with_stats(stats).with_program("hog", |_| async { ExitStatus::Signaled(9) });
    let result = done(&backend, command(&["hog"])).await;
    assert_eq!(result.outcome, Outcome::OomKilled);
    assert_eq!((result.limits_hit[0].limit, result.limits_hit[0].count), (LimitKind::Memory, 40));
}

#[tokio::test(start_paused = true)]
async fn input_reaches_the_process_and_ends() {
    let cat = |mut guest: Guest| async move {
        let mut read = Vec::new();
        guest.stdin.read_to_end(&mut read).await.unwrap();
        guest.print(read).await;
        ExitStatus::Exited(0)
    };
    let backend = FakeBackend::new().with_program("cat", cat);
    for stdin in [Stdin::Bytes(b"abc".to_vec()), Stdin::Stream(Box::new(Cursor::new(b"abc".to_vec())))] {
        let mut spec = command(&["cat"]);
        spec.stdin = stdin;
        assert_eq!(done(&backend, spec).await.stdout.text(), "abc");
    }
    let deaf = FakeBackend::new();
    let mut spec = command(&["true"]);
    spec.stdin = Stdin::Bytes(vec![0; 1 << 20]);
    let result = done(&deaf, spec).await;
    assert!(result.outcome == Outcome::Exited { code: 0 } && result.warnings.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_terminal_follows_its_size_and_has_a_type() {
    let backend = FakeBackend::new().with_program("top", |_| async {
        sleep(Duration::from_secs(1)).await;
        ExitStatus::Exited(0)
    });
    let (resizer, job_terminal) = terminal(WindowSize { rows: 24, columns: 80 });
    let mut spec = command(&["top"]);
    spec.terminal = Some(job_terminal);
    let resizing = async {
        sleep(Duration::from_millis(10)).await;
        resizer.resize(WindowSize { rows: 50, columns: 132 });
    };
    let mut live = Discard;
    let (result, ()) = tokio::join!(run(&backend, spec, &mut live, Cancellation::never()), resizing);
    assert_eq!(result.unwrap().outcome, Outcome::Exited { code: 0 });
    let process = &backend.started()[0];
    assert_eq!(process.stdio, Stdio::Terminal { rows: 24, columns: 80 });
    assert!(process.env.iter().any(|(name, _)| name == "TERM"));
    assert_eq!(backend.resizes(), [(50, 132)]);
    assert!(backend.last_spec().unwrap().terminal);
}

#[tokio::test(start_paused = true)]
async fn code_that_has_to_be_a_file_is_written_and_run() {
    let backend = FakeBackend::new().with_program("java", |_| async { ExitStatus::Exited(0) });
    let mut spec = code("java", "class Main {}");
    spec.args = vec!["one".to_owned()];
    done(&backend, spec).await;
    assert_eq!(backend.started()[0].argv, ["java", "/workspace/Main.java", "one"]);
    let written = Node::File { mode: 0o644, content: b"class Main {}".to_vec() };
    assert_eq!(backend.files().get("/workspace/Main.java"), Some(&written));
    let mut spec = code("java", "class Main {}");
    let path = GuestPath::parse("file", "/workspace/Main.java").unwrap();
    spec.files.push(FileIn { path, mode: 0o644, content: Box::new(Cursor::new(Vec::new())) });
    let refused = run(&backend, spec, &mut Discard, Cancellation::never()).await;
    assert!(matches!(refused, Err(JobError::Invalid(_))));
}

#[tokio::test(start_paused = true)]
async fn a_missing_runtime_lists_those_present() {
    let backend = FakeBackend::new().with_files(|files| {
        files.put("/bin", Node::Link);
        files.put("/usr/bin/python3", Node::Link);
        files.put_file("/usr/bin/sh", b"");
        files.put_file("/usr/local/bin/node", b"");
    });
    let error = run(&backend, code("ruby", "1"), &mut Discard, Cancellation::never()).await.unwrap_err();
    let expected = "the image has no ruby, which ruby needs; it has python, node, sh";
    assert_eq!((error.to_string().as_str(), backend.standing()), (expected, 0));
    let none = run(&FakeBackend::new(), code("go", "1"), &mut Discard, Cancellation::never()).await;
    assert!(none.unwrap_err().to_string().ends_with("it has none of the known languages"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_command_is_told_as_it_is() {
    let backend = FakeBackend::new();
    let error = run(&backend, command(&["nope"]), &mut Discard, Cancellation::never()).await.unwrap_err();
    assert!(matches!(error, JobError::Start(BackendError::NotFound { path }) if path == "nope"));
    assert_eq!(backend.standing(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_from_the_start_makes_no_sandbox() {
    let backend = FakeBackend::new();
    let mut specs = vec![command(&[]), command(&[""]), command(&["true", "a\0b"])];
    specs.push(command(&["true"]));
    specs[3].env.push((String::new(), String::new()));
    specs.push(command(&["true"]));
    specs[4].limits.pids = 0;
    for spec in specs {
        let refused = run(&backend, spec, &mut Discard, Cancellation::never()).await;
        assert!(matches!(refused, Err(JobError::Invalid(_))));
    }
    assert_eq!(backend.created(), 0);
}

#[tokio::test(start_paused = true)]
async fn reserved_variables_are_warned_of() {
    let backend = FakeBackend::new();
    let mut spec = command(&["true"]);
    spec.env.push(("CYNODE_JOB_ID".to_owned(), "mine".to_owned()));
    let result = done(&backend, spec).await;
    assert_eq!(result.warnings.len(), 1);
    let env = &backend.started()[0].env;
    assert!(env.contains(&("CYNODE_JOB_ID".to_owned(), "job-aaaaaaaaaaaaaaaa".to_owned())));
}
