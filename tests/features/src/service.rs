//! A service of a scenario's own: its own folder, its own port, and nothing left of it.

use crate::wall::wall;
use cofferdam_client::Client;
use cofferdam_project_tests::binary;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Service {
    folder: PathBuf,
    child: Child,
    pub client: Client,
}

impl Service {
    pub fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("cofferdam-feature-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let (child, client) = spawn(&folder);
        Self { folder, child, client }
    }

    /// Ends it without a word, and starts another on the same folder.
    pub fn kill_and_start(&mut self) {
        self.child.kill().expect("it is killed");
        self.child.wait().expect("its end");
        (self.child, self.client) = spawn(&self.folder);
    }
}

fn spawn(folder: &PathBuf) -> (Child, Client) {
    let mut command = Command::new(binary::folder().join("cofferdam"));
    command.arg("serve").arg("--data").arg(folder).args(["--listen", "127.0.0.1:0"]);
    wall().lend(&mut command);
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().expect("a server");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let Some(url) = line.trim().strip_prefix("listening on ") else {
        let _ = child.kill();
        panic!("the server said {line:?}");
    };
    let key = std::fs::read_to_string(folder.join("admin.key")).expect("the first key");
    (child, Client::new(url, &key).expect("a client"))
}

impl Drop for Service {
    fn drop(&mut self) {
        // One that is killed writes no profile of what it has run.
        if std::env::var_os("LLVM_PROFILE_FILE").is_some() {
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
            let deadline = Instant::now() + Duration::from_secs(40);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
