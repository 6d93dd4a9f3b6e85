//! A PostgreSQL server of the benchmark's own: a folder, a socket, no port, and every commit synced. It ends when its
//! standard input does, whichever way the benchmark ends.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::failure::{Doing, Failure, Result};

const PROGRAMS: &str = "/usr/lib/postgresql";

#[derive(Debug)]
pub(super) struct Server {
    keeper: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: String,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let mut command = Command::new("setsid");
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0);
        if is_root {
            // PostgreSQL refuses to run as root. Its package has made a user for it.
            command.args(["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        }
        command.args(["bash", "-c", include_str!("postgres.sh"), "postgres.sh"]).arg(programs()?);
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().doing("starting PostgreSQL")?;
        let (orders, answers) = (keeper.stdin.take(), keeper.stdout.take());
        let answers = BufReader::new(answers.ok_or_else(|| Failure::new("PostgreSQL has no output"))?);
        let mut server = Self { keeper, orders, answers, folder: String::new() };
        server.folder = server.answer()?;
        if !server.folder.starts_with('/') {
            return Err(Failure::new("PostgreSQL did not start"));
        }
        Ok(server)
    }

    /// The address of a new database.
    pub(super) fn create(&self, name: &str) -> Result<String> {
        let created = Command::new(programs()?.join("createdb"))
            .args(["--host", &self.folder, "--username", "store", name])
            .status()
            .doing("making a database")?;
        if !created.success() {
            return Err(Failure::new(format!("the database {name} could not be made")));
        }
        Ok(format!("postgres://store@localhost/{name}?host={}", self.folder))
    }

    pub(super) fn stop(mut self) -> Result<()> {
        drop(self.orders.take());
        self.keeper.wait().doing("stopping PostgreSQL").map(drop)
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).doing("waiting for PostgreSQL")?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut orders) = self.orders.take() {
            let _ = orders.flush();
            drop(orders);
            let _ = self.keeper.wait();
        }
    }
}

/// Where Debian has the newest server's programs.
fn programs() -> Result<PathBuf> {
    let versions = std::fs::read_dir(PROGRAMS).into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin")).filter(|bin| bin.join("initdb").exists());
    let number = |bin: &PathBuf| bin.parent().and_then(Path::file_name)?.to_str()?.parse::<u32>().ok();
    found.max_by_key(number).ok_or_else(|| Failure::new("PostgreSQL is missing: apt-get install postgresql"))
}
