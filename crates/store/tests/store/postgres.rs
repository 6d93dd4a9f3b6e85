//! A PostgreSQL server that belongs to the tests: its own folder, a socket and no port. No other server of the
//! machine is looked at.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// Runs until it is dropped, or until this process is gone: `postgres.sh` waits for the end of its input.
#[derive(Debug)]
pub(crate) struct Server {
    keeper: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: String,
}

/// The address of a database on the server that all cases share.
pub(crate) fn shared_address(database: &str) -> String {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(Server::start).address(database)
}

impl Server {
    pub(crate) fn start() -> Self {
        let script = include_str!("postgres.sh");
        let bin = programs();
        let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        // PostgreSQL refuses to run as root. Its package has made a user for it.
        let mut command = Command::new("setsid");
        if is_root {
            command.args(["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        }
        let mut keeper = command
            .args(["bash", "-c", script, "postgres.sh"])
            .arg(&bin)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("setsid, setpriv and bash start");
        let orders = keeper.stdin.take();
        let answers = BufReader::new(keeper.stdout.take().unwrap());
        let mut server = Self { keeper, orders, answers, folder: String::new() };
        server.folder = server.answer();
        assert!(server.folder.starts_with('/'), "PostgreSQL in {} did not start", bin.display());
        server
    }

    pub(crate) fn address(&self, database: &str) -> String {
        format!("postgres://store@localhost/{database}?host={}", self.folder)
    }

    /// Ends the server as a crash would, and starts it again.
    pub(crate) fn crash(&mut self) {
        self.order("again");
    }

    /// Has `postgres.sh` do something, and waits for that.
    pub(crate) fn order(&mut self, word: &str) {
        self.orders.as_mut().unwrap().write_all(format!("{word}\n").as_bytes()).unwrap();
        assert_eq!(self.answer(), format!("{word} done"));
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.keeper.wait();
    }
}

/// Where Debian has the newest server's programs.
pub(crate) fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| ["initdb", "pg_ctl", "postgres"].iter().all(|name| bin.join(name).exists()))
        .max_by_key(|bin| version(bin));
    newest.expect(
        "PostgreSQL is missing, and the store is tested on it; run: \
         sudo apt-get install --no-install-recommends postgresql",
    )
}

fn version(bin: &Path) -> Option<u32> {
    bin.parent()?.file_name()?.to_str()?.parse().ok()
}
