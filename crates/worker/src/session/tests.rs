//! Sessions on the fake backend. Time is paused: only what waits for it passes.

use super::*;
use crate::cancellation;
use crate::output::{LiveOutput, OutputStream};
use crate::pool::{PoolSettings, Taken};
use crate::task_env::workspace;
use crate::testing::{FakeBackend, Guest};
use cofferdam_backend::{Backend, ExitStatus, async_trait};
use cofferdam_core::Outcome;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

#[derive(Default)]
struct Seen {
    stdout: Vec<u8>,
    has_begun: bool,
}

#[async_trait]
impl LiveOutput for Seen {
    fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        if stream == OutputStream::Stdout {
            self.stdout.extend_from_slice(bytes);
        }
    }

    async fn ready(&mut self) {}
}

#[async_trait]
impl StepOutput for Seen {
    async fn begun(&mut self) {
        self.has_begun = true;
    }

    fn show(&mut self, _: Shown) {}
}

fn id() -> SessionId {
    SessionId::from_random([1; 10])
}

fn command(number: i64, context: &str, words: &[&str]) -> StepSpec {
    let argv = words.iter().map(|word| (*word).to_owned()).collect();
    StepSpec {
        number,
        work: StepWork::Command { argv, stdin: None, workdir: workspace() },
        context: context.to_owned(),
        env: Vec::new(),
        timeout: Duration::from_secs(60),
    }
}

/// Programs that take a second, and one that waits to be told.
fn backend() -> Arc<FakeBackend> {
    let second = |_: Guest| async {
        sleep(Duration::from_secs(1)).await;
        ExitStatus::Exited(0)
    };
    let env = |mut guest: Guest| async move {
        let text: String = guest.spec.env.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let _ = guest.stdout.write_all(text.as_bytes()).await;
        ExitStatus::Exited(3)
    };
    // As of a terminal: the last that a program wrote comes a moment after its end.
    let late = |mut guest: Guest| async move {
        let mut stdout = std::mem::replace(&mut guest.stdout, tokio::io::duplex(1).0);
        guest.leave_behind(async move {
            sleep(Duration::from_millis(5)).await;
            let _ = stdout.write_all(b"last words").await;
            std::future::pending::<()>().await;
        });
        ExitStatus::Exited(0)
    };
    let never = |_: Guest| async { std::future::pending().await };
    Arc::new(
        FakeBackend::new()
            .with_program("second", second)
            .with_program("env", env)
            .with_program("late", late)
            .with_program("never", never),
    )
}

async fn started(backend: &Arc<FakeBackend>) -> Sessions {
    let sessions = Sessions::new(Arc::new(Pool::new(Arc::clone(backend) as _, PoolSettings::default())));
    sessions.start(SessionSpec::new(id(), 1)).await.unwrap();
    sessions
}

async fn step(sessions: &Sessions, spec: StepSpec) -> (StepEnd, Seen) {
    let mut seen = Seen::default();
    let end = sessions.step(&id(), 1, spec, &mut seen, Cancellation::never()).await.unwrap();
    (end, seen)
}

#[tokio::test(start_paused = true)]
async fn steps_share_a_sandbox_that_goes_with_the_session() {
    let backend = backend();
    let sessions = started(&backend).await;
    let (end, seen) = step(&sessions, command(1, "default", &["env"])).await;
    assert_eq!((end.outcome, end.exit_code), (Outcome::Exited { code: 3 }, Some(3)));
    let text = String::from_utf8(seen.stdout).unwrap();
    assert!(text.contains(&format!("CYNODE_JOB_ID={}\n", id())), "{text}");
    assert!(
        text.contains("CYNODE_STEP=1\n") && text.contains(&format!("CYNODE_TASK_ID={}\n", id())),
        "{text}"
    );
    step(&sessions, command(2, "default", &["true"])).await;
    assert_eq!((backend.created(), backend.standing()), (1, 1));
    sessions.terminate(&id(), 1).await;
    assert_eq!((backend.standing(), sessions.count()), (0, 0));
}

#[tokio::test]
async fn an_interpreter_that_is_started_later_has_the_kernel_of_its_kind_compiled() {
    let backend = backend();
    let sandbox_id = draw_sandbox_id().unwrap();
    let sandbox = backend.create(sandbox_spec(sandbox_id.clone(), &SessionSpec::new(id(), 1))).await.unwrap();
    let kernel = Some(Arc::from(*b"told"));
    let taken = Taken { id: sandbox_id, sandbox, interpreter: None, kernel };
    let live = Live::new(SessionSpec::new(id(), 1), taken);
    let compiled = |language| live.kernel_options(language, &[]).compiled;
    assert_eq!(compiled(KernelLanguage::Python).as_deref(), Some(&b"told"[..]));
    assert_eq!(compiled(KernelLanguage::JavaScript), None);
    assert_eq!(compiled(KernelLanguage::Bash), None);
}

#[tokio::test(start_paused = true)]
async fn one_context_is_a_queue_and_two_are_not() {
    let sessions = started(&backend()).await;
    let began = Instant::now();
    tokio::join!(
        step(&sessions, command(1, "a", &["second"])),
        step(&sessions, command(2, "a", &["second"])),
        step(&sessions, command(3, "b", &["second"])),
    );
    let time = began.elapsed();
    assert!((2000..2500).contains(&time.as_millis()), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_can_be_cancelled_without_having_begun() {
    let sessions = started(&backend()).await;
    let (canceller, cancel) = cancellation();
    let mut seen = Seen::default();
    let (_, waiting) = tokio::join!(step(&sessions, command(1, "a", &["second"])), async {
        canceller.cancel("me", 15);
        sessions.step(&id(), 1, command(2, "a", &["true"]), &mut seen, cancel).await
    });
    assert_eq!(waiting.unwrap().outcome, Outcome::Cancelled { by: "me".to_owned() });
    assert!(!seen.has_begun);
}

#[tokio::test(start_paused = true)]
async fn a_step_ends_at_its_time_out_and_the_session_goes_on() {
    let sessions = started(&backend()).await;
    let (end, _) =
        step(&sessions, StepSpec { timeout: Duration::from_secs(2), ..command(1, "a", &["never"]) }).await;
    assert_eq!(end.outcome, Outcome::TimedOut);
    let (end, _) = step(&sessions, command(2, "a", &["true"])).await;
    assert_eq!(end.outcome, Outcome::Exited { code: 0 });
}

#[tokio::test(start_paused = true)]
async fn whoever_means_another_placement_is_refused() {
    let sessions = started(&backend()).await;
    let mut seen = Seen::default();
    let spec = || command(1, "a", &["true"]);
    let stale = sessions.step(&id(), 2, spec(), &mut seen, Cancellation::never()).await;
    assert!(matches!(stale, Err(SessionError::Stale)), "{stale:?}");
    sessions.terminate(&id(), 0).await;
    assert_eq!(sessions.count(), 1, "an old word does not end a newer placement");
    let other = SessionId::from_random([2; 10]);
    let unknown = sessions.step(&other, 1, spec(), &mut seen, Cancellation::never()).await;
    assert!(matches!(unknown, Err(SessionError::Unknown)), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_process_is_told_after_its_last_words() {
    let sessions = started(&backend()).await;
    let order = ProcessOrder {
        argv: vec!["late".to_owned()],
        env: Vec::new(),
        workdir: None,
        terminal: None,
        timeout: None,
    };
    let number = sessions.start_process(&id(), 1, order).await.unwrap().number;
    let (mut said, mut after) = (Vec::new(), 0);
    let state = loop {
        let news = sessions.process_news(&id(), 1, number, after, Duration::from_secs(5)).await.unwrap();
        after = news.pieces.last().map_or(after, |piece| piece.seq);
        news.pieces.into_iter().for_each(|piece| said.extend(piece.bytes));
        if news.state.ended.is_some() {
            break news.state;
        }
    };
    assert_eq!(String::from_utf8_lossy(&said), "last words");
    assert_eq!(state.ended.map(|(outcome, _)| outcome), Some(Outcome::Exited { code: 0 }));
}

/// Entries are counted, and not the names that they have.
#[tokio::test]
async fn an_archive_with_one_name_over_and_over_comes_to_an_end() {
    use cofferdam_images::tar::{END, Kind, Written, write_header};
    let sessions = started(&backend()).await;
    let entry =
        Written { path: b"a/", link: b"", kind: Kind::Folder, mode: 0o755, uid: 0, seconds: 0, size: 0 };
    let archive = |count: usize| {
        let bytes = [write_header(&entry).repeat(count), END.to_vec()].concat();
        Box::new(std::io::Cursor::new(bytes)) as cofferdam_backend::Reader
    };
    let live = sessions.find(&id(), 1).unwrap();
    let unpack = async |content| {
        let (live, runtime) = (Arc::clone(&live), tokio::runtime::Handle::current());
        tokio::task::spawn_blocking(move || archive::unpack_new(&live, runtime, content)).await.unwrap()
    };
    let refused = unpack(archive(archive::MAX_ENTRIES + 1)).await;
    assert!(
        matches!(&refused, Err(SessionError::Archive { why, .. }) if why.contains("more than 100000 entries")),
        "{refused:?}"
    );
}
