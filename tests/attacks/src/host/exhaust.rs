//! Using things up: whether it ends in time, and whether only the guilty feel it.

use super::{Looks, broke, held, own_code};
use crate::heart::Heart;
use crate::inventory;
use crate::job;
use crate::lab::{Lab, MEMORY_BYTES, Wish};
use crate::mode::{self, Mode};
use crate::row::Seen;
use cofferdam_core::{Control, Outcome};
use cofferdam_linux::cgroup::Layout;
use std::fs;
use std::time::{Duration, Instant};

/// A tree that stops itself is ended at the deadline.
pub(crate) async fn deadline(lab: &mut Lab) -> Result<Looks, String> {
    let before = lab.inventory();
    let (timeout, grace) = (Duration::from_secs(1), Duration::from_millis(300));
    let result = job::probe(lab, &["exhaust-03", "20"], timeout, grace, None).await?;
    let left = lab.back_to(&before, Duration::from_secs(1)).await;
    let wall = match (&result.outcome, left) {
        (_, Err(left)) => broke(left),
        (Outcome::TimedOut, _) if result.duration_ms < 3000 => {
            held(format!("timed out after {} ms", result.duration_ms))
        }
        (outcome, _) => broke(format!("{outcome:?} after {} ms", result.duration_ms)),
    };
    // With time enough the same tree lives as long as it likes.
    let result = job::probe(lab, &["exhaust-03", "1"], Duration::from_secs(20), grace, None).await?;
    let control = match result.outcome {
        Outcome::Exited { code: 10 } => broke("with a longer deadline it lives"),
        outcome => Seen::Error(format!("{outcome:?}")),
    };
    Ok((wall, control))
}

/// A fork bomb in full swing is gone within a second.
pub(crate) async fn gone(lab: &mut Lab) -> Result<Looks, String> {
    lab.backend().map_err(|e| e.to_string())?;
    let before = lab.inventory();
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    let bomb = lab.start(&cell, &["exhaust-04-bomb", "100000", "30"]).await?;
    let mut most = 0;
    for _ in 0..100 {
        most = most.max(lab.processes(&cell)?.len());
        if most > 40 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let before_end = lab.processes(&cell)?;
    let began = Instant::now();
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let took = began.elapsed();
    // A container that is gone has no processes to ask for.
    let after_end = lab.processes(&cell).unwrap_or_default();
    let left = before_end.union(&after_end).filter(|pid| inventory::is_alive(**pid)).count();
    drop((bomb, cell));
    let back = lab.back_to(&before, Duration::from_secs(1)).await;
    let wall = match back {
        Err(left) => broke(left),
        _ if most <= 40 => Seen::Error(format!("the bomb had {most} processes only")),
        _ if left > 0 => broke(format!("{left} processes left when it was said to be gone")),
        _ if took > Duration::from_secs(1) => broke(format!("gone after {} ms", took.as_millis())),
        _ => held(format!("{most} processes gone in {} ms", took.as_millis())),
    };
    Ok((wall, Seen::Without("needs the kill path itself left out".to_owned())))
}

/// Without swap on the machine nothing inside can tell; the group's own files can.
pub(crate) async fn swap(lab: &mut Lab) -> Result<Looks, String> {
    let mut looks = Vec::new();
    for wish in [Wish::default(), Wish::without(&[Control::SwapOff])] {
        let cell = lab.bare(&wish).await.map_err(|e| e.to_string())?;
        let seen = match &lab.works {
            None => swap_limit(&group_of(cell.slot)?),
            Some(_) => swap_limit(&lab.memory_group(&cell)?),
        };
        cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
        looks.push(seen);
    }
    let control = looks.pop().unwrap_or(Seen::Error(String::new()));
    Ok((looks.remove(0), control))
}

/// The folder of a native sandbox's group that limits memory.
fn group_of(slot: u32) -> Result<String, String> {
    match mode::layout() {
        Layout::V1 { .. } => Ok(format!("/sys/fs/cgroup/memory/cofferdam/s{slot}")),
        Layout::V2 { base } => Ok(base.join(format!("s{slot}")).display().to_string()),
        Layout::None { reason } => Err(reason.clone()),
    }
}

/// What the group's own files say of swap.
fn swap_limit(group: &str) -> Seen {
    let is_v1 = matches!(mode::layout(), Layout::V1 { .. });
    let read = |file: &str| fs::read_to_string(format!("{group}/{file}")).map(|text| text.trim().to_owned());
    if !is_v1 {
        return match read("memory.swap.max") {
            Ok(text) if text == "0" => held("memory.swap.max is 0"),
            Ok(text) => broke(format!("memory.swap.max is {text}")),
            Err(error) => Seen::Error(format!("{group}: {error}")),
        };
    }
    match (read("memory.memsw.limit_in_bytes"), read("memory.swappiness")) {
        (Ok(bytes), _) if bytes == MEMORY_BYTES.to_string() => held("memory and swap together are limited"),
        (Ok(bytes), _) => broke(format!("memory and swap together: {bytes}")),
        (Err(_), Ok(text)) if text == "0" => held("swappiness is 0"),
        (Err(_), Ok(text)) => broke(format!("swappiness is {text}")),
        (Err(error), Err(_)) => Seen::Error(format!("{group}: {error}")),
    }
}

/// What keeps one sandbox's inotify instances from another: ids of its own, or, without root, a number of its own.
pub(crate) fn inotify_control(mode: Mode) -> Control {
    match mode {
        Mode::RootV1 | Mode::RootV2 => Control::OwnHostUids,
        Mode::RootlessV2 => Control::NamespaceLimits,
    }
}

/// One sandbox takes every inotify instance that it can get; another needs some.
pub(crate) async fn inotify(lab: &mut Lab) -> Result<Looks, String> {
    let mut looks = Vec::new();
    for wish in [Wish::default(), Wish::without(&[inotify_control(lab.mode)])] {
        let hog = lab.cell(&wish).await.map_err(|e| e.to_string())?;
        let cell = lab.cell(&wish).await.map_err(|e| e.to_string())?;
        let _hogging = lab.start(&hog, &["exhaust-06-inotify-hog", "3"]).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let output = lab.run_in(&cell, &["exhaust-06-inotify-need", "8"]).await?;
        for cell in [hog, cell] {
            cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
        }
        looks.push(if output.held() { held(output.summary()) } else { broke(output.summary()) });
    }
    let control = looks.pop().unwrap_or(Seen::Error(String::new()));
    Ok((looks.remove(0), control))
}

/// What is hard to delete is gone in time.
pub(crate) async fn cleanup(lab: &mut Lab) -> Result<Looks, String> {
    let before = lab.inventory();
    let began = Instant::now();
    for argv in [["exhaust-10-deep", "3000"], ["exhaust-10-mode000", "500"]] {
        let output = lab.run(&Wish::default(), &argv).await?;
        if !output.held() {
            return Err(output.summary());
        }
    }
    let back = lab.back_to(&before, Duration::from_secs(60)).await;
    let wall = match back {
        Ok(_) => held(format!("both made and gone in {} ms", began.elapsed().as_millis())),
        Err(left) => broke(left),
    };
    Ok((wall, own_code()))
}

/// A sync storm does not stop a neighbour.
pub(crate) async fn sync_storm(lab: &mut Lab) -> Result<Looks, String> {
    let heart = Heart::start(lab).await?;
    let output = lab.run(&Wish::default(), &["exhaust-11", if lab.quick { "1" } else { "5" }]).await?;
    let gap = heart.stop().await?;
    let wall = match output.held() {
        false => Seen::Error(output.summary()),
        true if gap > Duration::from_secs(1) => {
            broke(format!("the neighbour stood still for {} ms", gap.as_millis()))
        }
        true => held(format!("{}; a neighbour's longest pause {} ms", output.summary(), gap.as_millis())),
    };
    Ok((wall, Seen::Without("workspaces are in memory, so that there is no disk to keep busy".to_owned())))
}
