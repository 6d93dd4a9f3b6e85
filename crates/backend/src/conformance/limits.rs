//! Limits: that they hold, that the sandbox goes on where it should, and that hits are counted.

use super::support::*;
use crate::{Backend, ExitStatus, OomScope, Process, Sandbox, SandboxSpec, Stats};
use cofferdam_core::{Cpus, Disk, Limits};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};

const SIGKILL: i32 = 9;

/// The memory of the cases that run out of something: their disk is half of it.
const SMALL: u64 = 64 * MIB;

/// Far more than `SMALL`, read into one buffer.
const MEMORY_BOMB: &str = "exec dd if=/dev/zero of=/dev/null bs=256M count=1";

/// The end of a file of which the rest never came.
struct CutOff;

impl AsyncRead for CutOff {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
    }
}

async fn stats(sandbox: &dyn Sandbox) -> Stats {
    sandbox.stats().await.expect("stats")
}

/// A `cat` that answers for as long as it lives.
async fn bystander(sandbox: &dyn Sandbox) -> Box<dyn Process> {
    start(sandbox, with_stdin(process(["/bin/cat"]))).await
}

async fn assert_answers(bystander: &dyn Process) {
    let mut stdin = bystander.take_stdin().expect("stdin");
    let mut stdout = bystander.take_stdout().expect("stdout");
    stdin.write_all(b"?").await.expect("a bystander that takes a question");
    assert_eq!(promptly("an answer", stdout.read_u8()).await.expect("an answer"), b'?');
}

/// Fills a file with 500 MB; it must end in an error of its own, not in a kill.
async fn assert_fills_up(sandbox: &dyn Sandbox, file: &str) {
    let output = run(sandbox, sh(&format!("dd if=/dev/zero of={file} bs=1M count=500"))).await;
    assert!(output.failed(), "{file}: {output:?}");
    assert!(output.stderr().contains("No space left"), "{file}: {output:?}");
    assert_eq!(stats(sandbox).await.oom_kills, Some(0), "{file}");
    assert_still_runs(sandbox).await;
}

pub async fn impossible_limits_are_invalid(backend: &dyn Backend) {
    let good = limits(SMALL);
    let bad = [
        Limits { pids: 0, ..good.clone() },
        Limits { memory_bytes: 1, ..good.clone() },
        Limits { disk: Disk::Memory { bytes: SMALL }, ..good.clone() },
    ];
    for limits in bad {
        let what = format!("{limits:?}");
        assert_invalid(&what, backend.create(SandboxSpec { limits, ..sandbox_spec() }).await);
    }
}

pub async fn processes_are_limited_and_counted(backend: &dyn Backend) {
    let sandbox = sandbox_with(backend, Limits { pids: 20, ..limits(SMALL) }).await;
    assert_eq!(stats(&*sandbox).await.pids_limit_hits, Some(0));
    // The inner shell ends when it cannot fork; the outer one then ends what was started.
    let script = "(i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i + 1)); echo $i; done)
        trap '' TERM; kill -TERM 0";
    let output = run(&*sandbox, sh(script)).await;
    let started: u32 = output.stdout().lines().last().and_then(|line| line.parse().ok()).expect("a count");
    assert!((5..20).contains(&started), "{started} children with a limit of 20: {output:?}");

    let stats = stats(&*sandbox).await;
    assert!(stats.pids_limit_hits >= Some(1), "{stats:?}");
    assert!(stats.usage.pids_peak <= Some(20), "{stats:?}");
    wait_until("room for a process", PROMPTLY, async || sandbox.start(sh("true")).await.is_ok()).await;
    assert_still_runs(&*sandbox).await;
}

pub async fn out_of_memory_ends_the_sandbox(backend: &dyn Backend) {
    let spec = SandboxSpec { limits: limits(SMALL), oom_scope: OomScope::Sandbox, ..sandbox_spec() };
    let sandbox = create(backend, spec).await;
    let bystander = bystander(&*sandbox).await;
    let bomb = start(&*sandbox, sh(MEMORY_BOMB)).await;
    for process in [bomb, bystander] {
        let status = promptly("its end", process.wait()).await.expect("a status");
        assert!(matches!(status, ExitStatus::Signaled(SIGKILL) | ExitStatus::Lost), "{status:?}");
    }
    let stats = stats(&*sandbox).await;
    assert!(stats.oom_kills >= Some(1), "{stats:?}");
    assert!(stats.memory_limit_hits >= Some(1), "{stats:?}");
}

pub async fn out_of_memory_ends_one_process(backend: &dyn Backend) {
    let spec = SandboxSpec { limits: limits(SMALL), oom_scope: OomScope::Process, ..sandbox_spec() };
    let sandbox = create(backend, spec).await;
    let bystander = bystander(&*sandbox).await;
    let output = promptly("the end of the bomb", run(&*sandbox, sh(MEMORY_BOMB))).await;
    assert_eq!(output.status, ExitStatus::Signaled(SIGKILL), "{output:?}");
    assert_answers(&*bystander).await;
    assert_still_runs(&*sandbox).await;
    let stats = stats(&*sandbox).await;
    assert!(stats.oom_kills >= Some(1), "{stats:?}");
    assert!(stats.memory_limit_hits >= Some(1), "{stats:?}");
}

pub async fn a_full_disk_is_no_space_left(backend: &dyn Backend) {
    let sandbox = sandbox_with(backend, limits(SMALL)).await;
    assert_fills_up(&*sandbox, "/workspace/big").await;
    let free = stats(&*sandbox).await.disk_free_bytes;
    assert!(free.is_some_and(|free| free < MIB), "{free:?} bytes free");
    sh_ok(&*sandbox, "rm big; echo fits > small").await;
}

pub async fn tmp_shares_the_disk_limit(backend: &dyn Backend) {
    let sandbox = sandbox_with(backend, limits(SMALL)).await;
    assert_fills_up(&*sandbox, "/workspace/big").await;
    let output = run(&*sandbox, sh("dd if=/dev/zero of=/tmp/more bs=1M count=1")).await;
    assert!(output.failed() && output.stderr().contains("No space left"), "{output:?}");
    sh_ok(&*sandbox, "rm big /tmp/more; dd if=/dev/zero of=/tmp/fits bs=1M count=1").await;
    assert_fills_up(&*sandbox, "/tmp/big").await;
}

pub async fn shared_memory_is_bounded(backend: &dyn Backend) {
    let sandbox = sandbox_with(backend, limits(SMALL)).await;
    sh_ok(&*sandbox, "echo x > /dev/shm/file; cat /dev/shm/file").await;
    assert_fills_up(&*sandbox, "/workspace/big").await;
    assert_fills_up(&*sandbox, "/dev/shm/big").await;
}

pub async fn inodes_are_bounded(backend: &dyn Backend) {
    let sandbox = sandbox_with(backend, limits(SMALL)).await;
    assert_runs_out_of_inodes(&*sandbox).await;
}

async fn assert_runs_out_of_inodes(sandbox: &dyn Sandbox) {
    let script = "i=0; while true > $i; do i=$((i + 1)); [ $i -lt 30000 ] || exit 9; done; echo $i";
    let output = run(sandbox, sh(script)).await;
    assert_eq!(output.status, ExitStatus::Exited(0), "an end to empty files: {output:?}");
    assert!(output.stderr().contains("No space left"), "{output:?}");
    let stats = stats(sandbox).await;
    assert!(stats.disk_free_inodes.is_some_and(|free| free < 16), "{stats:?}");
    assert_eq!(stats.oom_kills, Some(0));
    assert_still_runs(sandbox).await;
}

pub async fn a_file_larger_than_the_disk_is_refused(backend: &dyn Backend) {
    let sandbox = sandbox_with(backend, limits(SMALL)).await;
    let content = Box::new(tokio::io::repeat(0).take(4 * SMALL));
    let written = sandbox.write_file(&path("/workspace/big"), 0o644, content).await;
    assert_refused("a file larger than the disk", written);
    sh_ok(&*sandbox, "rm -f big; echo fits > small").await;
    assert_eq!(stats(&*sandbox).await.oom_kills, Some(0));
}

pub async fn a_disk_on_disk_is_bounded(backend: &dyn Backend) {
    let Some(sandbox) = sandbox_on_disk(backend, SMALL, 2 * SMALL).await else { return };
    assert_fills_up(&*sandbox, "/workspace/big").await;
    for other in ["/tmp/more", "/dev/shm/more"] {
        let output = run(&*sandbox, sh(&format!("dd if=/dev/zero of={other} bs=1M count=2"))).await;
        assert!(output.failed() && output.stderr().contains("No space left"), "{other}: {output:?}");
    }
    sh_ok(&*sandbox, "rm big; echo fits > small").await;
}

pub async fn a_file_takes_no_more_of_a_disk_than_it_has(backend: &dyn Backend) {
    let Some(sandbox) = sandbox_on_disk(backend, SMALL, SMALL).await else { return };
    let free = async || stats(&*sandbox).await.disk_free_bytes.expect("what is free");
    // The file itself, and what a filesystem needs to find it.
    let is_about = |taken: u64, bytes: u64| taken >= bytes && taken <= bytes + MIB / 4;
    let zeroes = |bytes| tokio::io::repeat(0).take(bytes);
    let at_first = free().await;
    let cut = zeroes(20 * MIB + 5).chain(CutOff);
    let written = sandbox.write_file(&path("/workspace/cut"), 0o644, Box::new(cut)).await;
    assert!(written.is_err(), "{written:?}");
    let taken = at_first - free().await;
    assert!(taken <= 20 * MIB + MIB / 4, "what was cut off takes {taken} bytes");
    sh_ok(&*sandbox, "rm cut").await;
    for bytes in [3 * MIB, at_first - MIB / 2] {
        let written = sandbox.write_file(&path("/workspace/file"), 0o644, Box::new(zeroes(bytes))).await;
        assert_eq!(written.expect("a file that fits"), bytes);
        let taken = at_first - free().await;
        assert!(is_about(taken, bytes), "a file of {bytes} bytes takes {taken}");
    }
    let more = sandbox.write_file(&path("/workspace/more"), 0o644, Box::new(zeroes(MIB))).await;
    assert_refused("a file for which there is no room", more);
    sh_ok(&*sandbox, "rm file more").await;
    assert!(is_about(at_first, free().await), "{at_first}, and now {}", free().await);
}

pub async fn files_on_disk_do_not_run_out_of_memory(backend: &dyn Backend) {
    let Some(sandbox) = sandbox_on_disk(backend, SMALL, 3 * SMALL).await else { return };
    let script = "yes 'more than fits in memory' | head -c 160M > large; cksum < large; rm large
        yes 'more than fits in memory' | head -c 160M | cksum";
    let output = sh_ok(&*sandbox, script).await;
    let sums: Vec<&str> = output.lines().collect();
    assert!(sums.len() == 2 && sums[0] == sums[1] && sums[0].ends_with(&(160 * MIB).to_string()), "{output}");
    assert_eq!(stats(&*sandbox).await.oom_kills, Some(0));
    assert_still_runs(&*sandbox).await;
}

pub async fn a_disk_is_as_large_as_asked_for(backend: &dyn Backend) {
    // The smallest, two that fill no block and no group, and a common one.
    for bytes in [2 * MIB, 128 * MIB + 5000, 333_333_333, 256 * MIB] {
        let Some(sandbox) = sandbox_on_disk(backend, SMALL, bytes).await else { return };
        let free = stats(&*sandbox).await;
        // What the filesystem needs for itself is a part of it.
        assert!(free.disk_free_bytes.is_some_and(|free| free > bytes / 4 * 3 && free <= bytes), "{free:?}");
        assert!(free.disk_free_inodes.is_some_and(|free| free >= 200), "{free:?}");
        sh_ok(&*sandbox, "echo x > file; sync; cat file").await;
    }
}

pub async fn inodes_on_disk_are_bounded(backend: &dyn Backend) {
    let Some(sandbox) = sandbox_on_disk(backend, SMALL, 40 * MIB).await else { return };
    assert_runs_out_of_inodes(&*sandbox).await;
}

pub async fn impossible_disks_are_invalid(backend: &dyn Backend) {
    for bytes in [1, MIB, 2 << 40] {
        let limits = Limits { disk: Disk::OnDisk { bytes }, ..limits(SMALL) };
        let created = backend.create(SandboxSpec { limits, ..sandbox_spec() }).await;
        assert_invalid(&format!("a disk of {bytes} bytes"), created);
    }
}

pub async fn a_disk_needs_a_folder(backend: &dyn Backend) {
    if !backend.capabilities().disk {
        return;
    }
    for root in ["/dev/null", "/dev/null/below", "/proc"] {
        let limits = Limits { disk: Disk::OnDisk { bytes: SMALL }, ..limits(SMALL) };
        let spec = SandboxSpec { limits, workspace_root: root.into(), ..sandbox_spec() };
        assert_refused(root, backend.create(spec).await);
    }
}

pub async fn cpu_time_is_limited(backend: &dyn Backend) {
    // So little that even a machine busy with other cases would give more.
    let fifth = Cpus::parse("cpus", "0.2").expect("a fifth of a CPU");
    let sandbox = sandbox_with(backend, Limits { cpus: fifth, ..limits(SMALL) }).await;
    let before = stats(&*sandbox).await.usage.cpu_time_ms.expect("CPU time");
    let started = Instant::now();
    let output = run(&*sandbox, sh("timeout 2 sh -c 'while :; do :; done'")).await;
    let wall_ms = started.elapsed().as_millis() as u64;
    assert_eq!(output.status, ExitStatus::Exited(124), "{output:?}");

    let stats = stats(&*sandbox).await;
    let cpu_ms = stats.usage.cpu_time_ms.expect("CPU time") - before;
    // Half as much again, and a period that is used up at either end; without a limit it is five times as much.
    assert!(cpu_ms <= wall_ms * 3 / 10 + 100, "{cpu_ms} ms of CPU time in {wall_ms} ms");
    assert!(cpu_ms >= wall_ms / 50, "{cpu_ms} ms of CPU time in {wall_ms} ms");
    assert!(stats.cpu_throttled >= Some(1), "{stats:?}");
}

pub async fn limits_can_change(backend: &dyn Backend) {
    let disk = Disk::Memory { bytes: 16 * MIB };
    let large = Limits { disk, ..limits(256 * MIB) };
    let small = Limits { disk, pids: 5, ..limits(SMALL) };
    let sandbox = sandbox_with(backend, large.clone()).await;
    if !backend.capabilities().change_limits {
        assert_unsupported("change limits", sandbox.change_limits(&small).await);
        return;
    }
    let half_full = "exec dd if=/dev/zero of=/dev/null bs=128M count=1";
    let many = "for i in 1 2 3 4 5 6 7 8; do sleep 0 & done; wait";
    sh_ok(&*sandbox, half_full).await;
    sh_ok(&*sandbox, many).await;

    sandbox.change_limits(&small).await.expect("lower limits");
    let output = run(&*sandbox, sh(half_full)).await;
    assert_eq!(output.status, ExitStatus::Signaled(SIGKILL), "{output:?}");
    let six = "for i in 1 2 3 4 5 6; do sleep 1000 > /dev/null 2>&1 & done";
    let output = run(&*sandbox, sh(six)).await;
    assert!(output.failed(), "six processes with a limit of five: {output:?}");

    sandbox.change_limits(&large).await.expect("higher limits");
    sh_ok(&*sandbox, half_full).await;
}

pub async fn stats_are_measured(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "dd if=/dev/zero of=file bs=1M count=20; seq 100000 > /dev/null").await;
    let Stats { usage, oom_kills, memory_limit_hits, pids_limit_hits, cpu_throttled, .. } =
        stats(&*sandbox).await;
    assert!(usage.cpu_time_ms >= Some(1), "{usage:?}");
    // Files in memory count as memory.
    assert!(usage.memory_bytes >= Some(20 * MIB), "{usage:?}");
    assert_eq!((oom_kills, memory_limit_hits, pids_limit_hits), (Some(0), Some(0), Some(0)));
    assert!(cpu_throttled.is_some());

    let free = stats(&*sandbox).await;
    let limit = 128 * MIB;
    assert!(free.disk_free_bytes.is_some_and(|free| free > 90 * MIB && free <= limit - 20 * MIB), "{free:?}");
    assert!(free.disk_free_inodes.is_some_and(|free| free > 0), "{free:?}");

    for (name, peak, now) in
        [("memory", usage.memory_peak_bytes, usage.memory_bytes), ("pids", usage.pids_peak, Some(1))]
    {
        // Older kernels do not keep peaks; unknown is `None`, and what is known makes sense.
        assert!(peak.is_none() || peak >= now, "{name}: peak {peak:?}, now {now:?}");
    }
}
