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

#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: String,
    key: String,
    data: PathBuf,
}

impl Server {
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Self> {
        let data = folder.join("data");
        remove(&data)?;
        let mut command = quiet("/usr/bin/setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(program).arg("serve").arg("--data").arg(&data);
        command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
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

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Ends it in order, and says so if it does not.
    pub(super) fn stop(mut self) -> Result<()> {
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
