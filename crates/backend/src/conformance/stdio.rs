//! Stdin, stdout and stderr as pipes.

use super::support::*;
use crate::{Backend, ExitStatus};
use tokio::io::AsyncWriteExt;

const SIGPIPE: i32 = 13;

/// More than any pipe holds, so that both directions must move at once.
const MORE_THAN_A_PIPE: usize = 1 << 20;

pub async fn stdin_arrives_and_ends(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let process = start(&*sandbox, with_stdin(process(["/bin/cat"]))).await;
    let mut stdin = process.take_stdin().expect("stdin");
    assert!(process.take_stdin().is_none(), "stdin was taken twice");

    let content: Vec<u8> = (0..MORE_THAN_A_PIPE).map(|i| (i % 251) as u8).collect();
    let write = async {
        stdin.write_all(&content).await.expect("stdin that takes everything");
        stdin.shutdown().await.expect("stdin that can be closed");
        drop(stdin);
    };
    let ((), output) = tokio::join!(write, finish(&*process));
    assert_eq!(output.status, ExitStatus::Exited(0));
    assert!(output.stdout == content, "{} bytes came back, or others", output.stdout.len());
}

pub async fn stdin_is_at_its_end_unless_asked_for(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let process = start(&*sandbox, process(["/bin/cat"])).await;
    assert!(process.take_stdin().is_none(), "a stdin that was not asked for");
    let output = promptly("the end of cat", finish(&*process)).await;
    assert_eq!((output.status, output.stdout.len()), (ExitStatus::Exited(0), 0), "{output:?}");
}

pub async fn stdout_and_stderr_are_separate(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let output = run(&*sandbox, sh("echo out; echo err >&2; echo more")).await;
    assert_eq!((output.stdout(), output.stderr()), ("out\nmore\n".to_owned(), "err\n".to_owned()));
}

pub async fn dev_stdout_and_dev_stderr_open(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let script = "echo out > /dev/stdout && echo err > /dev/stderr && echo out > /proc/self/fd/1";
    let output = run(&*sandbox, sh(script)).await;
    assert_eq!(output.status, ExitStatus::Exited(0), "{output:?}");
    assert_eq!((output.stdout(), output.stderr()), ("out\nout\n".to_owned(), "err\n".to_owned()));

    let process = start(&*sandbox, with_stdin(sh("cat /dev/stdin"))).await;
    let mut stdin = process.take_stdin().expect("stdin");
    stdin.write_all(b"in\n").await.expect("stdin that takes a line");
    drop(stdin);
    let output = finish(&*process).await;
    assert_eq!(output.stdout(), "in\n", "{output:?}");
}

pub async fn output_is_binary_safe(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let content: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    write(&*sandbox, "/workspace/bytes", 0o644, &content).await.expect("a file");
    let output = run(&*sandbox, sh("cat bytes; cat bytes >&2")).await;
    assert_eq!(output.stdout, content);
    assert_eq!(output.stderr, content);
}

pub async fn large_output_is_complete(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let output = run(&*sandbox, sh("seq 700000; seq 100000 >&2")).await;
    assert_eq!(output.status, ExitStatus::Exited(0));
    let lines = |count: u32| (1..=count).map(|i| format!("{i}\n")).collect::<String>().into_bytes();
    assert!(lines(700_000).len() as u64 > 4 * MIB);
    assert!(output.stdout == lines(700_000), "{} bytes of stdout, or others", output.stdout.len());
    assert!(output.stderr == lines(100_000), "{} bytes of stderr, or others", output.stderr.len());
}

pub async fn output_waits_for_its_reader(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let short = start(&*sandbox, sh("echo kept")).await;
    assert_eq!(short.wait().await.expect("a status"), ExitStatus::Exited(0));

    let long = start(&*sandbox, sh(&format!("head -c {MORE_THAN_A_PIPE} /dev/zero"))).await;
    assert_still_runs(&*sandbox).await;
    assert_eq!(finish(&*long).await.stdout.len(), MORE_THAN_A_PIPE);
    assert_eq!(finish(&*short).await.stdout(), "kept\n");
}

pub async fn a_closed_reader_is_a_broken_pipe(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let process = start(&*sandbox, process(["yes"])).await;
    drop(process.take_stdout().expect("stdout"));
    let status = promptly("the end of yes", process.wait()).await;
    assert_eq!(status.expect("a status"), ExitStatus::Signaled(SIGPIPE));
}

pub async fn a_closed_stdin_is_an_error_to_its_writer(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let process = start(&*sandbox, with_stdin(process(["/bin/true"]))).await;
    let mut stdin = process.take_stdin().expect("stdin");
    assert_eq!(process.wait().await.expect("a status"), ExitStatus::Exited(0));
    let written = promptly("an error", stdin.write_all(&[0; MORE_THAN_A_PIPE])).await;
    assert!(written.is_err(), "nobody reads it");
    assert_still_runs(&*sandbox).await;
}
