//! What the tests of the real program share: runs with a bound, their answers, and folders of their own.
//!
//! Sandboxes take root so far; without it these tests fail, they do not skip.

pub(crate) mod leftovers;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The most that one run may take; a machine that is busy with other tests is several times slower.
const RUN_MAX: Duration = Duration::from_secs(60);

/// What a run left: its exit code and its output as text.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Answer {
    /// The result object, which must be all of stdout.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Checks the exit code and that stderr is this one line.
    pub(crate) fn says(&self, code: i32, line: &str) {
        assert_eq!((self.code, self.stderr.as_str()), (Some(code), format!("cofferdam: {line}\n").as_str()));
    }
}

/// The program.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_cofferdam"))
}

/// `cofferdam run` with these words, and nothing on its stdin.
pub(crate) fn run(words: &[&str]) -> Answer {
    finish(command(words).spawn().expect("the program starts"))
}

pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.arg("run").args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits for the end of a run, and kills it when it takes too long.
pub(crate) fn finish(child: Child) -> Answer {
    let pid = Pid::from_child(&child);
    let (sender, receiver) = channel();
    let waiter = std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(RUN_MAX) {
        Ok(output) => {
            let _ = waiter.join();
            Answer::from(output.expect("its output can be read"))
        }
        Err(RecvTimeoutError::Timeout) => {
            let _ = kill_process(pid, Signal::KILL);
            panic!("it still ran after {RUN_MAX:?}");
        }
        Err(RecvTimeoutError::Disconnected) => panic!("the waiter is gone"),
    }
}

/// Waits until something is so, and fails with its name if it never is.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "not so after 10 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A number that no other test of this process or another one has.
fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A word that is nowhere else on this machine.
pub(crate) fn marker(name: &str) -> String {
    format!("marker-{name}-{}", unique())
}

/// A folder that is gone after the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("cofferdam-run-{}", unique()));
        fs::create_dir(&path).expect("a folder can be made");
        Self(path)
    }

    /// One on a disk, which the folder for temporary files often is not.
    pub(crate) fn on_disk() -> Self {
        let path = Path::new("/var/tmp").join(format!("cofferdam-run-{}", unique()));
        fs::create_dir(&path).expect("a folder can be made");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("its name is text").to_owned()
    }

    /// Writes a file, and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        fs::write(self.0.join(name), content).expect("a file can be written");
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
