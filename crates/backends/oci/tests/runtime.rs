//! What happens around a container: runtimes that are missing, containers that are removed, makers that die.

mod support;

use cofferdam_backend::conformance::support::{sandbox_spec, sh, start_ready};
use cofferdam_backend::{Backend, BackendError, ExitStatus, SandboxSpec};
use cofferdam_core::{Control, ControlState};
use cofferdam_oci::{OciBackend, OciOptions};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// What is on the machine of a sandbox: its folder, mounts and groups.
fn left_of(options: &OciOptions, id: &str) -> Vec<String> {
    let mut left = Vec::new();
    let folder = options.runtime_folder.join("oci/places").join(id);
    left.extend(folder.exists().then(|| folder.display().to_string()));
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    left.extend(mounts.lines().filter(|line| line.contains(id)).map(str::to_owned));
    for controller in ["memory", "pids", "cpu", "devices", "freezer"] {
        let group = format!("/sys/fs/cgroup/{controller}/cofferdam-oci/cofferdam/oci-{id}");
        left.extend(Path::new(&group).exists().then_some(group));
    }
    left
}

#[test]
fn a_missing_runtime_is_an_error_and_never_another_one() {
    let options = OciOptions { runtime: "no-such-runtime".to_owned(), ..support::options("runc") };
    let error = OciBackend::new(options).expect_err("no runtime");
    assert!(matches!(error, BackendError::Refused { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("no-such-runtime") && text.contains("--runtime"), "{text}");
}

#[test]
fn nothing_is_left_of_a_sandbox() {
    for runtime in ["runc", "runsc"] {
        let options = support::options(runtime);
        let backend = OciBackend::new(options.clone()).expect("a backend");
        let spec = sandbox_spec();
        let id = spec.id.to_string();
        block_on(async {
            let sandbox = backend.create(spec).await.expect("a sandbox");
            start_ready(&*sandbox, sh("echo ready; sleep 1000")).await;
            assert!(left_of(&options, &id).len() > 2, "{runtime}: {:?}", left_of(&options, &id));
            sandbox.destroy().await.expect("its end");
        });
        // gVisor's own notes of it, and its empty group, take a while longer.
        let deadline = Instant::now() + Duration::from_secs(if runtime == "runsc" { 20 } else { 0 });
        while !left_of(&options, &id).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(left_of(&options, &id), [""; 0], "{runtime}");
    }
}

#[test]
fn a_container_that_is_removed_is_lost() {
    let options = support::options("runc");
    let backend = OciBackend::new(options.clone()).expect("a backend");
    block_on(async {
        let spec = sandbox_spec();
        let name = format!("cofferdam-{}", spec.id);
        let sandbox = backend.create(spec).await.expect("a sandbox");
        let (process, _stdout) = start_ready(&*sandbox, sh("echo ready; sleep 1000")).await;
        let mut runc = Command::new("runc");
        runc.arg("--root").arg(options.runtime_folder.join("oci/state")).args(["delete", "--force", &name]);
        assert!(runc.status().expect("runc").success());
        let ended = tokio::time::timeout(Duration::from_secs(10), process.wait()).await;
        assert_eq!(ended.expect("an end that is told promptly").expect("a status"), ExitStatus::Lost);
        let error = sandbox.start(sh("true")).await.expect_err("a sandbox that is gone");
        assert!(matches!(error, BackendError::Gone { .. }), "{error:?}");
        sandbox.destroy().await.expect("an end of what is gone already");
    });
}

#[test]
fn what_a_dead_maker_left_is_swept() {
    let options = support::options("runc");
    let backend = OciBackend::new(options.clone()).expect("a backend");
    let spec = sandbox_spec();
    let id = spec.id.to_string();
    let sandbox = block_on(async { backend.create(spec).await.expect("a sandbox") });
    std::mem::forget(sandbox);
    // Its maker becomes one that was never there.
    let owner = options.runtime_folder.join("oci/places").join(&id).join("owner");
    std::fs::write(&owner, "another-boot:1:1").expect("another owner");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !left_of(&options, &id).is_empty() {
        assert!(Instant::now() < deadline, "{:?}", left_of(&options, &id));
        OciBackend::new(options.clone()).expect("a backend, which sweeps");
    }
}

#[test]
fn the_report_says_what_each_runtime_gives() {
    let report = |runtime: &str| {
        let backend = support::backend(runtime);
        block_on(async {
            let sandbox = backend.create(SandboxSpec { ..sandbox_spec() }).await.expect("a sandbox");
            sandbox.isolation().await.expect("a report")
        })
    };
    let runc = report("runc");
    for control in [Control::UserNamespace, Control::OwnHostUids, Control::Seccomp, Control::PidsLimit] {
        assert_eq!(runc.state(control), ControlState::Enforced, "runc, {control}");
    }
    let runsc = report("runsc");
    for control in [Control::MemoryLimit, Control::DiskLimit, Control::LoopbackOnly, Control::ReadOnlyRoot] {
        assert_eq!(runsc.state(control), ControlState::Enforced, "runsc, {control}");
    }
    for control in [Control::PidsLimit, Control::OwnHostUids] {
        assert_eq!(runsc.state(control), ControlState::Absent, "runsc, {control}");
    }
}
