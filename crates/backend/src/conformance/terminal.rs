//! Terminals: that programs see one, its size, its keys.

use super::support::*;
use crate::{Backend, ExitStatus, Process, ProcessSpec, Reader, Sandbox, SandboxSpec, Stdio};
use tokio::io::AsyncWriteExt;

const SIGINT: i32 = 2;
const CTRL_C: &[u8] = b"\x03";
const CTRL_D: &[u8] = b"\x04";

fn on_terminal(script: &str) -> ProcessSpec {
    ProcessSpec { stdio: Stdio::Terminal { rows: 24, columns: 80 }, ..sh(script) }
}

/// A sandbox whose processes may have terminals. Without the ability: `None`, after a look at the refusal.
async fn terminal_sandbox(backend: &dyn Backend) -> Option<Box<dyn Sandbox>> {
    let created = backend.create(SandboxSpec { terminal: true, ..sandbox_spec() }).await;
    if backend.capabilities().terminal {
        return Some(created.expect("a sandbox"));
    }
    match created {
        Ok(sandbox) => assert_unsupported("a terminal", sandbox.start(on_terminal("true")).await),
        refused => assert_unsupported("a terminal", refused),
    }
    None
}

/// Everything that came out, and how it ended.
async fn end_of(process: &dyn Process, stdout: &mut Reader) -> (String, ExitStatus) {
    let (output, status) = tokio::join!(read_to_end(stdout), promptly("its end", process.wait()));
    (String::from_utf8_lossy(&output).into_owned(), status.expect("a status"))
}

async fn run_on_terminal(sandbox: &dyn Sandbox, script: &str) -> (String, ExitStatus) {
    let process = start(sandbox, on_terminal(script)).await;
    let mut stdout = process.take_stdout().expect("stdout");
    end_of(&*process, &mut stdout).await
}

pub async fn terminals_are_terminals(backend: &dyn Backend) {
    let Some(sandbox) = terminal_sandbox(backend).await else { return };
    let process = start(&*sandbox, on_terminal("test -t 0 && test -t 1 && test -t 2 && echo all >&2")).await;
    assert!(process.take_stderr().is_none(), "a terminal has no stderr");
    let mut stdout = process.take_stdout().expect("stdout");
    let (output, status) = end_of(&*process, &mut stdout).await;
    assert_eq!((output.as_str(), status), ("all\r\n", ExitStatus::Exited(0)));
}

pub async fn terminals_have_the_asked_size(backend: &dyn Backend) {
    let Some(sandbox) = terminal_sandbox(backend).await else { return };
    for (rows, columns) in [(24, 80), (50, 132), (10, 40)] {
        let spec = ProcessSpec { stdio: Stdio::Terminal { rows, columns }, ..sh("stty size") };
        let output = run(&*sandbox, spec).await;
        assert_eq!(output.stdout(), format!("{rows} {columns}\r\n"));
    }
}

pub async fn terminals_resize(backend: &dyn Backend) {
    let Some(sandbox) = terminal_sandbox(backend).await else { return };
    let script = "trap 'stty size; exit 7' WINCH; echo ready; while :; do sleep 0.05; done";
    let (process, mut stdout) = start_ready(&*sandbox, on_terminal(script)).await;
    process.resize(40, 132).await.expect("another size");
    let (output, status) = end_of(&*process, &mut stdout).await;
    assert_eq!((output.as_str(), status), ("40 132\r\n", ExitStatus::Exited(7)));
}

pub async fn ctrl_c_reaches_the_foreground_group(backend: &dyn Backend) {
    let Some(sandbox) = terminal_sandbox(backend).await else { return };
    let (process, mut stdout) =
        start_ready(&*sandbox, on_terminal("sleep 1000 | { echo ready; cat; }")).await;
    let mut stdin = process.take_stdin().expect("stdin");
    stdin.write_all(CTRL_C).await.expect("a key typed");
    // The terminal comes to its end only when the whole pipeline is gone.
    let (_, status) = end_of(&*process, &mut stdout).await;
    assert_eq!(status, ExitStatus::Signaled(SIGINT));
}

pub async fn typed_lines_and_end_of_file_arrive(backend: &dyn Backend) {
    let Some(sandbox) = terminal_sandbox(backend).await else { return };
    let script = "echo ready; while read -r line; do echo \"got $line\"; done; exit 7";
    let (process, mut stdout) = start_ready(&*sandbox, on_terminal(script)).await;
    let mut stdin = process.take_stdin().expect("stdin");
    stdin.write_all(b"hello\n").await.expect("a line typed");
    let echoed = read_until(&mut stdout, "got hello").await;
    assert!(echoed.starts_with("hello\r\n"), "a terminal echoes what is typed: {echoed:?}");
    stdin.write_all(CTRL_D).await.expect("a key typed");
    let (_, status) = end_of(&*process, &mut stdout).await;
    assert_eq!(status, ExitStatus::Exited(7));
}

pub async fn dev_tty_is_the_terminal(backend: &dyn Backend) {
    let Some(sandbox) = terminal_sandbox(backend).await else { return };
    let (output, status) = run_on_terminal(&*sandbox, "echo hello 2>&1 > /dev/tty").await;
    assert_eq!((output.as_str(), status), ("hello\r\n", ExitStatus::Exited(0)));
    let (output, status) = run_on_terminal(&*sandbox, "tty").await;
    assert_eq!(status, ExitStatus::Exited(0), "{output}");
    assert!(output.starts_with("/dev/"), "{output}");
}

pub async fn terminals_are_refused_where_not_asked_for(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    assert_refused("a terminal", sandbox.start(on_terminal("true")).await);
    assert_still_runs(&*sandbox).await;
}

pub async fn pipes_come_without_a_terminal(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let output = run(&*sandbox, sh("test -t 0 || test -t 1 || test -t 2 || (: > /dev/tty)")).await;
    assert!(output.failed(), "{output:?}");
}
