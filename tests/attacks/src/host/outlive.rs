//! Staying: after the end of the process, of the sandbox, of the launcher.

use super::leak::init_of;
use super::{Looks, broke, held, own_code};
use crate::inventory::{self, marked};
use crate::job;
use crate::lab::{Lab, Wish, create, guest, process};
use crate::plants::random_hex;
use crate::row::Seen;
use cofferdam_core::{Control, Outcome};
use cofferdam_linux::ControlSet;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

fn kill_path() -> Seen {
    Seen::Without("needs the kill path itself left out".to_owned())
}

fn marker() -> Result<String, String> {
    random_hex(8).map(|hex| format!("outlive-{hex}")).map_err(|e| e.to_string())
}

/// Waits until nothing with the marker runs.
async fn nothing_left(marker: &str, within: Duration) -> Result<Duration, String> {
    let began = Instant::now();
    loop {
        let left = marked(marker);
        match left.is_empty() {
            true => return Ok(began.elapsed()),
            false if began.elapsed() > within => return Err(format!("still there: {left:?}")),
            false => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Forks at SIGTERM, in the grace period.
pub(crate) async fn grace(lab: &mut Lab) -> Result<Looks, String> {
    let marker = marker()?;
    let (timeout, grace) = (Duration::from_millis(500), Duration::from_millis(500));
    let result = job::probe(lab, &["outlive-01", &marker, "20"], timeout, grace, None).await?;
    let wall = match (result.outcome, nothing_left(&marker, Duration::from_secs(1)).await) {
        (Outcome::TimedOut, Ok(after)) => held(format!("nothing {} ms after the end", after.as_millis())),
        (Outcome::TimedOut, Err(left)) => broke(left),
        (outcome, _) => Seen::Error(format!("{outcome:?}")),
    };
    Ok((wall, kill_path()))
}

/// Double fork, a session of its own, deaf to signals.
pub(crate) async fn double_fork(lab: &mut Lab) -> Result<Looks, String> {
    let marker = marker()?;
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    // What it leaves holds stdout open, so that only its own end is waited for.
    let started = lab.start(&cell, &["outlive-05", &marker, "20"]).await?;
    started.wait().await.map_err(|e| e.to_string())?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let left = marked(&marker).len();
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let after = nothing_left(&marker, Duration::from_secs(1)).await;
    let wall = match after {
        Err(left) => broke(left),
        Ok(_) if left == 0 => Seen::Error("nothing was left behind".to_owned()),
        Ok(after) => held(format!("{left} left behind, gone {} ms after the end", after.as_millis())),
    };
    Ok((wall, kill_path()))
}

/// Files that tools of the host would run: the host lists, reads and deletes, and runs none.
pub(crate) async fn canary(lab: &mut Lab) -> Result<Looks, String> {
    let canary = lab.plants.folder.join("canary");
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    let output = lab.run_in(&cell, &["outlive-03", &canary.display().to_string()]).await?;
    let mut seen = 0;
    for folder in ["/workspace", "/workspace/.git", "/workspace/.git/hooks"] {
        for entry in cell.sandbox.list_files(&guest(folder), 1000).await.map_err(|e| e.to_string())? {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            if let Ok(mut reader) = cell.sandbox.read_file(&guest(&format!("{folder}/{name}"))).await {
                let mut text = Vec::new();
                reader.read_to_end(&mut text).await.map_err(|e| e.to_string())?;
                seen += 1;
            }
        }
    }
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let wall = match (canary.exists(), output.held()) {
        (true, _) => broke("a planted file was run on the host"),
        (false, true) => held(format!("{seen} files listed and read, none was run")),
        (false, false) => Seen::Error(output.summary()),
    };
    Ok((wall, own_code()))
}

/// Many sandboxes, and the host is as before.
pub(crate) async fn many_runs(lab: &mut Lab) -> Result<Looks, String> {
    let runs = if lab.quick { 100 } else { 1000 };
    let mut before = None;
    for i in 0..=runs {
        let argv = vec!["/bin/true".to_owned()];
        let cell = lab.bare(&Wish::default()).await.map_err(|e| format!("run {i}: {e}"))?;
        let process = cell.sandbox.start(process(argv)).await.map_err(|e| format!("run {i}: {e}"))?;
        process.wait().await.map_err(|e| format!("run {i}: {e}"))?;
        cell.sandbox.destroy().await.map_err(|e| format!("run {i}: {e}"))?;
        drop((process, cell));
        // After the first one, what is made once and kept is there.
        if before.is_none() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            before = Some(lab.inventory());
        }
    }
    let before = before.ok_or("no run")?;
    let wall = match lab.back_to(&before, Duration::from_secs(5)).await {
        Ok(_) => held(format!("{runs} runs: processes, cgroups, mounts, descriptors, folders as before")),
        Err(left) => broke(left),
    };
    // One sandbox that is kept shows that the inventory would notice.
    let cell = lab.bare(&Wish::default()).await.map_err(|e| e.to_string())?;
    let more = lab.inventory().since(&before);
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    Ok((wall, if more.is_empty() { held("one that is kept is not noticed") } else { broke(more.join(", ")) }))
}

/// kill -9 of the launcher, while the host lives on and holds the other end of every socket.
pub(crate) async fn kill_launcher(lab: &mut Lab) -> Result<Looks, String> {
    let at_rest = launcher_killed(lab, &Wish::default(), false).await?;
    let in_use = launcher_killed(lab, &Wish::default(), true).await?;
    let control = launcher_killed(lab, &Wish::without(&[Control::DiesWithHost]), false).await?;
    let look = |seen: Result<Duration, usize>| match seen {
        Ok(after) => held(format!("dead {} ms after the launcher", after.as_millis())),
        Err(left) => broke(format!("{left} processes live on")),
    };
    let wall = match (at_rest, in_use) {
        (Ok(_), Err(left)) => {
            broke(format!("dies with it at rest; once a process was started, {left} live on"))
        }
        (at_rest, Ok(_)) => look(at_rest),
        (Err(left), Err(_)) => broke(format!("{left} processes live on, at rest already")),
    };
    Ok((wall, look(control)))
}

/// How long after its launcher a sandbox was dead, or how many of its processes live on after the time that it has.
async fn launcher_killed(
    lab: &mut Lab,
    wish: &Wish,
    is_used: bool,
) -> Result<Result<Duration, usize>, String> {
    let mut launched = lab.launch(ControlSet::EMPTY, false).map_err(|e| e.to_string())?;
    let cell = create(&launched, wish).await.map_err(|e| e.to_string())?;
    lab.slots.insert(cell.slot);
    let mut running = None;
    if is_used {
        lab.bring_probe(&cell).await.map_err(|e| e.to_string())?;
        running = Some(lab.start(&cell, &["--beat", "50"]).await?);
    }
    let slot: BTreeSet<u32> = [cell.slot].into();
    if inventory::processes(&slot).is_empty() && is_used {
        return Err("nothing runs".to_owned());
    }
    let init = init_of(&cell)?;
    launched.child.kill().map_err(|e| e.to_string())?;
    launched.child.wait().map_err(|e| e.to_string())?;
    let began = Instant::now();
    let alive = || inventory::is_alive(init);
    while alive() && began.elapsed() < lab.mode.patience() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let seen = if alive() { Err(inventory::processes(&slot).len().max(1)) } else { Ok(began.elapsed()) };
    // Without its launcher nobody else ends it or removes its group.
    if alive() {
        let pid = i32::try_from(init).ok().and_then(rustix::process::Pid::from_raw);
        pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
    }
    drop((running, cell, launched));
    for _ in 0..50 {
        remove_groups(&slot);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(seen)
}

/// Takes away what a killed launcher could not.
fn remove_groups(slots: &BTreeSet<u32>) {
    for folder in crate::mode::group_folders() {
        for slot in slots {
            let _ = std::fs::remove_dir(folder.join(format!("s{slot}")));
        }
    }
}

/// Paused, then destroyed: on cgroup v1 frozen tasks do not die until they are thawed.
pub(crate) async fn frozen(lab: &mut Lab) -> Result<Looks, String> {
    let before = lab.inventory();
    let cell = lab.cell(&Wish { pausable: true, ..Wish::default() }).await.map_err(|e| e.to_string())?;
    let _running = lab.start(&cell, &["--beat", "20"]).await?;
    cell.sandbox.pause().await.map_err(|e| e.to_string())?;
    let began = Instant::now();
    let destroyed = tokio::time::timeout(Duration::from_secs(2), cell.sandbox.destroy()).await;
    let took = began.elapsed();
    drop((_running, cell));
    let back = lab.back_to(&before, Duration::from_secs(2)).await;
    let wall = match (destroyed, back) {
        (Err(_), _) => broke("not gone within 2 s"),
        (Ok(Err(error)), _) => broke(error.to_string()),
        (_, Err(left)) => broke(left),
        _ => held(format!("gone in {} ms", took.as_millis())),
    };
    Ok((wall, kill_path()))
}
