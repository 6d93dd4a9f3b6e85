//! A server of a test's own: its own folder, its own port, and nothing left of it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cofferdam-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it the master key of another: whoever shares a store shares that.
    pub(crate) fn share_key_of(&self, other: &Self) {
        let key = |folder: &Self| folder.path().join("master.key");
        std::fs::copy(key(other), key(self)).expect("a copy of the key");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    /// Of the first tenant; a worker has none.
    pub(crate) key: String,
}

impl Server {
    /// Starts one on a free port, and waits until it listens.
    pub(crate) fn start(data: &Path, options: &[&str]) -> Self {
        Self::start_in(data, options, &[])
    }

    /// The same with some variables in its environment.
    pub(crate) fn start_in(data: &Path, options: &[&str], variables: &[(&str, &str)]) -> Self {
        let options = [&["--log-level", "warn"], options].concat();
        Self::start_with(data, &options, variables, Stdio::inherit())
    }

    /// The same, with its log in a file.
    pub(crate) fn start_logging(data: &Path, options: &[&str], log: &Path) -> Self {
        Self::start_logging_in(data, options, &[], log)
    }

    /// The same with some variables in its environment.
    pub(crate) fn start_logging_in(
        data: &Path,
        options: &[&str],
        variables: &[(&str, &str)],
        log: &Path,
    ) -> Self {
        Self::start_with(data, options, variables, std::fs::File::create(log).expect("a log").into())
    }

    /// `control`, with its log in a file.
    pub(crate) fn start_control_logging(data: &Path, log: &Path) -> Self {
        let log = std::fs::File::create(log).expect("a log");
        Self::start_role_in(program(), "control", data, &[], &[], log.into())
    }

    fn start_with(data: &Path, options: &[&str], variables: &[(&str, &str)], stderr: Stdio) -> Self {
        Self::start_role_in(program(), "serve", data, options, variables, stderr)
    }

    /// Starts `serve` or `control` of a program.
    pub(crate) fn start_role(program: &Path, role: &str, data: &Path, options: &[&str]) -> Self {
        let options = [&["--log-level", "warn"], options].concat();
        Self::start_role_in(program, role, data, &options, &[], Stdio::inherit())
    }

    fn start_role_in(
        program: &Path,
        role: &str,
        data: &Path,
        options: &[&str],
        variables: &[(&str, &str)],
        stderr: Stdio,
    ) -> Self {
        let data_option = data.to_string_lossy().into_owned();
        let mut words = vec![role, "--data", &data_option];
        if !options.contains(&"--listen") {
            words.extend(["--listen", "127.0.0.1:0"]);
        }
        let mut server = Self::spawn(program, &[&words, options].concat(), variables, stderr);
        server.key = std::fs::read_to_string(data.join("admin.key")).expect("the first key");
        server
    }

    /// Starts a worker on a free port, for control planes.
    pub(crate) fn start_worker(program: &Path, controls: &[&Self], token: &Path, options: &[&str]) -> Self {
        Self::start_worker_in(program, controls, token, options, &[], Stdio::inherit())
    }

    /// The same with some variables in its environment.
    pub(crate) fn start_worker_with(
        controls: &[&Self],
        token: &Path,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        Self::start_worker_in(program(), controls, token, options, variables, Stdio::inherit())
    }

    /// The same, with its log in a file.
    pub(crate) fn start_worker_logging(
        program: &Path,
        controls: &[&Self],
        token: &Path,
        options: &[&str],
        log: &Path,
    ) -> Self {
        let log = std::fs::File::create(log).expect("a log");
        Self::start_worker_in(program, controls, token, options, &[], log.into())
    }

    fn start_worker_in(
        program: &Path,
        controls: &[&Self],
        token: &Path,
        options: &[&str],
        variables: &[(&str, &str)],
        stderr: Stdio,
    ) -> Self {
        let token = token.to_string_lossy().into_owned();
        let controls: Vec<_> = controls.iter().map(|control| format!("http://{}", control.address)).collect();
        let mut words = vec!["worker", "--service-token-file", &token, "--listen", "127.0.0.1:0"];
        controls.iter().for_each(|url| words.extend(["--control", url]));
        words.extend(["--log-level", "warn"]);
        Self::spawn(program, &[&words, options].concat(), variables, stderr)
    }

    fn spawn(program: &Path, words: &[&str], variables: &[(&str, &str)], stderr: Stdio) -> Self {
        let mut command = Command::new(program);
        command.args(words).envs(variables.iter().copied());
        command.stdout(Stdio::piped()).stdin(Stdio::null()).stderr(stderr);
        let mut child = command.spawn().expect("a server");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let Some(address) = address(&mut stdout, "listening on ") else {
            let _ = child.kill();
            panic!("{words:?} does not listen");
        };
        Self { child, stdout, address, key: String::new() }
    }

    /// Where it has its metrics, if it was asked to have them apart.
    pub(crate) fn metrics_address(&mut self) -> SocketAddr {
        address(&mut self.stdout, "metrics on ").expect("an address of metrics")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(mut self) {
        self.signal("KILL");
        self.child.wait().expect("its end");
    }

    /// Whether it still runs.
    pub(crate) fn is_up(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_none()
    }

    /// Asks it to stop, and returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().expect("its end").code()
    }
}

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_cofferdam"))
}

/// The address in the next line, in which this comes before it.
fn address(stdout: &mut BufReader<ChildStdout>, before: &str) -> Option<SocketAddr> {
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    let (_, url) = line.trim().split_once(before)?;
    url.split_once("://")?.1.trim_end_matches("/metrics").parse().ok()
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Ends a process of a test. One that is killed writes no profile of what it has run, so where that is wanted it is
/// asked first.
pub(crate) fn end(child: &mut Child) {
    if std::env::var_os("LLVM_PROFILE_FILE").is_some() && matches!(child.try_wait(), Ok(None)) {
        let _ = Command::new("kill").arg(child.id().to_string()).status();
        let deadline = Instant::now() + Duration::from_secs(40);
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}
