//! What of the host is seen in a container: what was opened, and nothing that took its place.

mod support;

use cofferdam_backend::conformance::support::{sandbox_spec, sh_ok};
use cofferdam_backend::{Backend, BackendError, Mount, MountSource, Sandbox, SandboxSpec};
use cofferdam_core::GuestPath;
use cofferdam_docker::{DockerBackend, DockerOptions, Engine};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use support::{Daemon, start, start_apart};

/// A backend, and a folder for what is mounted.
struct Ground {
    backend: DockerBackend,
    folder: PathBuf,
}

impl Ground {
    fn new(daemon: &Daemon, name: &str) -> Self {
        let folder = daemon.socket.with_file_name(name);
        fs::create_dir(&folder).expect("a folder");
        // Of its own, which no daemon keeps anything in.
        let options = DockerOptions { folder: folder.join("runtime"), ..support::options(daemon) };
        let backend = DockerBackend::new(options).expect("a backend");
        Self { backend, folder }
    }

    fn make(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("file"), content).expect("a file");
        path
    }

    async fn create(&self, mounts: Vec<Mount>) -> Box<dyn Sandbox> {
        let made = self.backend.create(SandboxSpec { mounts, ..sandbox_spec() }).await.expect("a sandbox");
        // The container has its own by now.
        let mounted = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        let places = self.folder.join("runtime/mounts");
        assert!(!mounted.contains(&*places.to_string_lossy()), "{mounted}");
        assert_eq!(fs::read_dir(&places).expect("a folder").count(), 0, "something was left");
        made
    }
}

fn mount(opened: File, target: &str, read_only: bool) -> Mount {
    let source = MountSource::Folder(Arc::new(opened.into()));
    Mount { source, target: GuestPath::parse("target", target).expect("a path"), read_only }
}

fn open(path: &Path) -> File {
    File::open(path).expect("a folder")
}

async fn what_was_opened_is_seen(daemon: &Daemon) {
    let ground = Ground::new(daemon, "opened");
    let data = ground.make("data", "opened\n");
    let outside = ground.make("outside", "outside\n");
    let opened = open(&data);
    // Whoever may write next to it puts something else there before the daemon is asked.
    fs::rename(&data, ground.folder.join("away")).expect("another name");
    symlink(&outside, &data).expect("a link");
    let out = ground.make("out", "");
    fs::set_permissions(&out, Permissions::from_mode(0o777)).expect("a mode");
    let mounts = vec![mount(opened, "/data", true), mount(open(&out), "/workspace/out", false)];
    let sandbox = ground.create(mounts).await;
    assert_eq!(sh_ok(&*sandbox, "cat /data/file").await, "opened\n");
    assert_eq!(sh_ok(&*sandbox, "touch /data/x 2> /dev/null || echo refused").await, "refused\n");
    assert_eq!(sh_ok(&*sandbox, "echo made > /workspace/out/made; id -u").await, "1000\n");
    assert_eq!(fs::read_to_string(out.join("made")).expect("what it made"), "made\n");
    // An older runc forgets the other flags where it is asked for a mount to read; nothing gains a privilege, or is a
    // device, in a container anyway.
    let flags = async |target: &str| {
        sh_ok(&*sandbox, &format!("grep ' {target} ' /proc/self/mountinfo | cut -d ' ' -f 6")).await
    };
    assert!(flags("/data").await.starts_with("ro,"));
    assert!(flags("/workspace/out").await.starts_with("rw,nosuid,nodev"));
    sandbox.destroy().await.expect("its end");
    assert!(ground.folder.join("away/file").exists() && outside.join("file").exists());
}

async fn a_workspace_is_seen_at_two_places(daemon: &Daemon) {
    let ground = Ground::new(daemon, "workspace");
    let target = GuestPath::parse("target", "/app").expect("a path");
    let sandbox =
        ground.create(vec![Mount { source: MountSource::Workspace, target, read_only: false }]).await;
    let said =
        sh_ok(&*sandbox, "echo in > /workspace/a; cat /app/a; cd /app; echo b > b; cat /workspace/b").await;
    assert_eq!(said, "in\nb\n");
    // It has the room that any workspace has, and no more.
    let full = sh_ok(&*sandbox, "head -c 1G /dev/zero > /app/big 2> /dev/null || echo full").await;
    assert_eq!(full, "full\n");
    assert_eq!(sh_ok(&*sandbox, "rm /app/big; stat -f -c %T /app").await, "tmpfs\n");
    let report = sandbox.isolation().await.expect("a report");
    assert!(!report.controls.is_empty());
    sandbox.destroy().await.expect("its end");
}

async fn what_a_maker_left_is_taken_away(daemon: &Daemon) {
    let ground = Ground::new(daemon, "left");
    let data = ground.make("data", "kept\n");
    let left = ground.folder.join("runtime/mounts/another-boot:1:2/sbx-aaaaaaaaaaaaaaaa/0");
    fs::create_dir_all(&left).expect("a folder");
    fs::write(left.join(".cofferdam-sbx-aaaaaaaaaaaaaaaa"), "").expect("a file");
    let bound = Command::new("mount").arg("--bind").args([&data, &left]).status();
    assert!(bound.expect("mount").success());
    ground.create(Vec::new()).await.destroy().await.expect("its end");
    assert_eq!(fs::read_to_string(data.join("file")).expect("what was mounted"), "kept\n");
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future);
}

fn on(engine: Engine) {
    let daemon = &start(engine);
    block_on(async {
        what_was_opened_is_seen(daemon).await;
        a_workspace_is_seen_at_two_places(daemon).await;
        what_a_maker_left_is_taken_away(daemon).await;
    });
}

#[test]
fn docker_sees_what_was_opened() {
    on(Engine::Docker);
}

#[test]
fn podman_sees_what_was_opened() {
    on(Engine::Podman);
}

/// It would be an empty folder otherwise, and nobody would be told.
#[test]
fn a_daemon_that_sees_other_mounts_is_refused() {
    let daemon = &start_apart(Engine::Docker);
    block_on(async {
        let ground = Ground::new(daemon, "apart");
        let data = ground.make("data", "opened\n");
        let spec = SandboxSpec { mounts: vec![mount(open(&data), "/data", true)], ..sandbox_spec() };
        let name = format!("cofferdam-{}", spec.id);
        let error = ground.backend.create(spec).await.expect_err("it sees nothing of it");
        let text = error.to_string();
        assert!(matches!(error, BackendError::Refused { .. }) && text.contains("/data"), "{text}");
        let left = support::request(daemon, "GET", "/containers/json?all=true", None);
        assert!(!left.contains(&name), "{left}");
        // Without mounts it is as good as any.
        ground.backend.create(sandbox_spec()).await.expect("a sandbox").destroy().await.expect("its end");
    });
}
