//! Very many sessions at once: what each takes while it waits, and that all end in time, also over a crash.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::json;

use super::api::{Api, Made};
use crate::failure::{Doing, Failure, Result};
use crate::in_process::sandboxes;
use crate::machine;
use crate::progress::Progress;
use crate::server::{Server, Setup};
use crate::stats::Summary;

/// Made, used and ended before anything is read, so that caches for such things exist.
const FIRST: usize = 5;

/// An interpreter that was started with a sandbox waits for so long, and is no part of an idle session.
const AHEAD: Duration = Duration::from_secs(13);

const SETTLE: Duration = Duration::from_secs(2);
/// Less than that in the time to settle is no rise.
const RISE_KIB: f64 = 4096.0;

const LOOK: Duration = Duration::from_millis(50);

/// What is not gone by then will not be.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long nobody is there.
const OUTAGE: Duration = Duration::from_secs(10);

/// More of them tell nothing more about one.
const INTERPRETERS_MAX: usize = 100;
const INTERPRETER_ROUNDS: usize = 3;

const TTL_SECONDS: u64 = 3600;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Crowd {
    pub(crate) sessions: usize,
    /// The fall of what is available by each, without an interpreter and with one.
    pub(crate) idle_kib: f64,
    pub(crate) kernel_kib: f64,
    /// By an interpreter alone.
    pub(crate) interpreter_kib: f64,
    /// Those that ended before their deadline.
    pub(crate) early: usize,
    /// From their deadline to their end.
    pub(crate) late: Summary,
    /// From the last deadline until nothing of them was there any more.
    pub(crate) gone_ms: Option<u64>,
    /// Sandboxes that were still there then.
    pub(crate) left: usize,
    /// From the start of a server that came back to their end.
    pub(crate) after_boot: Summary,
    pub(crate) left_after_boot: usize,
}

impl Crowd {
    /// What a session with an interpreter takes besides it.
    pub(crate) fn beside_interpreter_kib(&self) -> f64 {
        self.kernel_kib - self.interpreter_kib
    }
}

pub(super) fn measure(setup: Setup<'_>, count: usize, progress: &mut Progress) -> Result<Crowd> {
    progress.show("interpreters alone");
    let interpreter_kib = interpreters(setup.rootfs, count.min(INTERPRETERS_MAX))?;
    let server = Server::start(setup)?;
    let api = Api::new(&server);
    for made in open(&api, FIRST, TTL_SECONDS, progress)? {
        api.python(&made.id, "x = 1\nx", "1")?;
        api.delete(&made.id)?;
    }
    thread::sleep(SETTLE);
    let base = sandboxes().saturating_sub(api.waiting()?);
    let (idle_kib, kernel_kib, made) = fill(&api, count, progress)?;
    let standing = sandboxes().saturating_sub(base);
    let (early, late) = expire(&api, &made, standing, progress)?;
    let deadline_ms = made.iter().map(|made| made.expires_at_ms).max().unwrap_or(0);
    let left = settled(&api, base)?;
    let gone_ms = (left == 0).then(|| (now_ms() - deadline_ms).unsigned_abs());
    let (after_boot, left_after_boot) = crash(server, setup, count, progress)?;
    Ok(Crowd {
        sessions: count,
        idle_kib,
        kernel_kib,
        interpreter_kib,
        early,
        late,
        gone_ms,
        left,
        after_boot,
        left_after_boot,
    })
}

/// The fall of what is available by each of so many interpreters that wait, as for sessions: it has what no process
/// shows of itself in it, too, such as page tables, on both sides. What they share is there before: the first ones have
/// run, and what ended earlier has given its memory back. The median of some rounds, as others use memory meanwhile, and
/// never less than what each has for itself: where less is missing, somebody else has given memory back.
fn interpreters(rootfs: &Path, count: usize) -> Result<f64> {
    end(start_interpreters(rootfs, FIRST)?);
    let mut falls = [0.0; INTERPRETER_ROUNDS];
    for fall in &mut falls {
        let before = rested()?;
        let waiting = start_interpreters(rootfs, count)?;
        thread::sleep(SETTLE);
        let (during, own) = (available(), waiting.iter().map(own_kib).sum::<Result<u64>>());
        end(waiting);
        *fall = (before - during?).max(own? as f64) / count as f64;
    }
    falls.sort_by(f64::total_cmp);
    Ok(falls[INTERPRETER_ROUNDS / 2])
}

/// All of them have run their first line.
fn start_interpreters(rootfs: &Path, count: usize) -> Result<Vec<Child>> {
    let mut started = Vec::new();
    let mut start = || -> Result<()> {
        let mut command = Command::new("/usr/sbin/chroot");
        command
            .arg(rootfs)
            .args(["/usr/bin/python3", "-c", "x = 1; print(x, flush=True); input()"])
            .stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        started.push(command.spawn().doing("starting an interpreter")?);
        let said = started.last_mut().and_then(|child| child.stdout.as_mut());
        said.map_or(Ok(()), |pipe| pipe.read_exact(&mut [0; 2])).doing("waiting for an interpreter")
    };
    let outcome = (0..count).try_for_each(|_| start());
    match outcome {
        Ok(()) => Ok(started),
        Err(failure) => {
            end(started);
            Err(failure)
        }
    }
}

/// What a process has written to and shares with nobody, in KiB.
fn own_kib(process: &Child) -> Result<u64> {
    let path = format!("/proc/{}/smaps_rollup", process.id());
    let text = fs::read_to_string(&path).doing(format_args!("reading {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Private_Dirty:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok())
        .ok_or_else(|| Failure::new(format!("{path} has no Private_Dirty")))
}

fn end(interpreters: Vec<Child>) {
    for mut child in interpreters {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// What is available, once that has stopped rising.
fn rested() -> Result<f64> {
    let start = Instant::now();
    let mut most = available()?;
    loop {
        thread::sleep(SETTLE);
        let now = available()?;
        if now < most + RISE_KIB || start.elapsed() > PATIENCE {
            return Ok(now);
        }
        most = now;
    }
}

fn open(api: &Api, count: usize, ttl_seconds: u64, progress: &mut Progress) -> Result<Vec<Made>> {
    let mut made = Vec::with_capacity(count);
    while made.len() < count {
        progress.at("sessions opened", made.len(), count);
        made.push(api.create(ttl_seconds, json!({}))?);
    }
    Ok(made)
}

/// Opens all of them and runs a step in each. What one takes before that, and after, in KiB.
fn fill(api: &Api, count: usize, progress: &mut Progress) -> Result<(f64, f64, Vec<Made>)> {
    let before = rested()?;
    // Enough for the last to have run its step before the first has to end.
    let made = open(api, count, 60 + count as u64 / 4, progress)?;
    progress.show("sessions that wait");
    thread::sleep(AHEAD);
    let idle = available()?;
    run_in_each(api, &made, progress)?;
    thread::sleep(SETTLE);
    let with_kernels = available()?;
    let first = made.iter().map(|made| made.expires_at_ms).min().unwrap_or(0);
    if now_ms() >= first {
        return Err(Failure::new(format!("this machine is too slow to have {count} sessions open at once")));
    }
    Ok(((before - idle) / count as f64, (before - with_kernels) / count as f64, made))
}

fn run_in_each(api: &Api, made: &[Made], progress: &mut Progress) -> Result<()> {
    for (at, made_one) in made.iter().enumerate() {
        progress.at("first steps", at, made.len());
        api.python(&made_one.id, "x = 1\nx", "1")?;
    }
    Ok(())
}

/// Waits for all to end, and says how many did so early and how late the others were. `standing` is how many there
/// were before the first deadline, as counted from outside.
fn expire(api: &Api, made: &[Made], standing: usize, progress: &mut Progress) -> Result<(usize, Summary)> {
    let gone = made.len().saturating_sub(standing);
    let mut late = Vec::new();
    let mut early = 0;
    for (at, made_one) in made.iter().enumerate() {
        progress.at("sessions that end", at, made.len());
        let ended_ms = ended(api, &made_one.id, made_one.expires_at_ms)?;
        match u64::try_from(ended_ms - made_one.expires_at_ms) {
            Ok(ms) => late.push(Duration::from_millis(ms)),
            Err(_) => early += 1,
        }
    }
    // One that nobody was told of is worse than one that was.
    let summary = Summary::of(&late).ok_or_else(|| Failure::new("every session ended early"))?;
    Ok((early.max(gone), summary))
}

/// When a session ended that has to by then, or soon after.
fn ended(api: &Api, id: &str, by_ms: i64) -> Result<i64> {
    while now_ms() < by_ms {
        thread::sleep(LOOK);
    }
    let start = Instant::now();
    loop {
        let seen = api.show(id)?;
        if seen.has_ended {
            return Ok(seen.since_ms);
        }
        if start.elapsed() > PATIENCE {
            return Err(Failure::new(format!("{id} does not end")));
        }
        thread::sleep(LOOK);
    }
}

/// Sandboxes that are there besides those of before and those that wait for anybody, once that is none, or for good.
fn settled(api: &Api, base: usize) -> Result<usize> {
    let start = Instant::now();
    loop {
        let left = sandboxes().saturating_sub(base + api.waiting()?);
        if left == 0 || start.elapsed() > PATIENCE {
            return Ok(left);
        }
        thread::sleep(LOOK);
    }
}

/// The server dies with all of them open, and another one starts.
fn crash(
    server: Server,
    setup: Setup<'_>,
    count: usize,
    progress: &mut Progress,
) -> Result<(Summary, usize)> {
    let api = Api::new(&server);
    let made = open(&api, count, TTL_SECONDS, progress)?;
    run_in_each(&api, &made, progress)?;
    progress.show("nobody is there");
    server.kill()?;
    thread::sleep(OUTAGE);
    let standing = sandboxes();
    let boot_ms = now_ms();
    let server = Server::start_again(setup)?;
    let api = Api::new(&server);
    let mut late = Vec::new();
    for made_one in &made {
        let ended_ms = ended(&api, &made_one.id, boot_ms)?;
        late.push(Duration::from_millis(u64::try_from(ended_ms - boot_ms).unwrap_or(0)));
    }
    let left = settled(&api, standing.saturating_sub(count))?;
    server.stop()?;
    let summary = Summary::of(&late).ok_or_else(|| Failure::new("no sessions were open"))?;
    Ok((summary, left))
}

/// In KiB.
fn available() -> Result<f64> {
    let kib = machine::available_kib().ok_or_else(|| Failure::new(machine::NO_MEMORY))?;
    Ok(kib as f64)
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_for_itself_is_read_while_it_is_there() {
        let child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
        let own = own_kib(&child);
        end(vec![child]);
        assert!((1..10_000).contains(&own.unwrap()));
    }
}
