//! Processes stand still while the helper goes on: files can be read of a sandbox in which nothing happens.
//!
//! The container's own pause would stop the helper with them. A stop by signal cannot be caught or blocked, and who is
//! stopped cannot have anybody continued; what forks meanwhile has its child stopped, too.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// For so long a process that waits for its child to begin a program is helped to it.
const HELPED_FOR: Duration = Duration::from_secs(1);

/// A stop that was asked for, and is not over.
#[derive(Debug)]
struct Stop {
    since: Instant,
    /// Those that were stopped before, by somebody inside; they stay so.
    before: BTreeSet<i32>,
}

/// Whether processes stand still, or are about to.
#[derive(Debug, Default)]
pub(super) struct Standstill(Option<Stop>);

impl Standstill {
    /// Stops every process but the helper, and says which goes on, with the letter of its state. Asked again until none
    /// does.
    pub(super) fn stop(&mut self) -> Result<Option<(i32, char)>, Errno> {
        let stop = match self.0.take() {
            Some(stop) => stop,
            None => {
                let before = others()?.into_iter().filter(|process| process.running.is_none());
                Stop { since: Instant::now(), before: before.map(|process| process.pid).collect() }
            }
        };
        let stop = self.0.insert(stop);
        // From process 1 this reaches all the others of its pid namespace; none is what was asked for.
        match kill(Pid::from_raw(-1), Signal::SIGSTOP) {
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
            Err(errno) => return Err(Errno::from_raw_os_error(errno as i32)),
        }
        let all = others()?;
        let mut left = None;
        for process in &all {
            let Some(state) = process.running else { continue };
            let mut children =
                all.iter().filter(|child| child.parent == process.pid && child.running.is_none());
            let Some(child) = children.next_back() else {
                left = left.or(Some((process.pid, state)));
                continue;
            };
            // It may wait for its child to begin another program, which is stopped: neither would ever go on. One that
            // was not let go in all that time stands still.
            if state == 'D' && stop.since.elapsed() < HELPED_FOR {
                let _ = kill(Pid::from_raw(child.pid), Signal::SIGCONT);
            }
            if state != 'D' || stop.since.elapsed() < HELPED_FOR {
                left = left.or(Some((process.pid, state)));
            }
        }
        Ok(left)
    }

    /// Lets them go on. Children come before their parents, which could take a child that is still stopped for one that
    /// somebody has stopped.
    pub(super) fn go_on(&mut self) -> Result<(), Errno> {
        let Some(Stop { before, .. }) = self.0.take() else { return Ok(()) };
        for process in others()?.into_iter().rev().filter(|process| !before.contains(&process.pid)) {
            // One that has ended needs nothing.
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGCONT);
        }
        Ok(())
    }
}

/// A process as it is seen in /proc.
#[derive(Debug)]
struct Seen {
    pid: i32,
    parent: i32,
    /// The state of the first thread that is not stopped.
    running: Option<char>,
}

/// The processes of the sandbox besides this one, the oldest first. One that is gone meanwhile is none.
fn others() -> Result<Vec<Seen>, Errno> {
    let own = std::process::id() as i32;
    let mut pids = numbers(Path::new("/proc"))?;
    pids.retain(|pid| *pid != own);
    pids.sort_unstable();
    Ok(pids.into_iter().filter_map(look).collect())
}

fn numbers(folder: &Path) -> Result<Vec<i32>, Errno> {
    let failed = |error: std::io::Error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    let entries = fs::read_dir(folder).map_err(failed)?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

fn look(pid: i32) -> Option<Seen> {
    let (_, parent) = state(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    let folder = format!("/proc/{pid}/task");
    let threads = numbers(Path::new(&folder)).unwrap_or_default();
    let running = threads.into_iter().find_map(|thread| {
        let stat = fs::read_to_string(format!("{folder}/{thread}/stat")).ok()?;
        state(&stat).map(|(state, _)| state).filter(|state| !matches!(state, 'T' | 't' | 'Z' | 'X'))
    });
    Some(Seen { pid, parent, running })
}

/// The letter after the program's name, which is in parentheses and may have any in it, and the parent after that.
fn state(stat: &str) -> Option<(char, i32)> {
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_change_the_state() {
        assert_eq!(state("7 (sleep) S 1 7 7 0 -1"), Some(('S', 1)));
        assert_eq!(state("7 (a) T (b) R 12 7 7 0 -1"), Some(('R', 12)));
        assert_eq!(state("7 (x) t 1"), Some(('t', 1)));
        assert_eq!(state("nothing"), None);
    }
}
