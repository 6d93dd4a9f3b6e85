//! Daemons of the tests' own: on private sockets and folders, ended with the tests.

// Each test takes what it needs.
#![allow(dead_code)]

use cofferdam_docker::{DockerBackend, DockerOptions};
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

const COMMAND: &str = "exec dockerd --data-root $1/data --exec-root $1/run --pidfile $1/pid -H unix://$1/socket \
                       --bridge=none --iptables=false --ip6tables=false --ip-masq=false";

/// Starts a daemon and gives it the image.
pub(crate) fn start() -> Daemon {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.join(format!("docker-{}-{}", std::process::id(), unique()));
    std::fs::create_dir_all(&folder).expect("a folder for the daemon");
    // Sockets have short names, and the folder may have a long one.
    let script = format!(
        "(cd $1; {}) < /dev/null > $1/log 2>&1 & daemon=$!; echo $daemon > $1/daemon
         cat > /dev/null; kill $daemon; wait $daemon
         # A daemon that a test killed leaves those of its helpers that watch containers.
         for process in /proc/[0-9]*; do
             tr '\\0' ' ' < $process/cmdline 2> /dev/null | grep -q \"containerd-shim.*$1/\" && kill -KILL ${{process#/proc/}}
         done
         for mount in $(grep -o \" $1/[^ ]*\" /proc/mounts | sort -r); do umount -l $mount; done; rm -rf $1",
        COMMAND
    );
    let mut shell = Command::new("setsid");
    shell
        .args(["sh", "-c", &script, "sh"])
        .arg(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let shell = shell.spawn().expect("a shell");
    let daemon = Daemon { socket: folder.join("socket"), shell };
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
    SHARED.get_or_init(start)
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

/// Makes the image of this machine's own programs.
fn import(daemon: &Daemon) {
    let folder = daemon.socket.with_file_name("image");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/container-root.sh");
    let made = Command::new(script).arg(&folder).arg(helper()).status().expect("container-root.sh");
    assert!(made.success(), "{made}");
    let archive = folder.with_extension("tar");
    let packed = Command::new("tar").arg("-C").arg(&folder).arg("-cf").arg(&archive).arg(".").status();
    assert!(packed.expect("tar").success());
    let answer =
        request(daemon, "POST", "/images/create?fromSrc=-&repo=cofferdam-test&tag=root", Some(&archive));
    assert!(answer.contains("sha256:"), "{answer}");
    std::fs::remove_dir_all(&folder).expect("the folder to be removed");
    std::fs::remove_file(&archive).expect("the archive to be removed");
}

pub(crate) fn options(daemon: &Daemon) -> DockerOptions {
    DockerOptions {
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
