//! I4: what is left on the machine, of a program that nobody else runs.

use crate::server::Folder;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The longest that a test waits for something to become so, on a machine that is busy with others.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A copy of the program under a path of its own: its launchers and its inits are forked from it without exec, so all
/// that is left of it can be told from what others run.
pub(crate) struct OwnProgram(Folder);

impl OwnProgram {
    pub(crate) fn new() -> Self {
        let folder = Folder::new("program");
        // By a process of its own: a file that this one has open for writing, a child of another test may hold open.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_cofferdam")).arg(folder.path()).status();
        assert!(copied.expect("cp").success());
        Self(folder)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("cofferdam")
    }

    /// I4: waits until nothing of it runs.
    pub(crate) fn wait_until_gone(&self) {
        let path = self.path();
        wait_until("I4: no process of the program is left", || !exes().any(|(_, exe)| exe == path));
    }

    /// Kills whatever of it runs, launchers and inits among them.
    pub(crate) fn kill_all(&self) {
        let path = self.path();
        for (process, _) in exes().filter(|(_, exe)| *exe == path) {
            // It may have ended meanwhile.
            let _ = Command::new("kill").args(["-KILL", &process]).status();
        }
    }
}

/// The name of a sandbox's group, by what it sees of its ids: each has a range of its own.
pub(crate) fn group_of(uid_map: &str) -> String {
    let first: u32 = uid_map.split_whitespace().nth(1).and_then(|id| id.parse().ok()).expect("an id map");
    format!("s{}", (first - 0x7000_0000) / 65_536)
}

pub(crate) fn has_group(name: &str) -> bool {
    let controllers =
        std::fs::read_dir("/sys/fs/cgroup").expect("cgroups").flatten().map(|entry| entry.path());
    let mut bases = controllers.chain([Path::new("/sys/fs/cgroup").to_owned()]);
    bases.any(|base| base.join("cofferdam").join(name).exists())
}

/// The processes of the machine, and what each runs.
fn exes() -> impl Iterator<Item = (String, PathBuf)> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| {
        let exe = std::fs::read_link(entry.path().join("exe")).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), exe))
    })
}

/// How many processes of the machine, in whatever sandbox, have exactly this word among theirs.
pub(crate) fn processes_with(word: &str) -> usize {
    let has = |path: &Path| {
        let text = std::fs::read(path.join("cmdline")).unwrap_or_default();
        text.split(|byte| *byte == 0).any(|own| own == word.as_bytes())
    };
    std::fs::read_dir("/proc").expect("/proc").flatten().filter(|entry| has(&entry.path())).count()
}
