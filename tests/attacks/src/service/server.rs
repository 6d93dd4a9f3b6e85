//! Servers to attack: the product or its twin, each with a folder and a port of its own, and nothing left of it.

use super::client::Client;
use super::{Stop, cannot, tokens};
use crate::plants::random_hex;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What is attacked.
#[derive(Debug)]
pub(crate) struct Ground {
    /// The product; none for the twin.
    cofferdam: Option<PathBuf>,
    pub(crate) is_quick: bool,
}

impl Ground {
    pub(crate) fn product(cofferdam: &Path, is_quick: bool) -> Self {
        Self { cofferdam: Some(cofferdam.to_owned()), is_quick }
    }

    pub(crate) fn twin(is_quick: bool) -> Self {
        Self { cofferdam: None, is_quick }
    }

    /// The product; none where this is the twin.
    pub(crate) fn program(&self) -> Option<&Path> {
        self.cofferdam.as_deref()
    }

    pub(crate) fn folder(&self) -> Result<Folder, Stop> {
        let path = std::env::temp_dir().join(format!("cofferdam-attacks-{}", random_hex(8)?));
        std::fs::create_dir(&path)?;
        Ok(Folder(path))
    }

    /// What starts a server in a folder, with its address on stdout and its log in a file.
    pub(crate) fn command(&self, folder: &Folder) -> Result<Command, Stop> {
        let data = folder.path().join("data");
        let (config, keys) = (folder.path().join("cofferdam.toml"), folder.path().join("jwks.json"));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.path().join("log"))?;
        std::fs::write(&keys, tokens::key_set().to_string())?;
        std::fs::write(&config, tokens::config(&keys))?;
        let mut command = match &self.cofferdam {
            Some(program) => {
                let mut command = Command::new(program);
                command.arg("serve").arg("--config").arg(&config).arg("--data").arg(&data);
                command.args(["--listen", "127.0.0.1:0", "--webhook-allow", "127.0.0.1", "--webhook-http"]);
                command
            }
            None => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("--twin").arg(&data);
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        Ok(command)
    }

    /// A server in a new folder.
    pub(crate) fn start(&self, options: &[&str]) -> Result<Target, Stop> {
        self.start_in(self.folder()?, options)
    }

    /// The same with some variables in its environment.
    pub(crate) fn start_with(&self, options: &[&str], variables: &[(&str, &str)]) -> Result<Target, Stop> {
        self.spawn(self.folder()?, options, variables)
    }

    /// A server in a folder that was there before.
    pub(crate) fn start_in(&self, folder: Folder, options: &[&str]) -> Result<Target, Stop> {
        self.spawn(folder, options, &[])
    }

    fn spawn(&self, folder: Folder, options: &[&str], variables: &[(&str, &str)]) -> Result<Target, Stop> {
        let data = folder.path().join("data");
        // The twin defends nothing, and so has no options.
        let options = if self.cofferdam.is_some() { options } else { &[] };
        let child = self.command(&folder)?.args(options).envs(variables.iter().copied()).spawn()?;
        let mut target =
            Target { child, folder, address: SocketAddr::from(([127, 0, 0, 1], 0)), key: String::new() };
        let Some(stdout) = target.child.stdout.take() else { return cannot("no stdout") };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on http://").and_then(|text| text.parse().ok());
        let Some(address) = address else {
            return cannot(format!("it does not listen: {}", target.log().trim()));
        };
        target.address = address;
        target.key = std::fs::read_to_string(data.join("admin.key"))?.trim().to_owned();
        Ok(target)
    }
}

/// A folder that goes with the attack.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Target {
    child: Child,
    folder: Folder,
    address: SocketAddr,
    pub(crate) key: String,
}

impl Target {
    /// Whoever runs the server.
    pub(crate) fn operator(&self) -> Client {
        self.nobody().with_key(&self.key)
    }

    /// Someone without a key.
    pub(crate) fn nobody(&self) -> Client {
        Client { address: self.address, headers: String::new() }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The memory that it has, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or(0) << 10
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn signal(&self, name: &str) -> Result<(), Stop> {
        let status =
            Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status()?;
        super::needs(status.success(), || format!("kill -{name}: {status}"))
    }

    /// kill -9; what is left is its folder.
    pub(crate) fn kill(mut self) -> Result<Folder, Stop> {
        self.child.kill()?;
        self.child.wait()?;
        let nothing = Folder(PathBuf::from("/nonexistent/cofferdam-attacks"));
        Ok(std::mem::replace(&mut self.folder, nothing))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
