//! The runtime binary: what it is, and how it is asked.

use cofferdam_backend::{BackendError, Result};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whose way of making containers it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Namespaces of this kernel: runc, and what behaves like it.
    Namespaces,
    /// A kernel of its own in user space.
    Gvisor,
}

/// A runtime that is there.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    pub(crate) program: PathBuf,
    pub(crate) kind: Kind,
    /// What stands before the verb.
    pub(crate) flags: Vec<String>,
    /// What stands after `run`.
    pub(crate) run_flags: Vec<String>,
}

/// The ways in which gVisor can run, best first. Its network is the sandbox's own loopback in all of them.
const PLATFORMS: [&str; 2] = ["systrap", "ptrace"];

fn run(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Finds a runtime by its name. One that is missing is an error, whatever else there may be.
pub(crate) fn find(name: &str) -> Result<Runtime> {
    let missing = |why: &dyn std::fmt::Display| BackendError::Refused {
        reason: format!("the runtime {name:?} cannot be used: {why}"),
        fix: format!("install {name}, name another one with --runtime, or use --backend native"),
    };
    let version = run(Command::new(name).arg("--version")).map_err(|error| missing(&error))?;
    let kind = match version.starts_with("runsc") {
        true => Kind::Gvisor,
        false => Kind::Namespaces,
    };
    Ok(Runtime { program: name.into(), kind, flags: Vec::new(), run_flags: Vec::new() })
}

impl Runtime {
    /// The flag sets to try, best first.
    pub(crate) fn candidates(&self) -> Vec<Self> {
        match self.kind {
            Kind::Namespaces => vec![self.clone()],
            Kind::Gvisor => {
                let with = |platform: &str| {
                    // No network but its own; files go straight to where they lie, so that their limit holds.
                    let flags = ["--network=none", "--overlay2=none", "--platform"].map(str::to_owned);
                    Self { flags: [&flags[..], &[platform.to_owned()]].concat(), ..self.clone() }
                };
                PLATFORMS.map(with).to_vec()
            }
        }
    }

    fn command(&self, state: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--root").arg(state).args(&self.flags);
        // A runtime may write into its user's home; a sandbox's affairs are in its own folder.
        command.env("HOME", state);
        command
    }

    /// Makes and starts a container from a bundle; it keeps the streams that it is given.
    pub(crate) fn start(
        &self,
        state: &Path,
        bundle: &Path,
        id: &str,
        [input, output, errors]: [OwnedFd; 3],
    ) -> io::Result<()> {
        let log = bundle.join("log");
        let mut command = self.command(state);
        command.arg("--log").arg(&log).args(["run", "--detach"]).args(&self.run_flags);
        command.arg("--bundle").arg(bundle).arg(id);
        let status = command.stdin(input).stdout(output).stderr(errors).status()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("{status}: {}", last_error(&log))))
    }

    pub(crate) fn delete(&self, state: &Path, id: &str) -> io::Result<()> {
        run(self.command(state).args(["delete", "--force", id])).map(drop)
    }

    /// Has a container deleted by a process that goes on when this one ends.
    pub(crate) fn begin_delete(&self, state: &Path, id: &str) -> io::Result<()> {
        let mut command = self.command(state);
        command.args(["delete", "--force", id]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let wait = move || child.wait();
        std::thread::Builder::new().name("oci-delete".to_owned()).spawn(wait).map(drop)
    }
}

/// The last message of a runtime's log, which is lines of text with `msg=` in them.
fn last_error(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message").to_owned()
}
