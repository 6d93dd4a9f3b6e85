//! Daemons of the tests' own: on private sockets and folders, ended with the tests.

// Each test takes what it needs.
#![allow(dead_code)]

use cofferdam_backend::Backend;
use cofferdam_backend::conformance::support::{sandbox_spec, sh_ok};
use cofferdam_docker::{DockerBackend, DockerOptions, Engine};
use cofferdam_images::{ImageName, Import, ImportLimits, Store};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The image that the tests' daemons have.
pub(crate) const IMAGE: &str = "cofferdam-test:root";

/// The helper of the tests; another one, such as a static build, may be named.
pub(crate) fn helper() -> PathBuf {
    std::env::var_os("COFFERDAM_GUEST")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_cofferdam-guest-for-tests").into())
        .into()
}

/// A daemon that ends when this process does, or when this is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    engine: Engine,
    pub(crate) socket: PathBuf,
    /// Its shell waits for the end of its stdin, ends the daemon, and removes the folder.
    shell: Child,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// How each engine's daemon is started in a folder of its own.
fn command(engine: Engine) -> &'static str {
    match engine {
        Engine::Docker => DOCKERD,
        Engine::Podman => PODMAN,
    }
}

/// `skip_mount_home`: else its store stays mounted on itself.
const PODMAN: &str = "exec podman --root $1/data --runroot $1/run --tmpdir $1/tmp --runtime /usr/sbin/runc \
                      --cgroup-manager cgroupfs --events-backend file --storage-driver overlay \
                      --storage-opt overlay.skip_mount_home=true system service --time 0 unix://$1/socket";

const DOCKERD: &str = "exec dockerd --data-root $1/data --exec-root $1/run --pidfile $1/pid -H unix://$1/socket \
                       --bridge=none --iptables=false --ip6tables=false --ip-masq=false";

/// Starts a daemon and gives it the image.
pub(crate) fn start(engine: Engine) -> Daemon {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.join(format!("{}-{}-{}", engine.name(), std::process::id(), unique()));
    std::fs::create_dir_all(&folder).expect("a folder for the daemon");
    // Sockets have short names, and the folder may have a long one.
    let script = format!(
        "(cd $1; {}) < /dev/null > $1/log 2>&1 & daemon=$!; echo $daemon > $1/daemon
         cat > /dev/null; kill $daemon; wait $daemon
         # A daemon that a test killed leaves those of its helpers that watch containers.
         for process in /proc/[0-9]*; do
             tr '\\0' ' ' < $process/cmdline 2> /dev/null | grep -q -e \"containerd-shim.*$1/\" -e \"conmon.*$1/\" && kill -KILL ${{process#/proc/}}
         done
         for mount in $(grep -o \" $1/[^ ]*\" /proc/mounts | sort -r); do umount -l $mount; done; rm -rf $1",
        command(engine)
    );
    let mut shell = Command::new("setsid");
    shell
        .args(["sh", "-c", &script, "sh"])
        .arg(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let shell = shell.spawn().expect("a shell");
    let daemon = Daemon { engine, socket: folder.join("socket"), shell };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !request(&daemon, "GET", "/_ping", None).ends_with("OK") {
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(Instant::now() < deadline, "no daemon: {log}");
        std::thread::sleep(Duration::from_millis(50));
    }
    import(&daemon);
    daemon
}

fn unique() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// The daemon that all cases share.
pub(crate) fn shared() -> &'static Daemon {
    static SHARED: OnceLock<Daemon> = OnceLock::new();
    SHARED.get_or_init(|| start(Engine::Docker))
}

/// A request to the daemon by curl, for what the backend under test is not to be asked.
pub(crate) fn request(daemon: &Daemon, method: &str, path: &str, body: Option<&Path>) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-s", "--unix-socket"]).arg(&daemon.socket).args(["-X", method]);
    if let Some(body) = body {
        curl.args(["-H", "Content-Type: application/x-tar", "-T"]).arg(body);
    }
    let output = curl.arg(format!("http://daemon{path}")).output().expect("curl");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A root of this machine's own programs.
fn make_root(folder: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/container-root.sh");
    let made = Command::new(script).arg(folder).arg(helper()).status().expect("container-root.sh");
    assert!(made.success(), "{made}");
}

/// Makes the image of this machine's own programs.
fn import(daemon: &Daemon) {
    let folder = daemon.socket.with_file_name("image");
    make_root(&folder);
    let archive = folder.with_extension("tar");
    let packed = Command::new("tar").arg("-C").arg(&folder).arg("-cf").arg(&archive).arg(".").status();
    assert!(packed.expect("tar").success());
    let name = match daemon.engine {
        Engine::Docker => "repo=cofferdam-test&tag=root",
        // It passes over the tag, and takes names without a registry for Docker Hub's.
        Engine::Podman => "repo=localhost/cofferdam-test:root",
    };
    let answer = request(daemon, "POST", &format!("/images/create?fromSrc=-&{name}"), Some(&archive));
    assert!(answer.contains("sha256:"), "{answer}");
    std::fs::remove_dir_all(&folder).expect("the folder to be removed");
    std::fs::remove_file(&archive).expect("the archive to be removed");
}

pub(crate) fn options(daemon: &Daemon) -> DockerOptions {
    DockerOptions {
        engine: daemon.engine,
        store: None,
        folder: daemon.socket.with_file_name("run"),
        host: format!("unix://{}", daemon.socket.display()),
        image: Some(IMAGE.to_owned()),
        runtime: None,
        helper: helper(),
        lost_after: cofferdam_docker::LOST_AFTER,
    }
}

pub(crate) fn backend(daemon: &Daemon) -> DockerBackend {
    DockerBackend::new(options(daemon)).expect("a backend")
}

/// That the table of `docs/backends.md` under a heading is this one.
pub(crate) fn assert_documented(heading: &str, differs: &[(&str, &str)]) {
    let page = include_str!("../../../../../docs/backends.md");
    let section = page.split(&format!("\n### {heading}\n")).nth(1).expect("a section of the page");
    let section = section.split("\n#").next().unwrap_or_default();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = differs.iter().map(|(case, why)| format!("| `{case}` | {why} |")).collect();
    assert_eq!(rows, expected, "docs/backends.md, {heading}");
}

/// That an image which only our store has runs on a daemon, is loaded once, and is named where nobody has it.
pub(crate) async fn assert_store_is_used(daemon: &Daemon) {
    let store = Store::at(daemon.socket.with_file_name("store"));
    let folder = daemon.socket.with_file_name("root");
    make_root(&folder);
    std::fs::write(folder.join("etc/motd"), "from the store\n").expect("a file");
    let name = ImageName::parse("name", "ours:1").expect("a name");
    let limits = ImportLimits::default();
    let import = Import { source: &folder, name: &name, limits, progress: &|_| {} };
    let id = store.import(&import).expect("an image").image.id;
    std::fs::remove_dir_all(&folder).expect("the folder to be removed");
    let backend = |image: &str, store: &Store| {
        let options =
            DockerOptions { image: Some(image.to_owned()), store: Some(store.clone()), ..options(daemon) };
        DockerBackend::new(options).expect("a backend")
    };
    let images = || request(daemon, "GET", "/images/json", None);
    let pinned = format!("ours@{id}");
    let mut loaded = None;
    for image in ["ours:1", &pinned, "ours:1"] {
        let sandbox = backend(image, &store).create(sandbox_spec()).await.expect("a sandbox");
        assert_eq!(sh_ok(&*sandbox, "cat /etc/motd").await, "from the store\n");
        sandbox.destroy().await.expect("its end");
        let seen = images();
        assert!(seen.contains("cofferdam-store:"), "{seen}");
        loaded = Some(loaded.unwrap_or_else(|| seen.matches("\"Id\"").count()));
        assert_eq!(Some(seen.matches("\"Id\"").count()), loaded, "{seen}");
    }
    let error = backend("nowhere:1", &store).create(sandbox_spec()).await.expect_err("no image").to_string();
    let store = store.folder().display().to_string();
    assert!(error.contains("\"nowhere:1\"") && error.contains(&store), "{error}");
    assert!(error.contains("image import"), "{error}");
}
