//! Races between the host's file code and a guest that changes what it looks at.

use super::files::{ARTIFACTS, read_all};
use super::leak::init_of;
use super::{Looks, broke, held};
use crate::inventory::{children, marked};
use crate::lab::{Cell, Lab, Wish, guest};
use crate::row::Seen;
use std::fs;
use std::time::{Duration, Instant};

/// A file and a link to a file of the host change places while the host reads.
pub(crate) async fn exchanged(lab: &mut Lab) -> Result<Looks, String> {
    let reads = if lab.quick { 5_000 } else { 100_000 };
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    let racing = lab.start(&cell, &["files-05", ARTIFACTS, "{host_file}", "50"]).await?;
    wait_for(&cell, "swap").await?;
    let swap = format!("{ARTIFACTS}/swap");
    let (mut plain, mut refused) = (0, 0);
    for _ in 0..reads {
        match read_all(&cell, &swap).await {
            Ok(bytes) if bytes == b"harmless\n" => plain += 1,
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                return Ok((
                    broke(format!("something else was read: {text:?}")),
                    Seen::Without(String::new()),
                ));
            }
            Err(_) => refused += 1,
        }
    }
    let control = naive(lab, &cell)?;
    drop(racing);
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let wall = match (plain, refused) {
        (0, _) | (_, 0) => Seen::Error(format!("no race: {plain} read, {refused} refused")),
        _ => held(format!("{reads} reads: {plain} of the file, {refused} refused, no leak")),
    };
    Ok((wall, control))
}

/// The reader that everyone writes first: looks whether it is a plain file, then opens it by its name.
fn naive(lab: &Lab, cell: &Cell) -> Result<Seen, String> {
    // By way of the process that races: init's own files are closed to all but root.
    let racer = match &lab.works {
        None => *children(init_of(cell)?).first().ok_or("init has no child")?,
        Some(_) => {
            let racing = marked("files-05");
            let inside = lab.processes(cell)?;
            racing.into_iter().find(|pid| inside.contains(pid)).ok_or("no process of the host races")?
        }
    };
    let path = format!("/proc/{racer}/root{ARTIFACTS}/swap");
    let began = Instant::now();
    let mut tries = 0;
    while began.elapsed() < Duration::from_secs(10) {
        tries += 1;
        if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            continue;
        }
        if fs::read_to_string(&path).is_ok_and(|text| text.contains(&lab.plants.nonce)) {
            return Ok(broke(format!("check-then-open leaks after {tries} tries")));
        }
    }
    Ok(held(format!("check-then-open did not leak in {tries} tries")))
}

async fn wait_for(cell: &Cell, name: &str) -> Result<(), String> {
    for _ in 0..500 {
        let listed = cell.sandbox.list_files(&guest(ARTIFACTS), 100).await.unwrap_or_default();
        if listed.iter().any(|entry| entry.name == name.as_bytes()) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(format!("{name} never came"))
}

/// The folder in which the host works is another one at every look.
pub(crate) async fn renamed(lab: &mut Lab) -> Result<Looks, String> {
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    let seconds = if lab.quick { 1 } else { 5 };
    let folder = lab.plants.folder.display().to_string();
    let racing = lab.start(&cell, &["files-04", ARTIFACTS, &folder, "20"]).await?;
    wait_for(&cell, "work").await?;
    let (began, mut turns, mut worked) = (Instant::now(), 0, 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        turns += 1;
        let work = format!("{ARTIFACTS}/work");
        let content = Box::new(std::io::Cursor::new(b"uploaded".to_vec()));
        let written = cell.sandbox.write_file(&guest(&format!("{work}/upload")), 0o644, content).await;
        let listed = cell.sandbox.list_files(&guest(&work), 100).await;
        let read = read_all(&cell, &format!("{work}/host-file")).await;
        if read.is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&lab.plants.nonce)) {
            return Ok((broke("the nonce was read"), super::own_code()));
        }
        let names = listed.unwrap_or_default();
        if names.iter().any(|entry| entry.name == b"host-file") {
            return Ok((broke("the host's folder was listed"), super::own_code()));
        }
        worked += usize::from(written.is_ok());
    }
    let outside = lab.plants.folder.join("upload").exists();
    drop(racing);
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let wall = if outside {
        broke("an upload landed on the host")
    } else {
        held(format!("{turns} turns, {worked} uploads inside"))
    };
    Ok((wall, super::own_code()))
}
