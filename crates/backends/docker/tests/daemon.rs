//! What happens around a container: daemons that go, containers that are removed, makers that die.

mod support;

use cofferdam_backend::conformance::support::{sandbox_spec, sh, start_ready, wait_until};
use cofferdam_backend::{Backend, BackendError, ExitStatus, Image};
use cofferdam_docker::{DockerBackend, DockerOptions, Engine};
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Daemon, request, start};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn containers(daemon: &Daemon) -> String {
    request(daemon, "GET", "/containers/json?all=true", None)
}

/// The walls as the daemon and the kernel have them, not as we asked for them.
#[test]
fn a_container_is_as_narrow_as_it_says() {
    let daemon = support::shared();
    block_on(async {
        let backend = support::backend(daemon);
        let spec = sandbox_spec();
        let name = format!("cofferdam-{}", spec.id);
        let sandbox = backend.create(spec).await.expect("a sandbox");
        let seen = request(daemon, "GET", &format!("/containers/{name}/json"), None);
        for wanted in [
            r#""User":"1000:1000""#,
            r#""NetworkMode":"none""#,
            r#""ReadonlyRootfs":true"#,
            r#""CapDrop":["ALL"]"#,
            r#""no-new-privileges""#,
            r#"SCMP_ACT_ERRNO"#,
            r#""PidsLimit":101"#,
            r#""Memory":268435456"#,
            r#""MemorySwap":268435456"#,
            r#""CpuQuota":100000"#,
            r#""Privileged":false"#,
            r#""Type":"none""#,
            r#""AutoRemove":true"#,
        ] {
            assert!(seen.contains(wanted), "{wanted} is not in {seen}");
        }
        assert!(!seen.contains(r#""Type":"bind""#), "nothing of the host is mounted: {seen}");
        sandbox.destroy().await.expect("its end");
        assert!(!containers(daemon).contains(&name));
    });
}

#[test]
fn a_daemon_that_is_killed_loses_its_sandboxes() {
    let daemon = &start(Engine::Docker);
    block_on(async {
        let options = DockerOptions { lost_after: Duration::from_secs(3), ..support::options(daemon) };
        let backend = DockerBackend::new(options).expect("a backend");
        let sandbox = backend.create(sandbox_spec()).await.expect("a sandbox");
        let (process, _stdout) = start_ready(&*sandbox, sh("echo ready; sleep 1000")).await;
        let pid = std::fs::read_to_string(daemon.socket.with_file_name("pid")).expect("the daemon's pid");
        assert!(Command::new("kill").args(["-KILL", pid.trim()]).status().expect("kill").success());
        let ended = tokio::time::timeout(Duration::from_secs(10), process.wait()).await;
        assert_eq!(ended.expect("an end that is told promptly").expect("a status"), ExitStatus::Lost);
        let error = sandbox.start(sh("true")).await.expect_err("a sandbox that is gone");
        assert!(matches!(error, BackendError::Gone { .. }), "{error:?}");
        // Its containers go on without it, until their helpers have heard nothing for too long.
        wait_until("the end of what ran inside", Duration::from_secs(30), async || !runs_in(daemon)).await;
    });
}

/// Whether a process runs whose root lies in the daemon's folder.
fn runs_in(daemon: &Daemon) -> bool {
    let folder = daemon.socket.parent().expect("a folder").display().to_string();
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes.into_iter().any(|process| {
        let mounts = std::fs::read_to_string(process.path().join("mountinfo")).unwrap_or_default();
        let command = std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        command.contains("/.cofferdam/guest") && mounts.contains(&folder)
    })
}

#[test]
fn a_container_that_is_removed_is_lost() {
    let daemon = support::shared();
    block_on(async {
        let backend = support::backend(daemon);
        let spec = sandbox_spec();
        let name = format!("cofferdam-{}", spec.id);
        let sandbox = backend.create(spec).await.expect("a sandbox");
        let (process, _stdout) = start_ready(&*sandbox, sh("echo ready; sleep 1000")).await;
        request(daemon, "DELETE", &format!("/containers/{name}?force=true"), None);
        let ended = tokio::time::timeout(Duration::from_secs(10), process.wait()).await;
        assert_eq!(ended.expect("an end that is told promptly").expect("a status"), ExitStatus::Lost);
        let error = sandbox.stats().await.expect_err("a sandbox that is gone");
        assert!(matches!(error, BackendError::Gone { .. }), "{error:?}");
        sandbox.destroy().await.expect("an end of what is gone already");
    });
}

#[test]
fn a_maker_that_dies_leaves_nothing() {
    let daemon = support::shared();
    let spec = sandbox_spec();
    let name = format!("cofferdam-{}", spec.id);
    let backend = support::backend(daemon);
    // The runtime goes with everything on it, as it does when a process dies.
    let sandbox = block_on(async { backend.create(spec).await.expect("a sandbox") });
    std::mem::forget(sandbox);
    let deadline = Instant::now() + Duration::from_secs(20);
    while containers(daemon).contains(&name) {
        assert!(Instant::now() < deadline, "{}", containers(daemon));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn orphans_are_found_by_their_label() {
    let daemon = support::shared();
    let mut gone = Command::new("true").spawn().expect("a process");
    let pid = gone.id();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("its stat");
    let began =
        stat.rsplit_once(')').expect("a stat").1.split_whitespace().nth(19).expect("its start").to_owned();
    gone.wait().expect("its end");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("the boot");
    let create = |name: &str, owner: &str| {
        let body = format!(
            r#"{{"Image":"{}","Cmd":["true"],"Labels":{{"cofferdam.sandbox":"x","cofferdam.owner":"{owner}"}}}}"#,
            support::IMAGE
        );
        let url = format!("http://daemon/containers/create?name={name}");
        let mut curl = Command::new("curl");
        curl.args(["-s", "--unix-socket"]).arg(&daemon.socket);
        curl.args(["-H", "Content-Type: application/json", "-d", &body, &url]);
        let output = curl.output().expect("curl");
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(answer.contains(r#""Id""#), "{answer}");
    };
    create("left", &format!("{}:{pid}:{began}", boot.trim()));
    create("of-another-machine", "another-boot:1:1");
    block_on(async {
        let backend = support::backend(daemon);
        assert_eq!(backend.remove_orphans().await.expect("a look"), ["/left"]);
        assert_eq!(backend.remove_orphans().await.expect("a look"), [""; 0]);
    });
    assert!(containers(daemon).contains("of-another-machine"), "{}", containers(daemon));
}

fn without_a_daemon(host: &str) -> String {
    let options = DockerOptions {
        engine: Engine::Docker,
        store: None,
        folder: std::env::temp_dir(),
        host: host.to_owned(),
        image: Some(support::IMAGE.to_owned()),
        runtime: None,
        helper: support::helper(),
        lost_after: cofferdam_docker::LOST_AFTER,
    };
    let started = Instant::now();
    let error = match DockerBackend::new(options) {
        Ok(backend) => block_on(backend.create(sandbox_spec())).expect_err("no daemon"),
        Err(error) => error,
    };
    assert!(started.elapsed() < Duration::from_secs(5), "told after {:?}", started.elapsed());
    assert!(matches!(error, BackendError::Refused { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn a_missing_daemon_is_told_at_once_with_what_to_do() {
    let error = without_a_daemon("unix:///no/such/socket");
    assert!(error.contains("there is no socket at /no/such/socket"), "{error}");
    assert!(error.contains("start dockerd") && error.contains("--backend native"), "{error}");
    let error = without_a_daemon("tcp://127.0.0.1:1");
    assert!(error.contains("nothing listens at 127.0.0.1:1"), "{error}");
    let error = without_a_daemon("ssh://somewhere");
    assert!(error.contains("ssh://somewhere"), "{error}");
}

#[test]
fn a_missing_image_is_named() {
    let daemon = support::shared();
    let options = DockerOptions { image: Some("no-such-image:1".to_owned()), ..support::options(daemon) };
    let backend = DockerBackend::new(options).expect("a backend");
    let error = block_on(backend.create(sandbox_spec())).expect_err("no image").to_string();
    assert!(error.contains("no-such-image:1"), "{error}");
    let none = DockerOptions { image: None, ..support::options(daemon) };
    let backend = DockerBackend::new(none).expect("a backend");
    let spec = cofferdam_backend::SandboxSpec { image: Image::Host, ..sandbox_spec() };
    let error = block_on(backend.create(spec)).expect_err("no image").to_string();
    assert!(error.contains("--image"), "{error}");
}

#[test]
fn an_image_of_the_store_is_loaded_where_the_daemon_has_none() {
    block_on(support::assert_store_is_used(support::shared()));
}
