//! Daemons of the tests' own: on private sockets and folders, ended with the tests.

// Each test takes what it needs.
#![allow(dead_code)]

mod daemon;

use cofferdam_backend::Backend;
use cofferdam_backend::conformance::support::{sandbox_spec, sh_ok};
use cofferdam_docker::{DockerBackend, DockerOptions, Engine};
use cofferdam_images::{ImageName, Import, ImportLimits, Store};
pub(crate) use daemon::{Daemon, IMAGE};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The helper of the tests; another one, such as a static build, may be named.
pub(crate) fn helper() -> PathBuf {
    std::env::var_os("COFFERDAM_GUEST")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_cofferdam-guest-for-tests").into())
        .into()
}

/// Starts a daemon and gives it an image of this machine's own programs.
pub(crate) fn start(engine: Engine) -> Daemon {
    start_by(engine, Daemon::start)
}

/// The same for one with mounts of its own.
pub(crate) fn start_apart(engine: Engine) -> Daemon {
    start_by(engine, Daemon::start_apart)
}

fn start_by(engine: Engine, start: fn(Engine, &Path) -> std::io::Result<Daemon>) -> Daemon {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.join(format!("{}-{}-{}", engine.name(), std::process::id(), unique()));
    let daemon = start(engine, &folder).expect("a daemon");
    let root = folder.join("image");
    make_root(&root);
    daemon.import(&root).expect("an image");
    std::fs::remove_dir_all(&root).expect("the folder to be removed");
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

/// What a daemon answers, for what the backend under test is not to be asked.
pub(crate) fn request(daemon: &Daemon, method: &str, path: &str, body: Option<&Path>) -> String {
    daemon.request(method, path, body).expect("curl")
}

/// A root of this machine's own programs.
fn make_root(folder: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/container-root.sh");
    let made = Command::new(script).arg(folder).arg(helper()).status().expect("container-root.sh");
    assert!(made.success(), "{made}");
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
