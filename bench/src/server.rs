//! `cofferdam serve` for the length of a benchmark, on a folder of its own. It ends with the value.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::contestants::quiet;
use crate::failure::{Doing, Failure, Result};

/// It lets running jobs end first, of which there are none.
const STOP_TIMEOUT: Duration = Duration::from_secs(40);

/// What is served, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) program: &'a Path,
    /// For its data.
    pub(crate) folder: &'a Path,
    /// The root whose programs jobs run, in the place of the machine's own: everybody in the tables runs the same.
    pub(crate) rootfs: &'a Path,
    /// Behind the usual words.
    pub(crate) words: &'a [&'a str],
    /// A filesystem in a file, in the place of the folder for workspaces on disk.
    pub(crate) workspaces: Option<&'a Path>,
}

/// The first argument is the root, the others are the command.
const IN_ROOT: &str = r#"mount --bind "$0/usr" /usr && exec "$@""#;

/// Then, with a filesystem as the first argument. It goes with the service.
const WITH_WORKSPACES: &str = r#"at=/var/lib/cofferdam/workspaces
    mkdir -p "$at" && mount -o loop "$0" "$at" && exec "$@""#;

#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: String,
    key: String,
    data: PathBuf,
}

impl Server {
    /// With nothing kept from before.
    pub(crate) fn start(setup: Setup<'_>) -> Result<Self> {
        remove(&setup.folder.join("data"))?;
        Self::start_again(setup)
    }

    /// With what the one before has left.
    pub(crate) fn start_again(setup: Setup<'_>) -> Result<Self> {
        let data = setup.folder.join("data");
        let mut command = quiet("/usr/bin/setpriv");
        command.args(["--pdeathsig", "TERM", "/usr/bin/unshare", "--mount", "/bin/sh", "-c", IN_ROOT]);
        command.arg(setup.rootfs);
        if let Some(image) = setup.workspaces {
            command.args(["/bin/sh", "-c", WITH_WORKSPACES]).arg(image);
        }
        command.arg(setup.program).arg("serve").arg("--data").arg(&data);
        command.args(["--listen", "127.0.0.1:0"]).args(setup.words).stdout(Stdio::piped());
        let mut child = command.spawn().doing("starting the service")?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let Some(address) = line.trim().strip_prefix("listening on http://").map(String::from) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::new(format!("the service did not start; it said {line:?}")));
        };
        let path = data.join("admin.key");
        let key = fs::read_to_string(&path).doing(format_args!("reading {}", path.display()))?;
        Ok(Self { child, address, key: key.trim().to_owned(), data })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The process itself: what started it has become it.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// As a crash would. What it kept stays.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill().doing("killing the service")?;
        self.child.wait().doing("waiting for the service").map(drop)
    }

    /// Ends it in order, and says so if it does not.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.terminate()?;
        remove(&self.data)
    }

    fn terminate(&mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        Command::new("/bin/kill").args(["-TERM", &pid]).status().doing("stopping the service")?;
        let start = Instant::now();
        while start.elapsed() < STOP_TIMEOUT {
            match self.child.try_wait().doing("waiting for the service")? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(Failure::new(format!("the service ended with {status}"))),
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
        Err(Failure::new("the service does not stop"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing(format_args!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}
