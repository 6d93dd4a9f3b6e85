//! A large file into a session's disk and out of it, beside `cp` and fsync on the disk that both are on. Whoever sends
//! or fetches hashes every byte, and the two must be the same.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::SessionPlan;
use super::api::Api;
use crate::beside::Beside;
use crate::failure::{Doing, Failure, Result};
use crate::progress::Progress;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    Upload,
    Download,
}

impl Direction {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
        }
    }
}

const TTL_SECONDS: u64 = 3600;

/// In both directions, and how many KiB the server's memory grew by at most.
pub(super) fn measure(
    api: &Api,
    pid: u32,
    folder: &Path,
    plan: SessionPlan,
    progress: &mut Progress,
) -> Result<(Vec<Beside<Direction>>, u64)> {
    let (blob, copy) = (folder.join("blob"), folder.join("copy"));
    let bytes = plan.blob_mib << 20;
    progress.show("making a file");
    make(&blob, bytes)?;
    // A copy and what is being written beside it must fit.
    let limits = json!({"disk_bytes": 3 * bytes + (256 << 20), "memory_bytes": 1_u64 << 30});
    let session = api.create(TTL_SECONDS, limits)?.id;
    let path = format!("/v1/sessions/{session}/files?path=blob");
    let before = memory(pid, "VmRSS")?;
    // From here on the kernel remembers the most anew.
    let forget = format!("/proc/{pid}/clear_refs");
    fs::write(&forget, "5").doing(format_args!("writing {forget}"))?;
    let (mut up, mut down, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..plan.transfers {
        progress.at("a large file", round, plan.transfers);
        theirs.push(copied(&blob, &copy)?);
        let mut sent = Sha256::new();
        let file = File::open(&blob).doing("opening a file")?;
        let answer = api.http.send(&path, file, bytes, |piece| sent.update(piece))?;
        answer.expect(200)?;
        up.push(answer.took);
        let mut fetched = Sha256::new();
        let answer = api.http.fetch(&path, |piece| fetched.update(piece))?;
        answer.expect(200)?;
        down.push(answer.took);
        if sent.finalize() != fetched.finalize() {
            return Err(Failure::new("a file that was fetched is not the one that was sent"));
        }
    }
    let growth = memory(pid, "VmHWM")?.saturating_sub(before);
    api.delete(&session)?;
    fs::remove_file(&blob).doing("removing a file")?;
    let beside = |direction, ours: &[Duration]| Beside::new(direction, "cp, fsync", ours, &theirs);
    Ok((vec![beside(Direction::Upload, &up)?, beside(Direction::Download, &down)?], growth))
}

/// Bytes that no disk can make fewer of.
fn make(path: &Path, bytes: u64) -> Result<()> {
    let making = || -> std::io::Result<()> {
        let mut random = File::open("/dev/urandom")?.take(bytes);
        let mut file = File::create(path)?;
        std::io::copy(&mut random, &mut file)?;
        file.flush()?;
        file.sync_all()
    };
    making().doing(format_args!("making {}", path.display()))
}

fn copied(from: &Path, to: &Path) -> Result<Duration> {
    let start = Instant::now();
    let status = Command::new("/bin/cp").args([from, to]).status().doing("copying a file")?;
    let synced = File::open(to).and_then(|file| file.sync_all());
    let took = start.elapsed();
    synced.doing("syncing a copy")?;
    fs::remove_file(to).doing("removing a copy")?;
    if status.success() { Ok(took) } else { Err(Failure::new(format!("cp ended with {status}"))) }
}

/// A line of the process's status, in KiB.
fn memory(pid: u32, name: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).doing(format_args!("reading {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok())
        .ok_or_else(|| Failure::new(format!("{path} has no {name}")))
}
