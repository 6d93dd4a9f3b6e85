//! What a warm sandbox costs while it waits, and whether all of it comes back.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use cofferdam_backend::Sandbox;
use serde::Serialize;

use super::host::{Host, failed};
use crate::failure::{Doing, Failure, Result};
use crate::machine;

/// Made and destroyed before anything is read, so that the kernel's caches for such things exist.
const FIRST: usize = 20;

/// For the kernel to finish what it does later.
const SETTLE: Duration = Duration::from_secs(1);

/// What has not come back by then will not.
const PATIENCE: Duration = Duration::from_secs(20);

/// The kernel's own bookkeeping moves by a few hundredths, and others use memory, too.
const RETURNED: f64 = 0.95;

/// What can be counted from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Inventory {
    pub(crate) available_kib: u64,
    /// Below the product's own, in every hierarchy.
    pub(crate) cgroups: usize,
    pub(crate) mounts: usize,
}

/// Two rounds of the same. The first is charged with everything, also with what the kernel keeps of it for the
/// next ones (slabs, memory for each processor). The second finds that there, so that what is missing after it
/// is lost.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Idle {
    pub(crate) sandboxes: usize,
    pub(crate) first: Round,
    pub(crate) second: Round,
}

impl Idle {
    /// The fall of what is available by each.
    pub(crate) fn kib_each(&self) -> f64 {
        self.first.fall() as f64 / self.sandboxes as f64
    }

    /// Cgroups and mounts that were not there before.
    pub(crate) fn left(&self) -> usize {
        self.first.left() + self.second.left()
    }

    /// How many KiB of each did not come back.
    pub(crate) fn lost_kib_each(&self) -> f64 {
        self.second.missing().max(0) as f64 / self.sandboxes as f64
    }
}

/// So many sandboxes made, at rest, and destroyed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Round {
    pub(crate) before: Inventory,
    pub(crate) during: Inventory,
    pub(crate) after: Inventory,
}

impl Round {
    fn missing(&self) -> i64 {
        self.before.available_kib as i64 - self.after.available_kib as i64
    }

    fn fall(&self) -> i64 {
        self.before.available_kib as i64 - self.during.available_kib as i64
    }

    /// Cgroups and mounts that were not there before.
    pub(crate) fn left(&self) -> usize {
        let left = |of: fn(&Inventory) -> usize| of(&self.after).saturating_sub(of(&self.before));
        left(|inventory| inventory.cgroups) + left(|inventory| inventory.mounts)
    }

    /// How much of the fall was made up for, at most all of it.
    pub(crate) fn memory_returned(&self) -> f64 {
        if self.fall() <= 0 { 1.0 } else { (1.0 - self.missing() as f64 / self.fall() as f64).min(1.0) }
    }

    fn came_back(&self) -> bool {
        self.left() == 0 && self.memory_returned() >= RETURNED
    }
}

/// On a launcher of its own, which holds nothing else.
pub(crate) fn measure(rootfs: &Path, sandboxes: usize, mut progress: impl FnMut(usize)) -> Result<Idle> {
    let host = Host::start(rootfs)?;
    destroy(&host, make(&host, FIRST, |_| ())?)?;
    let mut round = || go_round(&host, sandboxes, &mut progress);
    Ok(Idle { sandboxes, first: round()?, second: round()? })
}

fn go_round(host: &Host, sandboxes: usize, progress: impl FnMut(usize)) -> Result<Round> {
    thread::sleep(SETTLE);
    let before = Inventory::read()?;
    let waiting = make(host, sandboxes, progress)?;
    thread::sleep(SETTLE);
    let during = Inventory::read()?;
    destroy(host, waiting)?;
    let mut round = Round { before, during, after: Inventory::read()? };
    let start = Instant::now();
    while !round.came_back() && start.elapsed() < PATIENCE {
        thread::sleep(SETTLE);
        round.after = Inventory::read()?;
    }
    Ok(round)
}

fn make(host: &Host, count: usize, mut progress: impl FnMut(usize)) -> Result<Vec<Box<dyn Sandbox>>> {
    host.runtime.block_on(async {
        let mut made = Vec::with_capacity(count);
        while made.len() < count {
            progress(made.len());
            made.push(host.warm().await?);
        }
        Ok(made)
    })
}

fn destroy(host: &Host, sandboxes: Vec<Box<dyn Sandbox>>) -> Result<()> {
    host.runtime.block_on(async {
        for sandbox in sandboxes {
            sandbox.destroy().await.map_err(failed)?;
        }
        Ok(())
    })
}

impl Inventory {
    fn read() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").doing("reading /proc/self/mountinfo")?;
        let available_kib = machine::available_kib().ok_or_else(|| Failure::new(machine::NO_MEMORY))?;
        Ok(Self { available_kib, cgroups: cgroups(), mounts: mounts.lines().count() })
    }
}

/// Folders below `cofferdam` at the top of version 2, or under each controller of version 1.
fn cgroups() -> usize {
    let top = Path::new("/sys/fs/cgroup");
    let controllers = folders(top).into_iter().map(|name| top.join(name));
    controllers.chain([top.to_owned()]).map(|dir| folders(&dir.join("cofferdam")).len()).sum()
}

/// Sandboxes of this product that stand, whoever made them: a folder each, in the hierarchy that has most.
pub(crate) fn sandboxes() -> usize {
    let top = Path::new("/sys/fs/cgroup");
    let controllers = folders(top).into_iter().map(|name| top.join(name));
    let counts = controllers.chain([top.to_owned()]).map(|dir| folders(&dir.join("cofferdam")).len());
    counts.max().unwrap_or(0)
}

fn folders(dir: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.file_name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(available_kib: u64, cgroups: usize) -> Inventory {
        Inventory { available_kib, cgroups, mounts: 30 }
    }

    fn round(before: u64, during: u64, after: Inventory) -> Round {
        Round { before: inventory(before, 1), during: inventory(during, 501), after }
    }

    #[test]
    fn what_each_costs_is_the_fall_of_the_first_round_by_their_number() {
        let first = round(100_000, 50_000, inventory(80_000, 1));
        let second = round(80_000, 50_000, inventory(79_000, 1));
        let idle = Idle { sandboxes: 100, first, second };
        assert_eq!((idle.kib_each(), idle.left(), idle.lost_kib_each()), (500.0, 0, 10.0));
    }

    #[test]
    fn a_round_waits_for_its_memory_and_for_its_cgroups() {
        let with = |after| round(100_000, 50_000, after);
        assert!(with(inventory(98_000, 1)).came_back());
        let (left, kept) = (with(inventory(98_000, 2)), with(inventory(60_000, 1)));
        assert_eq!((left.left(), left.came_back()), (1, false));
        assert_eq!(((kept.memory_returned() * 100.0).round(), kept.came_back()), (20.0, false));
    }
}
