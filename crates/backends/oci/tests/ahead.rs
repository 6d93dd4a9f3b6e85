//! The process that a helper makes ahead: it is the one that has looked at its walls, and nobody misses it when it is
//! gone.

mod support;

use cofferdam_backend::conformance::support::{run, sandbox_spec, sh, start_ready};
use cofferdam_backend::{Backend, ExitStatus, Sandbox, SandboxSpec};
use cofferdam_core::{Control, ControlState, IsolationMode};
use cofferdam_oci::OciBackend;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// The processes of a sandbox as the host numbers them, the helper first.
fn processes(id: &str) -> Vec<u32> {
    let version_1 = format!("/sys/fs/cgroup/pids/cofferdam-oci/cofferdam/oci-{id}");
    let folder = [version_1, format!("/sys/fs/cgroup/cofferdam-oci/oci-{id}")];
    let folder = folder.iter().find(|folder| Path::new(folder).is_dir()).expect("the sandbox's group");
    let list = std::fs::read_to_string(format!("{folder}/cgroup.procs")).expect("its processes");
    let mut all: Vec<u32> = list.lines().map(|line| line.parse().expect("a number")).collect();
    all.sort_unstable();
    all
}

/// Waits until there are so many.
fn wait_for(id: &str, count: usize) -> Vec<u32> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let all = processes(id);
        if all.len() == count {
            return all;
        }
        assert!(Instant::now() < deadline, "{count} processes: {all:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

async fn succeeds(sandbox: &dyn Sandbox) {
    let process = sandbox.start(sh("exit 7")).await.expect("a process");
    assert_eq!(process.wait().await.expect("its end"), ExitStatus::Exited(7));
}

#[test]
fn the_process_that_has_looked_at_its_walls_is_the_first() {
    let backend = support::backend("runc");
    block_on(async {
        let spec = sandbox_spec();
        let id = spec.id.to_string();
        let sandbox = backend.create(spec).await.expect("a sandbox");
        let ahead = processes(&id);
        assert_eq!(ahead.len(), 2, "the helper and the one that waits: {ahead:?}");
        let (first, _stdout) = start_ready(&*sandbox, sh("echo ready; exec sleep 1000")).await;
        assert_eq!(processes(&id), ahead);
        let filters = std::fs::read_to_string(format!("/proc/{}/status", ahead[1])).expect("its status");
        assert!(filters.contains("Seccomp_filters:\t2\n"), "{filters}");
        let (next, _stdout) = start_ready(&*sandbox, sh("echo ready; exec sleep 1000")).await;
        assert_eq!(processes(&id).len(), 3, "the next one was made when it was asked for");
        for process in [first, next] {
            process.signal(9).await.expect("a signal");
            assert_eq!(process.wait().await.expect("its end"), ExitStatus::Signaled(9));
        }
        // None was made in its place: what has run inside could see it, or stop it.
        wait_for(&id, 1);
        succeeds(&*sandbox).await;
        sandbox.destroy().await.expect("its end");
    });
}

#[test]
fn one_that_was_killed_while_it_waited_is_not_missed() {
    let backend: OciBackend = support::backend("runc");
    block_on(async {
        // Nobody asks it what it sees of its walls before.
        let spec = SandboxSpec { isolation: IsolationMode::BestEffort, ..sandbox_spec() };
        let id = spec.id.to_string();
        let sandbox = backend.create(spec).await.expect("a sandbox");
        let ahead = wait_for(&id, 2)[1];
        let killed = Command::new("kill").args(["-9", &ahead.to_string()]).status().expect("kill");
        assert!(killed.success());
        wait_for(&id, 1);
        let report = sandbox.isolation().await.expect("a report");
        assert_eq!(report.state(Control::Seccomp), ControlState::Enforced);
        succeeds(&*sandbox).await;
        succeeds(&*sandbox).await;
        sandbox.destroy().await.expect("its end");
    });
}

/// The number that the first process has inside.
async fn number_of_the_first(sandbox: &dyn Sandbox) -> String {
    run(sandbox, sh("echo $$")).await.stdout().to_owned()
}

/// A sandbox may be stopped before anything runs in it, and the one that waits with it.
#[test]
fn one_that_stood_still_goes_on() {
    block_on(async {
        let backend = support::backend("runc");
        let spec = sandbox_spec();
        let id = spec.id.to_string();
        let sandbox = backend.create(spec).await.expect("a sandbox");
        let ahead = processes(&id);
        sandbox.pause().await.expect("a standstill");
        sandbox.resume().await.expect("its end");
        let (_first, _stdout) = start_ready(&*sandbox, sh("echo ready; exec sleep 1000")).await;
        assert_eq!(processes(&id), ahead);
        sandbox.destroy().await.expect("its end");
    });
}

/// gVisor's processes do not show outside; its numbers are the same each time.
#[test]
fn one_that_stood_still_behind_gvisor_goes_on() {
    block_on(async {
        let backend = support::backend("runsc");
        let (one, other) = (sandbox_spec(), sandbox_spec());
        let never_stood = backend.create(one).await.expect("a sandbox");
        let stood = backend.create(other).await.expect("a sandbox");
        stood.pause().await.expect("a standstill");
        stood.resume().await.expect("its end");
        assert_eq!(number_of_the_first(&*stood).await, number_of_the_first(&*never_stood).await);
        for sandbox in [never_stood, stood] {
            sandbox.destroy().await.expect("its end");
        }
    });
}
