//! `run` on the fake backend, from the words to the exit code.

use super::super::open::open;
use super::super::request::RunRequest;
use super::*;
use crate::args::RunArgs;
use crate::host::signals::SIGINT;
use cofferdam_backend::{ExitStatus, Stats};
use cofferdam_worker::testing::{FakeBackend, Guest};
use rustix::process::{Signal, getpid, kill_process};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::Mutex as AsyncMutex;

/// Signals reach every listener of the process, so only one test at a time may listen.
static ALONE: AsyncMutex<()> = AsyncMutex::const_new(());

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn command(program: &str) -> RunArgs {
    RunArgs { command: vec![program.to_owned()], ..RunArgs::default() }
}

async fn attended(backend: &FakeBackend, args: RunArgs, stdout: Sink) -> Result<u8, Failure> {
    let _alone = ALONE.lock().await;
    let opened = open(RunRequest::parse(args)?)?;
    let code = attend(backend, opened, stdout, Box::new(Memory::default())).await;
    assert_eq!(backend.standing(), 0);
    code
}

fn talker() -> FakeBackend {
    FakeBackend::new().with_program("talk", |mut guest: Guest| async move {
        guest.print("hello").await;
        guest.change_files(|files| files.put_file("/workspace/.artifacts/a/b", b"kept"));
        ExitStatus::Exited(3)
    })
}

#[tokio::test]
async fn output_comes_through_and_the_exit_code_is_the_commands() {
    let out = Memory::default();
    assert_eq!(attended(&talker(), command("talk"), Box::new(out.clone())).await.unwrap(), 3);
    assert_eq!(out.text(), "hello");
}

#[tokio::test]
async fn a_sandbox_goes_with_us_only_where_nobody_can_keep_us() {
    let quiet = || FakeBackend::new().with_program("quiet", |_| async { ExitStatus::Exited(0) });
    let standing_after = async |backend: FakeBackend, args: RunArgs| {
        let _alone = ALONE.lock().await;
        let opened = open(RunRequest::parse(args).unwrap()).unwrap();
        let out = Memory::default();
        assert_eq!(attend(&backend, opened, Box::new(out.clone()), Box::new(out)).await.unwrap(), 0);
        backend.standing()
    };
    let bound = || quiet().that_ends_with_host();
    assert_eq!(standing_after(bound(), command("quiet")).await, 1);
    assert_eq!(standing_after(quiet(), command("quiet")).await, 0);
    assert_eq!(standing_after(bound(), RunArgs { json: true, ..command("quiet") }).await, 0);
    let warned = RunArgs { env: vec!["CYNODE_TASK_ID=mine".to_owned()], ..command("quiet") };
    assert_eq!(standing_after(bound(), warned).await, 0);
}

#[tokio::test]
async fn json_is_the_result_and_nothing_else() {
    let out = Memory::default();
    let args = RunArgs { json: true, ..command("talk") };
    assert_eq!(attended(&talker(), args, Box::new(out.clone())).await.unwrap(), 3);
    let result: serde_json::Value = serde_json::from_str(&out.text()).unwrap();
    assert_eq!((&result["exit_code"], &result["stdout"]), (&3.into(), &"hello".into()));
    assert_eq!(result["artifacts"][0]["path"], "a/b");
}

#[tokio::test]
async fn a_result_that_nobody_reads_is_our_failure() {
    let args = RunArgs { json: true, ..command("talk") };
    assert_eq!(attended(&talker(), args, Box::new(Closed)).await.unwrap_err().code, 125);
}

#[tokio::test]
async fn a_closed_stdout_ends_the_job_as_it_would_end_a_process() {
    let backend = FakeBackend::new().with_program("yes", |mut guest: Guest| async move {
        loop {
            guest.print("y\n").await;
        }
    });
    assert_eq!(attended(&backend, command("yes"), Box::new(Closed)).await.unwrap(), 141);
    assert_eq!(backend.signals(), [SIGPIPE]);
}

#[tokio::test]
async fn output_that_could_not_be_written_is_never_success() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let failure = attended(&talker(), command("talk"), Box::new(Full)).await.unwrap_err();
    assert!(failure.code == 125 && failure.message.contains("not all be written"));
}

#[tokio::test]
async fn an_interrupt_is_passed_on_and_a_second_one_kills() {
    let backend = FakeBackend::new().with_program("stubborn", |mut guest: Guest| async move {
        guest.handle_signals();
        kill_process(getpid(), Signal::INT).unwrap();
        assert_eq!(guest.signal().await, SIGINT);
        kill_process(getpid(), Signal::INT).unwrap();
        std::future::pending().await
    });
    assert_eq!(attended(&backend, command("stubborn"), Box::new(Memory::default())).await.unwrap(), 130);
    assert_eq!(backend.signals(), [SIGINT, 9]);
}

#[tokio::test]
async fn endings_have_their_codes() {
    let out = || Box::new(Memory::default());
    let slow = FakeBackend::new().with_program("slow", |_| std::future::pending());
    let args = RunArgs { timeout: Some("20ms".to_owned()), ..command("slow") };
    assert_eq!(attended(&slow, args, out()).await.unwrap(), 124);
    let hungry = Stats { oom_kills: Some(1), ..Stats::default() };
    let killed = |_| async { ExitStatus::Signaled(9) };
    let hog = FakeBackend::new().with_stats(hungry).with_program("hog", killed);
    assert_eq!(attended(&hog, command("hog"), out()).await.unwrap(), 137);
    assert_eq!(attended(&hog, command("nothing"), out()).await.unwrap_err().code, 127);
}

#[tokio::test]
async fn artifacts_are_kept_and_a_folder_for_none_is_taken_back() {
    let folder = std::env::temp_dir().join(format!("cofferdam-attend-{}", std::process::id()));
    let args = |program| RunArgs { artifacts_out: Some(PathBuf::from(&folder)), ..command(program) };
    assert!(attended(&talker(), args("nothing"), Box::new(Memory::default())).await.is_err());
    assert!(!folder.exists());
    assert_eq!(attended(&talker(), args("talk"), Box::new(Memory::default())).await.unwrap(), 3);
    assert_eq!(std::fs::read(folder.join("a/b")).unwrap(), b"kept");
    std::fs::remove_dir_all(&folder).unwrap();
}
