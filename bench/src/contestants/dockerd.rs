//! A Docker daemon for the length of one benchmark: private data root, exec root and socket, no bridge, no
//! firewall rules. Owns its life: it ends with the value, and by the kernel's hand should the benchmark be
//! killed.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use super::whole_command::{log, quiet};
use crate::failure::{Doing, Failure, Result};
use crate::workplace::{CGROUP, Workplace};

/// The first start makes the data root; later ones take a second.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// It unmounts and stops containerd before it leaves; killing it would leave both behind.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Dockerd {
    child: Child,
    host: String,
}

impl Dockerd {
    pub(super) fn start(program: &Path, place: &Workplace) -> Result<Self> {
        let dir = place.run("docker");
        fs::create_dir_all(&dir).doing(format_args!("creating {}", dir.display()))?;
        let config = dir.join("daemon.json");
        fs::write(&config, "{}").doing(format_args!("writing {}", config.display()))?;
        let (socket, log_path) = (dir.join("sock"), dir.join("log"));
        let host = format!("unix://{}", socket.display());
        let child = quiet("/usr/bin/setpriv")
            .args(["--pdeathsig", "TERM"])
            .arg(program)
            .args(["--host", &host, "--cgroup-parent", &format!("/{CGROUP}")])
            .args(["--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"])
            .args(paths(place, &dir, &config))
            .stderr(log(log_path.clone())?)
            .spawn()
            .doing("starting dockerd")?;
        let mut daemon = Self { child, host };
        daemon.wait_for(&socket, &log_path)?;
        Ok(daemon)
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    fn wait_for(&mut self, socket: &Path, log_path: &Path) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < START_TIMEOUT {
            if UnixStream::connect(socket).is_ok() {
                return Ok(());
            }
            if self.ended() {
                let text = fs::read_to_string(log_path).unwrap_or_default();
                let last = text.lines().last().unwrap_or("it said nothing");
                return Err(Failure::new(format!("dockerd ended at once: {last}")));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err(Failure::new(format!("dockerd does not answer after {} s", START_TIMEOUT.as_secs())))
    }

    fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Dockerd {
    /// The pid cannot be anyone else's: it is our child, and nobody has waited for it yet.
    fn drop(&mut self) {
        if self.ended() {
            return;
        }
        let pid = self.child.id().to_string();
        let _ = quiet("/bin/sh").args(["-c", "kill -TERM \"$1\"", "sh", &pid]).status();
        let start = Instant::now();
        while !self.ended() && start.elapsed() < STOP_TIMEOUT {
            thread::sleep(Duration::from_millis(50));
        }
        if !self.ended() {
            eprintln!("cofferdam-bench: dockerd (pid {pid}) does not stop; end it by hand");
        }
    }
}

fn paths(place: &Workplace, dir: &Path, config: &Path) -> Vec<PathBuf> {
    let flags = [
        ("--data-root", place.cache("docker")),
        ("--exec-root", dir.join("exec")),
        ("--pidfile", dir.join("pid")),
        ("--config-file", config.to_owned()),
    ];
    flags.into_iter().flat_map(|(flag, value)| [flag.into(), value]).collect()
}
