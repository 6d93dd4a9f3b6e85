//! What the host's own code does with files that the guest has prepared for it.

use super::{Looks, broke, held, own_code};
use crate::job;
use crate::lab::{Cell, DISK_BYTES, Lab, Wish, guest};
use crate::row::Seen;
use cofferdam_backend::EntryKind;
use std::collections::BTreeSet;
use std::fs;
use std::io::Cursor;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

pub(crate) const ARTIFACTS: &str = "/workspace/.artifacts";

/// A sandbox in which a probe has laid its trap.
async fn trapped(lab: &mut Lab, argv: &[&str]) -> Result<Cell, String> {
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    let output = lab.run_in(&cell, argv).await?;
    if output.held() { Ok(cell) } else { Err(output.summary()) }
}

pub(crate) async fn read_all(cell: &Cell, path: &str) -> Result<Vec<u8>, String> {
    let mut reader = cell.sandbox.read_file(&guest(path)).await.map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).await.map_err(|e| e.to_string())?;
    Ok(bytes)
}

async fn write(cell: &Cell, path: &str, text: &str) -> Result<u64, String> {
    let content = Box::new(Cursor::new(text.as_bytes().to_vec()));
    cell.sandbox.write_file(&guest(path), 0o644, content).await.map_err(|e| e.to_string())
}

/// Uploads to links: none is followed, in the last part of a path or before it.
pub(crate) async fn upload(lab: &mut Lab) -> Result<Looks, String> {
    const PRECIOUS: &str = "/workspace/precious/file";
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    write(&cell, PRECIOUS, "precious").await?;
    let output = lab.run_in(&cell, &["files-01", ARTIFACTS, PRECIOUS]).await?;
    if !output.held() {
        return Err(output.summary());
    }
    let mut refused = 0;
    for name in ["upload", "folder/file", "root/workspace/precious/file", "up/tmp/new", "dangling", "loop"] {
        match write(&cell, &format!("{ARTIFACTS}/{name}"), "overwritten").await {
            Err(_) => refused += 1,
            Ok(_) => return Ok((broke(format!("{name} was written")), own_code())),
        }
    }
    let now = read_all(&cell, PRECIOUS).await?;
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let wall = if now == b"precious" {
        held(format!("{refused} uploads refused"))
    } else {
        broke("the target was changed")
    };
    Ok((wall, own_code()))
}

/// Neither mode nor owner of a file that a link leads to changes.
pub(crate) async fn chown(lab: &mut Lab) -> Result<Looks, String> {
    const FILE: &str = "/usr/bin/env";
    let look = || {
        fs::metadata(FILE)
            .map(|m| (m.uid(), m.gid(), m.mode(), m.mtime(), m.nlink()))
            .map_err(|e| e.to_string())
    };
    let before = look()?;
    let cell = trapped(lab, &["files-02", ARTIFACTS, FILE]).await?;
    let mut refused = 0;
    for name in ["chown-me", "hard-0", "hard-1"] {
        refused += usize::from(write(&cell, &format!("{ARTIFACTS}/{name}"), "x").await.is_err());
    }
    let listed = cell.sandbox.list_files(&guest(ARTIFACTS), 100).await.map_err(|e| e.to_string())?;
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let links = listed.iter().filter(|entry| entry.kind == EntryKind::Link).count();
    let same = look()? == before;
    let wall = if same && links == 1 {
        held(format!("{refused} refused, the target is as it was"))
    } else {
        broke(format!("{FILE} or the list has changed: {listed:?}"))
    };
    Ok((wall, own_code()))
}

/// Runs a probe as a job and collects what it left.
async fn collected(
    lab: &mut Lab,
    argv: &[&str],
) -> Result<(cofferdam_core::JobResult, BTreeSet<String>, Duration), String> {
    let out = lab.plants.folder.join(format!("out-{}", argv[0]));
    let began = Instant::now();
    let (timeout, grace) = (Duration::from_secs(20), Duration::from_secs(1));
    let result = job::probe(lab, argv, timeout, grace, Some(&out)).await?;
    let took = began.elapsed();
    let files = fs::read_dir(&out).map_err(|e| e.to_string())?.flatten();
    Ok((result, files.map(|file| file.file_name().to_string_lossy().into_owned()).collect(), took))
}

/// Pipes, sockets and folders with names of files: skipped, listed, and nothing waits for them.
pub(crate) async fn collect_special(lab: &mut Lab) -> Result<Looks, String> {
    let (result, files, took) = collected(lab, &["files-03", ARTIFACTS]).await?;
    let skipped: BTreeSet<&str> = result.artifacts_skipped.iter().map(|s| s.path.as_str()).collect();
    let wanted: BTreeSet<&str> = ["fifo", "socket", "report.txt", "terminal", "endless"].into();
    let wall = if took > Duration::from_secs(2) {
        broke(format!("collecting took {} ms", took.as_millis()))
    } else if skipped != wanted || !result.artifacts.is_empty() {
        broke(format!("taken {:?}, skipped {skipped:?}, on the host {files:?}", result.artifacts))
    } else {
        held(format!("{} skipped and listed in {} ms", skipped.len(), took.as_millis()))
    };
    Ok((wall, own_code()))
}

/// Links through /proc: followed by nobody.
pub(crate) async fn collect_links(lab: &mut Lab) -> Result<Looks, String> {
    let (result, files, _) = collected(lab, &["files-06", ARTIFACTS, "{host_file}"]).await?;
    let links = result.artifacts_skipped.iter().filter(|s| s.reason.contains("link")).count();
    let wall = if result.artifacts.is_empty()
        && files.is_empty()
        && links == result.artifacts_skipped.len()
        && links > 0
    {
        held(format!("{links} links skipped"))
    } else {
        broke(format!("taken {:?}, on the host {files:?}", result.artifacts))
    };
    Ok((wall, own_code()))
}

/// Names come back as they are, once each, and those that can be paths can be read.
pub(crate) async fn names(lab: &mut Lab) -> Result<Looks, String> {
    let cell = trapped(lab, &["files-07", ARTIFACTS]).await?;
    let listed = cell.sandbox.list_files(&guest(ARTIFACTS), 1000).await.map_err(|e| e.to_string())?;
    let different: BTreeSet<&Vec<u8>> = listed.iter().map(|entry| &entry.name).collect();
    let mut read = 0;
    for entry in listed.iter().filter(|entry| entry.kind == EntryKind::File) {
        let Ok(name) = std::str::from_utf8(&entry.name) else { continue };
        if read_all(&cell, &format!("{ARTIFACTS}/{name}")).await? != b"x" {
            return Ok((broke(format!("{name:?} is another file")), own_code()));
        }
        read += 1;
    }
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let (result, files, _) = collected(lab, &["files-07", ARTIFACTS]).await?;
    let outside = stray(&lab.plants.folder.join("out-files-07"), &files);
    let wall = if different.len() != listed.len() || listed.len() < 38 {
        broke(format!("{} entries, {} names", listed.len(), different.len()))
    } else if !outside.is_empty() {
        broke(format!("on the host: {outside:?}"))
    } else {
        held(format!(
            "{} names, {read} read, {} taken, {} skipped",
            listed.len(),
            result.artifacts.len(),
            result.artifacts_skipped.len()
        ))
    };
    Ok((wall, own_code()))
}

/// Names on the host that a terminal or a tool would take for something else.
fn stray(folder: &Path, files: &BTreeSet<String>) -> Vec<String> {
    let bad = |name: &&String| name.chars().any(char::is_control) || !folder.join(name.as_str()).exists();
    files.iter().filter(bad).cloned().collect()
}

/// A deep tree that changes while the sandbox is destroyed.
pub(crate) async fn delete(lab: &mut Lab) -> Result<Looks, String> {
    let before = lab.inventory();
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    let running = lab.start(&cell, &["files-09", ARTIFACTS, "100000", "20"]).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = Instant::now();
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let took = began.elapsed();
    drop((running, cell));
    let back = lab.back_to(&before, Duration::from_secs(60)).await;
    let wall = match back {
        Ok(_) => held(format!("gone in {} ms", took.as_millis())),
        Err(left) => broke(left),
    };
    Ok((wall, own_code()))
}

/// What is counted as used is what is used: many names once, holes not at all.
pub(crate) async fn count(lab: &mut Lab) -> Result<Looks, String> {
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    let before = free(&cell).await?;
    let output = lab.run_in(&cell, &["files-10-links", "100"]).await?;
    let used = before.saturating_sub(free(&cell).await?);
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let wall = match output.held() {
        false => Seen::Error(output.summary()),
        true if before > DISK_BYTES || !((1 << 20)..(1 << 20) + (256 << 10)).contains(&used) => {
            broke(format!("{used} bytes counted for one file of 1 MiB"))
        }
        true => held(format!("{used} bytes counted for 1 MiB with 101 names and a hole of 1 GiB")),
    };
    Ok((wall, own_code()))
}

async fn free(cell: &Cell) -> Result<u64, String> {
    let stats = cell.sandbox.stats().await.map_err(|e| e.to_string())?;
    stats.disk_free_bytes.ok_or_else(|| "free space is not known".to_owned())
}
