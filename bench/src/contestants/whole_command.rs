//! A command line timed from spawn to the end of wait, on equal terms for all: the same small environment,
//! nothing on stdin, output to nowhere.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::contestant::{Contestant, Sample};
use crate::failure::{Doing, Failure, Result};
use crate::workload::Workload;
use crate::workplace::CGROUP;

/// The first run may still fill caches; one that takes longer hangs. Samples have no such limit: polling
/// would blur them.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct WholeCommand {
    name: &'static str,
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    ids: Option<Ids>,
}

/// Container ids, unused by any other run of any contestant.
#[derive(Debug)]
struct Ids {
    prefix: String,
    next: AtomicU64,
}

impl WholeCommand {
    pub(crate) fn new<A: Into<OsString>>(
        name: &'static str,
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self { name, program: program.into(), args, env: Vec::new(), ids: None }
    }

    /// Adds more arguments.
    pub(crate) fn args<A: Into<OsString>>(mut self, more: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(more.into_iter().map(Into::into));
        self
    }

    /// Adds a variable to the environment.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Ends each run's command line with an id of its own.
    pub(crate) fn with_fresh_id(mut self, workload: Workload) -> Self {
        let prefix = format!("{CGROUP}-{}-{}", self.name, workload.slug());
        self.ids = Some(Ids { prefix, next: AtomicU64::new(0) });
        self
    }

    /// Runs once with its output kept, and is content only if that is the workload's.
    pub(crate) fn check(&self, workload: Workload) -> Result<()> {
        let mut command = self.command();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing(format_args!("starting {}", self.program.display()))?;
        let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let success = wait_within(&mut child, CHECK_TIMEOUT)?;
        let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
        if success && stdout == workload.expected_stdout() {
            return Ok(());
        }
        let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing on stderr");
        Err(Failure::new(format!("does not run {}: {last}", workload.label())))
    }

    /// The first line that `--version` prints, of those that have one.
    pub(crate) fn version(&self) -> Option<String> {
        let output = Command::new(&self.program).arg("--version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.lines().next().map(String::from))?
    }

    fn command(&self) -> Command {
        let mut command = quiet(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(ids) = &self.ids {
            command.arg(format!("{}-{}", ids.prefix, ids.next.fetch_add(1, Ordering::Relaxed)));
        }
        command
    }
}

impl Contestant for WholeCommand {
    fn name(&self) -> &str {
        self.name
    }

    fn sample(&self) -> Result<Sample> {
        let mut command = self.command();
        let start = Instant::now();
        let status = command.status().doing(format_args!("starting {}", self.program.display()))?;
        let took = start.elapsed();
        if status.success() { Ok(took.into()) } else { Err(Failure::new(status.to_string())) }
    }
}

/// A command in the environment that every contestant and every helper gets. HOME stays, for programs that
/// insist on one.
pub(crate) fn quiet(program: impl Into<PathBuf>) -> Command {
    let mut command = Command::new(program.into());
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LANG", "C.UTF-8");
    if let Some(home) = std::env::var_os("HOME") {
        command.env("HOME", home);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Drained on a thread of its own, so that a chatty program cannot block on a full pipe.
fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait_within(child: &mut Child, limit: Duration) -> Result<bool> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().doing("waiting")? {
            return Ok(status.success());
        }
        thread::sleep(Duration::from_millis(2));
    }
    child.kill().and_then(|()| child.wait()).doing("ending a program that hangs")?;
    Err(Failure::new(format!("still running after {} s", limit.as_secs())))
}

/// Where a helper's complaints go when they may be needed.
pub(super) fn log(path: PathBuf) -> Result<File> {
    File::create(&path).doing(format_args!("creating {}", path.display()))
}
