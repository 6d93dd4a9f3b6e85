//! A sandbox of which something cannot be ended: its ids must be nobody's afterwards.

use super::leak::init_of;
use super::{Looks, broke, held};
use crate::lab::{Cell, Lab, Launched, Wish, create};
use crate::mode::{self, Mode};
use crate::row::Seen;
use cofferdam_linux::ControlSet;
use cofferdam_linux::slots::{self, Slots};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// More than the launcher's own patience.
const PATIENCE: Duration = Duration::from_secs(15);

/// What keeps a sandbox from being gone.
enum Hold {
    /// A process of the host's in its group, which the end of its init does not end.
    Process(Child),
    /// Its init is frozen by the freezer of version 1, which keeps it from dying.
    Frozen(PathBuf),
    /// Nothing: for the control.
    Nothing,
}

impl Hold {
    fn let_go(self) {
        match self {
            Self::Process(mut child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Self::Frozen(group) => {
                let _ = fs::write(group.join("freezer.state"), "THAWED");
                // Empty as soon as the process is dead.
                for _ in 0..200 {
                    if fs::remove_dir(&group).is_ok() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            Self::Nothing => {}
        }
    }
}

pub(crate) async fn set_aside(lab: &mut Lab) -> Result<Looks, String> {
    let mut said = vec![case(lab, process_in_group).await?];
    if lab.mode == Mode::RootV1 {
        said.push(case(lab, frozen_init).await?);
    }
    let wrong: Vec<String> = said.iter().filter_map(|seen| seen.clone().err()).collect();
    let wall = match wrong.as_slice() {
        [] => held(said.into_iter().flatten().collect::<Vec<_>>().join("; ")),
        _ => broke(wrong.join("; ")),
    };
    // With nothing in the way the next one on this machine does get the same range.
    let control = match case(lab, |_, _| Ok((Hold::Nothing, ""))).await? {
        Err(text) => broke(text),
        Ok(text) => Seen::Error(text),
    };
    Ok((wall, control))
}

fn process_in_group(_: &Lab, cell: &Cell) -> Result<(Hold, &'static str), String> {
    let child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().map_err(|e| e.to_string())?;
    let group = group_folders(cell.slot).into_iter().next().ok_or("it has no group")?;
    fs::write(group.join("cgroup.procs"), child.id().to_string()).map_err(|e| format!("{group:?}: {e}"))?;
    Ok((Hold::Process(child), "a process in its group"))
}

fn frozen_init(lab: &Lab, cell: &Cell) -> Result<(Hold, &'static str), String> {
    let group = PathBuf::from("/sys/fs/cgroup/freezer").join(&lab.plants.name);
    fs::create_dir(&group).map_err(|e| format!("{group:?}: {e}"))?;
    let write =
        |file: &str, text: &str| fs::write(group.join(file), text).map_err(|e| format!("{file}: {e}"));
    write("cgroup.procs", &init_of(cell)?.to_string())?;
    write("freezer.state", "FROZEN")?;
    Ok((Hold::Frozen(group), "an init that does not die"))
}

/// The folders of a sandbox's group that are there.
fn group_folders(slot: u32) -> Vec<PathBuf> {
    let all = mode::group_folders().into_iter().map(|folder| folder.join(format!("s{slot}")));
    all.filter(|group| group.join("cgroup.procs").exists()).collect()
}

type Prepare = fn(&Lab, &Cell) -> Result<(Hold, &'static str), String>;

/// Makes a sandbox, keeps it from being gone, destroys it and its launcher, and looks what becomes of its range.
async fn case(lab: &mut Lab, prepare: Prepare) -> Result<Result<String, String>, String> {
    let launched = lab.launch(ControlSet::EMPTY, false).map_err(|e| e.to_string())?;
    let cell = create(&launched, &Wish::default()).await.map_err(|e| e.to_string())?;
    let slot = cell.slot;
    let (hold, what) = prepare(lab, &cell)?;
    let seen = judge(lab, launched, cell).await;
    hold.let_go();
    restore(slot).await?;
    Ok(match seen {
        Ok(text) => Ok(format!("{what}: {text}")),
        Err(text) => Err(format!("{what}: {text}")),
    })
}

async fn judge(lab: &mut Lab, mut launched: Launched, cell: Cell) -> Result<String, String> {
    let slot = cell.slot;
    let destroyed = tokio::time::timeout(PATIENCE, cell.sandbox.destroy()).await;
    drop(cell);
    // Not only while somebody holds the lock: the launcher, which could, is gone, too.
    let _ = launched.child.kill();
    launched.child.wait().map_err(|e| e.to_string())?;
    drop(launched);
    let error = match destroyed {
        Err(_) => return Err(format!("no answer within {} s", PATIENCE.as_secs())),
        Ok(Ok(())) => String::new(),
        Ok(Err(error)) => error.to_string(),
    };
    if Slots::open(&mode::slots_folder()).map_err(|e| e.to_string())?.is_free(slot) {
        return Err(format!("its range is free: {error}"));
    }
    // A new backend in this process begins with the same number.
    let mut next = lab.launch(ControlSet::EMPTY, false).map_err(|e| e.to_string())?;
    let other = create(&next, &Wish::default()).await.map_err(|e| e.to_string())?;
    lab.slots.insert(other.slot);
    let is_same = other.slot == slot;
    other.sandbox.destroy().await.map_err(|e| e.to_string())?;
    drop(other);
    let _ = next.child.kill();
    next.child.wait().map_err(|e| e.to_string())?;
    let report = cofferdam_native::doctor();
    let row = report.iter().find(|check| check.name == "ids set aside");
    match row.map(|row| row.found.as_str()) {
        _ if is_same => Err("the next sandbox has its range".to_owned()),
        _ if !error.contains("set aside") => Err(format!("destroy does not say so: {error:?}")),
        Some(found) if found.contains(&slot.to_string()) => Ok(format!("set aside; doctor: {found}")),
        found => Err(format!("doctor does not say so: {found:?}")),
    }
}

/// The suite knows that it is over, so that it may take the mark away; nobody else may.
async fn restore(slot: u32) -> Result<(), String> {
    let is_marked = slots::list_set_aside(&mode::slots_folder()).iter().any(|(number, _)| *number == slot);
    for _ in 0..200 {
        if group_folders(slot).iter().all(|group| fs::remove_dir(group).is_ok()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    if is_marked {
        let file = mode::slots_folder().join(slot.to_string());
        fs::write(&file, "").map_err(|e| format!("{}: {e}", file.display()))?;
    }
    match group_folders(slot).first() {
        Some(group) => Err(format!("{} is left", group.display())),
        None => Ok(()),
    }
}
