//! How sandboxes begin, pause and end.

use super::support::*;
use crate::{Backend, ExitStatus, Image, Process, Reader, Sandbox, SandboxSpec};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout};

const SIGKILL: i32 = 9;

/// How long the end of everything in a sandbox may take.
const DESTROY_WITHIN: Duration = Duration::from_secs(2);

/// A tree that does its best to stay: no signal ends it, and half of it left its parents and their session.
/// All of it holds stdout, so stdout comes to its end when the last of it is gone.
const CLINGING: &str = "trap '' HUP INT TERM
    (setsid sh -c '(setsid sleep 1000 &); sleep 1000 & exec sleep 1000' &)
    (sleep 1000 &)
    echo ready
    while :; do sleep 1000; done";

async fn destroy(sandbox: &dyn Sandbox) {
    let started = Instant::now();
    promptly("destroy", sandbox.destroy()).await.expect("its end");
    assert!(started.elapsed() <= DESTROY_WITHIN, "it took {:?}", started.elapsed());
}

async fn assert_ended(process: &dyn Process) {
    let status = promptly("its end", process.wait()).await.expect("a status");
    assert!(matches!(status, ExitStatus::Signaled(SIGKILL) | ExitStatus::Lost), "{status:?}");
}

pub async fn a_backend_is_healthy(backend: &dyn Backend) {
    backend.health().await.expect("a healthy backend");
    assert!(!backend.name().is_empty());
}

pub async fn a_missing_image_is_an_error(backend: &dyn Backend) {
    let image = Image::Folder("/no/such/folder".into());
    assert_refused("a missing image", backend.create(SandboxSpec { image, ..sandbox_spec() }).await);
    assert_still_runs(&*sandbox(backend).await).await;
}

/// Reads whatever is still on its way, until nothing comes for a while.
async fn drain(stdout: &mut Reader) {
    let mut buffer = vec![0; 64 << 10];
    let mut drained = 0;
    while let Ok(read) = timeout(A_WHILE, stdout.read(&mut buffer)).await {
        let read = read.expect("stdout");
        assert!(read > 0, "the end of stdout");
        drained += read as u64;
        assert!(drained < 4 * MIB, "it goes on while it is paused");
    }
}

pub async fn paused_processes_stand_still(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !backend.capabilities().pause {
        assert_unsupported("pause", sandbox.pause().await);
        assert_unsupported("resume", sandbox.resume().await);
        return;
    }
    let process = start(&*sandbox, process(["yes"])).await;
    let mut stdout = process.take_stdout().expect("stdout");
    let mut line = [0; 2];
    for _ in 0..2 {
        promptly("a line", stdout.read_exact(&mut line)).await.expect("a line");
        promptly("pause", sandbox.pause()).await.expect("a pause");
        drain(&mut stdout).await;
        assert!(timeout(A_WHILE, stdout.read_u8()).await.is_err(), "it goes on while it is paused");
        promptly("resume", sandbox.resume()).await.expect("an end of the pause");
    }
    promptly("a line", stdout.read_exact(&mut line)).await.expect("a line");
    assert_still_runs(&*sandbox).await;
}

/// What is kept of a sandbox is read while nothing in it changes.
pub async fn files_can_be_read_while_paused(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !backend.capabilities().pause {
        assert_unsupported("pause", sandbox.pause().await);
        return;
    }
    let (_process, _stdout) = start_ready(
        &*sandbox,
        sh("i=0; echo $i > count; echo ready; while :; do i=$((i+1)); echo $i > count; /bin/true; done"),
    )
    .await;
    let count = async || promptly("the count", read(&*sandbox, "/workspace/count")).await.expect("a file");
    // Several times: what stands still only most of the time is seen to go on, and programs begin all the time.
    for _ in 0..20 {
        promptly("pause", sandbox.pause()).await.expect("a pause");
        let before = count().await;
        promptly("a list", sandbox.list_files(&path("/workspace"), 10)).await.expect("a list");
        promptly("numbers", sandbox.stats()).await.expect("numbers");
        tokio::time::sleep(A_WHILE / 20).await;
        assert_eq!(count().await, before, "it goes on while it is paused");
        promptly("a file", write(&*sandbox, "/workspace/put", 0o644, b"in")).await.expect("a file");
        promptly("resume", sandbox.resume()).await.expect("an end of the pause");
    }
    assert_eq!(sh_ok(&*sandbox, "cat put").await, "in");
}

pub async fn nothing_is_started_while_paused(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !backend.capabilities().pause {
        assert_unsupported("pause", sandbox.pause().await);
        return;
    }
    promptly("pause", sandbox.pause()).await.expect("a pause");
    {
        let starting = sandbox.start(sh("touch /workspace/started"));
        tokio::pin!(starting);
        assert!(timeout(A_WHILE, &mut starting).await.is_err(), "it was started while it is paused");
        assert_not_found("a file", sandbox.stat(&path("/workspace/started")).await);
        promptly("resume", sandbox.resume()).await.expect("an end of the pause");
        let process = promptly("a start", starting).await.expect("a process");
        promptly("its end", process.wait()).await.expect("a status");
    }
    sandbox.stat(&path("/workspace/started")).await.expect("a file");
    assert_still_runs(&*sandbox).await;
}

/// A pause is nothing that anybody inside has asked for: it ends what it has begun, and no more.
pub async fn what_was_stopped_stays_stopped(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !backend.capabilities().pause {
        assert_unsupported("pause", sandbox.pause().await);
        return;
    }
    // It is stopped when the kernel says so, and not as soon as it was sent the signal. The shell looks itself: gVisor
    // hangs up a group with a stopped process in it when any other of the group exits.
    let script = ": > count; (while :; do echo x >> count; done) & kill -STOP $!; until [ \"$state\" = T ]; do \
                  while read -r key state rest; do [ $key != State: ] || break; done < /proc/$!/status; done; \
                  echo ready; wait";
    let (_process, _stdout) = start_ready(&*sandbox, sh(script)).await;
    promptly("pause", sandbox.pause()).await.expect("a pause");
    let before = read(&*sandbox, "/workspace/count").await.expect("a file");
    promptly("resume", sandbox.resume()).await.expect("an end of the pause");
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(read(&*sandbox, "/workspace/count").await.expect("a file"), before, "it goes on");
}

pub async fn paused_sandboxes_can_be_destroyed(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let (process, mut stdout) = start_ready(&*sandbox, sh(CLINGING)).await;
    if backend.capabilities().pause {
        sandbox.pause().await.expect("a pause");
    } else {
        assert_unsupported("pause", sandbox.pause().await);
    }
    destroy(&*sandbox).await;
    assert_eq!(read_to_end(&mut stdout).await, b"");
    assert_ended(&*process).await;
}

pub async fn destroy_ends_everything(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let (_process, mut first) = start_ready(&*sandbox, sh(CLINGING)).await;
    let (_process, mut second) = start_ready(&*sandbox, sh(CLINGING)).await;
    destroy(&*sandbox).await;
    // When it returns, nothing runs any more: the ends of these streams are there already.
    for stdout in [&mut first, &mut second] {
        let mut rest = Vec::new();
        let end = timeout(A_WHILE, stdout.read_to_end(&mut rest)).await;
        end.expect("something still holds stdout").expect("the end of stdout");
    }
}

pub async fn destroy_ends_what_is_waited_for(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let process = start(&*sandbox, sh("sleep 1000")).await;
    let ended = start(&*sandbox, sh("exit 7")).await;
    assert_eq!(ended.wait().await.expect("a status"), ExitStatus::Exited(7));
    tokio::join!(assert_ended(&*process), destroy(&*sandbox));
    assert_ended(&*process).await;
    assert_eq!(ended.wait().await.expect("a status that is kept"), ExitStatus::Exited(7));
}

pub async fn destroy_is_idempotent(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    start_ready(&*sandbox, sh(CLINGING)).await;
    let (first, second) = tokio::join!(sandbox.destroy(), sandbox.destroy());
    first.expect("its end");
    second.expect("its end, asked for at the same time");
    destroy(&*sandbox).await;
}

pub async fn destroyed_sandboxes_are_gone(backend: &dyn Backend) {
    let can = backend.capabilities();
    let sandbox = sandbox(backend).await;
    let id = start(&*sandbox, sh("sleep 1000")).await.id();
    destroy(&*sandbox).await;

    assert_gone("start", sandbox.start(sh("true")).await);
    assert_gone("attach", sandbox.attach(id));
    assert_gone("read_file", read(&*sandbox, "/workspace/file").await);
    assert_gone("write_file", write(&*sandbox, "/workspace/file", 0o644, b"").await);
    assert_gone("make_folder", sandbox.make_folder(&path("/workspace/folder")).await);
    assert_gone("list_files", sandbox.list_files(&path("/workspace"), 10).await);
    assert_gone("stats", sandbox.stats().await);
    let gone_or_unsupported = |can: bool, what: &str, result: crate::Result<()>| match can {
        true => assert_gone(what, result),
        false => assert_unsupported(what, result),
    };
    gone_or_unsupported(can.connect, "connect", sandbox.connect(8080).await.map(drop));
    gone_or_unsupported(can.listen, "listen", sandbox.listen(8080).await.map(drop));
    gone_or_unsupported(can.change_limits, "change", sandbox.change_limits(&sandbox_spec().limits).await);
    gone_or_unsupported(can.pause, "pause", sandbox.pause().await);
    gone_or_unsupported(can.pause, "resume", sandbox.resume().await);
}

pub async fn dropped_sandboxes_are_destroyed(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let (process, mut stdout) = start_ready(&*sandbox, sh(CLINGING)).await;
    drop(sandbox);
    assert_eq!(read_to_end(&mut stdout).await, b"");
    assert_ended(&*process).await;
}

pub async fn sandboxes_are_made_in_parallel(backend: &dyn Backend) {
    let one = async |name: &str| {
        let sandbox = sandbox(backend).await;
        write(&*sandbox, "/workspace/name", 0o644, name.as_bytes()).await.expect("a file");
        assert_eq!(sh_ok(&*sandbox, "cat name").await, name);
        destroy(&*sandbox).await;
    };
    for _ in 0..3 {
        tokio::join!(one("a"), one("b"), one("c"), one("d"), one("e"), one("f"));
    }
}
