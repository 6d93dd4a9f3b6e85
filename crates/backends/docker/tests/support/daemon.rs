//! A daemon of its own for a test or for a suite: on a private socket and in a private folder, ended with them.
//! Other packages' tests take this file by its path, so that it names nothing of this one's.

use cofferdam_docker::Engine;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The image that it is given.
pub(crate) const IMAGE: &str = "cofferdam-test:root";

/// A daemon that ends when this process does, or when this is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) engine: Engine,
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

/// `skip_mount_home`: else its store stays mounted on itself. It refuses a runroot of more than 50 characters.
const PODMAN: &str = "exec podman --root $1/data --runroot $run --tmpdir $1/tmp --runtime /usr/sbin/runc \
                      --cgroup-manager cgroupfs --events-backend file --storage-driver overlay \
                      --storage-opt overlay.skip_mount_home=true system service --time 0 unix://$1/socket";

const DOCKERD: &str = "exec dockerd --data-root $1/data --exec-root $1/run --pidfile $1/pid -H unix://$1/socket \
                       --bridge=none --iptables=false --ip6tables=false --ip-masq=false";

/// The machine may be busy.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

impl Daemon {
    /// Starts one in a folder that is made for it and goes with it.
    pub(crate) fn start(engine: Engine, folder: &Path) -> io::Result<Self> {
        Self::start_by(engine, folder, command(engine))
    }

    /// The same for one that has mounts of its own, and does not see what is mounted after it has started.
    // Only the tests of this package want one.
    #[allow(dead_code)]
    pub(crate) fn start_apart(engine: Engine, folder: &Path) -> io::Result<Self> {
        let apart = "exec unshare --mount --propagation private";
        Self::start_by(engine, folder, &command(engine).replacen("exec", apart, 1))
    }

    fn start_by(engine: Engine, folder: &Path, command: &str) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        // Sockets have short names, and the folder may have a long one.
        let script = format!(
            "run=$(mktemp -d /tmp/run.XXXXXX)
             (cd $1; {}) < /dev/null > $1/log 2>&1 & daemon=$!; echo $daemon > $1/daemon
             cat > /dev/null; kill $daemon; wait $daemon
             # A daemon that a test killed leaves those of its helpers that watch containers.
             for process in /proc/[0-9]*; do
                 tr '\\0' ' ' < $process/cmdline 2> /dev/null | grep -q -e \"containerd-shim.*$1/\" -e \"conmon.*$1/\" && kill -KILL ${{process#/proc/}}
             done
             for mount in $(grep -o -e \" $1/[^ ]*\" -e \" $run/[^ ]*\" /proc/mounts | sort -r); do umount -l $mount; done
             rm -rf $1 $run",
            command
        );
        let mut shell = Command::new("setsid");
        shell.args(["sh", "-c", &script, "sh"]).arg(folder);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = Self { engine, socket: folder.join("socket"), shell: shell.spawn()? };
        let deadline = Instant::now() + STARTS_WITHIN;
        while !daemon.request("GET", "/_ping", None)?.ends_with("OK") {
            if Instant::now() > deadline {
                let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(io::Error::other(format!("no {}: {log}", engine.name())));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(daemon)
    }

    /// A request by curl, for what the backend itself is not to be asked.
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&Path>) -> io::Result<String> {
        request(&self.socket, method, path, body)
    }

    /// Makes a root folder the image that it has.
    pub(crate) fn import(&self, root: &Path) -> io::Result<()> {
        let archive = self.socket.with_file_name("image.tar");
        let packed = Command::new("tar").arg("-C").arg(root).arg("-cf").arg(&archive).arg(".").status()?;
        if !packed.success() {
            return Err(io::Error::other(format!("tar: {packed}")));
        }
        let name = match self.engine {
            Engine::Docker => "repo=cofferdam-test&tag=root",
            // It passes over the tag, and takes names without a registry for Docker Hub's.
            Engine::Podman => "repo=localhost/cofferdam-test:root",
        };
        let answer = self.request("POST", &format!("/images/create?fromSrc=-&{name}"), Some(&archive))?;
        std::fs::remove_file(&archive)?;
        if answer.contains("sha256:") { Ok(()) } else { Err(io::Error::other(answer)) }
    }
}

/// The same, of a daemon that somebody else has started.
pub(crate) fn request(socket: &Path, method: &str, path: &str, body: Option<&Path>) -> io::Result<String> {
    let mut curl = Command::new("curl");
    curl.args(["-s", "--unix-socket"]).arg(socket).args(["-X", method]);
    if let Some(body) = body {
        curl.args(["-H", "Content-Type: application/x-tar", "-T"]).arg(body);
    }
    let output = curl.arg(format!("http://daemon{path}")).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
