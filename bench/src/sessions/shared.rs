//! A fork where the disks lie on a filesystem that can share: an XFS in a file, which only the service sees. There a fork
//! takes its time by itself, whatever there is to copy; so it is not beside a copy.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use serde_json::json;

use super::SessionPlan;
use super::api::Api;
use super::fork::{COUNT, Shape, TTL_SECONDS, script};
use crate::failure::{Doing, Failure, Result};
use crate::progress::Progress;
use crate::server::{Server, Setup};
use crate::stats::Summary;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct SharedFork {
    pub(crate) of: Shape,
    pub(crate) took: Summary,
}

/// Room for the disks of a session and a child, and for what the filesystem writes itself. Only what is written is taken.
const IMAGE_BYTES: u64 = 4 << 30;

/// What a session's disk has besides its tree.
const BESIDE_BYTES: u64 = 256 << 20;

const MEMORY_BYTES: u64 = 512 << 20;

pub(super) fn measure(
    setup: Setup<'_>,
    plan: SessionPlan,
    progress: &mut Progress,
) -> Result<Vec<SharedFork>> {
    progress.show("making a filesystem that shares");
    let image = setup.folder.join("xfs");
    make(&image)?;
    let server = Server::start(Setup { workspaces: Some(&image), ..setup })?;
    let api = Api::new(&server);
    let forks =
        Shape::ALL.into_iter().map(|shape| one(&api, shape, plan, progress)).collect::<Result<_>>()?;
    server.stop()?;
    fs::remove_file(&image).doing("removing a filesystem")?;
    Ok(forks)
}

fn make(image: &Path) -> Result<()> {
    let making = format!("making {}", image.display());
    File::create(image).and_then(|file| file.set_len(IMAGE_BYTES)).doing(&making)?;
    let output = Command::new("mkfs.xfs").args(["-q", "-f"]).arg(image).output();
    let output = output.doing("running mkfs.xfs, of xfsprogs")?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("{making}: {}", String::from_utf8_lossy(&output.stderr)))),
    }
}

fn one(api: &Api, shape: Shape, plan: SessionPlan, progress: &mut Progress) -> Result<SharedFork> {
    let (files, bytes) = shape.tree(plan);
    let disk_bytes = 2 * bytes + BESIDE_BYTES;
    let limits = json!({"disk_bytes": disk_bytes, "memory_bytes": MEMORY_BYTES});
    let parent = api.create(TTL_SECONDS, limits)?.id;
    api.python(&parent, &script(files, bytes), &format!("{files}\n"))?;
    let mut took = Vec::new();
    // The first does not count: what was not on the disk yet is written, and the child is looked at.
    for round in 0..=plan.forks {
        progress.at(&format!("{}, shared", shape.label()), round, plan.forks);
        let (children, forked) = api.fork(&parent)?;
        for child in &children {
            if round == 0 {
                api.python(child, COUNT, &format!("{files} {bytes}\n"))?;
            }
            api.delete(child)?;
        }
        if round > 0 {
            took.push(forked);
        }
    }
    api.delete(&parent)?;
    let took = Summary::of(&took).ok_or_else(|| Failure::new("no samples"))?;
    Ok(SharedFork { of: shape, took })
}
