//! No sandbox: a program forked and executed. What every other figure is a multiple of.
//!
//! Beside sandboxes it runs on their root filesystem, since an interpreter reads what its machine has installed
//! at each start. This program started again goes there once and runs whatever it is asked to, a name a line,
//! with the time as its answer: only a whole process can change its root.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::chroot;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::whole_command::quiet;
use crate::contestant::{Contestant, Sample};
use crate::failure::{Doing, Failure, Result};
use crate::workload::Workload;

/// The hidden first argument that makes this program the one that runs others in a root.
const RUNNER: &str = "--bare-in";

/// In another root.
pub(crate) struct Bare {
    rootfs: PathBuf,
    workload: Workload,
    /// Those with nothing to do. As many are started as there are runs at once.
    idle: Mutex<Vec<Runner>>,
}

impl Bare {
    /// Proven to run the workload, output and all.
    pub(crate) fn new(rootfs: PathBuf, workload: Workload) -> Result<Self> {
        let bare = Self { rootfs, workload, idle: Mutex::new(Vec::new()) };
        bare.sample()?;
        Ok(bare)
    }
}

impl Contestant for Bare {
    fn name(&self) -> &str {
        "bare"
    }

    fn sample(&self) -> Result<Sample> {
        let waiting = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut runner = waiting.map_or_else(|| Runner::start(&self.rootfs, self.workload), Ok)?;
        let took = runner.run()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(runner);
        Ok(took.into())
    }
}

/// A process that runs one workload whenever it is asked to. It ends when nobody can ask any more.
struct Runner {
    child: Child,
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Runner {
    fn start(rootfs: &Path, workload: Workload) -> Result<Self> {
        let this = std::env::current_exe().doing("finding this program")?;
        let mut command = Command::new(this);
        command.arg(RUNNER).arg(rootfs).args(workload.argv());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().doing("starting this program again")?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (ask, answers) = pipes.ok_or_else(|| Failure::new("no pipes to this program"))?;
        let mut runner = Self { child, ask: Some(ask), answers: BufReader::new(answers) };
        let seen = runner.answer()?;
        match seen == format!("{:?}", workload.expected_stdout()) {
            true => Ok(runner),
            false => Err(Failure::new(format!("does not run {}: {seen}", workload.label()))),
        }
    }

    fn run(&mut self) -> Result<Duration> {
        let ask = self.ask.as_mut().ok_or_else(|| Failure::new("nobody to ask"))?;
        ask.write_all(b"\n").doing("asking for a run")?;
        let answer = self.answer()?;
        answer.parse().map(Duration::from_nanos).map_err(|_| Failure::new(answer))
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).doing("waiting for a run")?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        drop(self.ask.take());
        let _ = self.child.wait();
    }
}

/// Becomes the program that runs others in a root, if that is what this process was started for.
pub(crate) fn become_runner_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args().skip(1);
    if words.next()? != RUNNER {
        return None;
    }
    let argv: Vec<String> = words.collect();
    Some(match serve(&argv) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    })
}

/// First the output of one run, then the time of each in nanoseconds, or why there is none.
fn serve(words: &[String]) -> Result<()> {
    let [rootfs, program, args @ ..] = words else {
        return Err(Failure::new(format!("{RUNNER} needs a folder and a command")));
    };
    let null = File::options().read(true).write(true).open("/dev/null").doing("opening /dev/null")?;
    chroot(rootfs)
        .and_then(|()| std::env::set_current_dir("/"))
        .doing(format_args!("going into {rootfs}"))?;
    let mut command = quiet(program);
    command.args(args);
    let nothing = || null.try_clone().map(Stdio::from).doing("cloning /dev/null");
    let output = command.stdin(nothing()?).stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let output = output.doing(format_args!("starting {program}"))?;
    println!("{:?}", String::from_utf8_lossy(&output.stdout));
    for _ in io::stdin().lines() {
        command.stdin(nothing()?).stdout(nothing()?).stderr(nothing()?);
        let start = Instant::now();
        let status = command.status().doing(format_args!("starting {program}"))?;
        let took = start.elapsed();
        if status.success() { println!("{}", took.as_nanos()) } else { println!("{status}") }
    }
    Ok(())
}
