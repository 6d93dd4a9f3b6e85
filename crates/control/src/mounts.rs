//! Which folders of the workers' machine a job may see, by its request and by what an operator allows. Whether they are
//! there, and lead through links, is for the worker to find out.

use crate::{ControlError, Result};
use cofferdam_api::{MountRequest, SandboxRequest};
use cofferdam_core::{GuestPath, HostPath, InvalidValue, MountRoot};
use cofferdam_policy::Denial;
use std::collections::BTreeMap;

/// What an operator lets into sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountSettings {
    /// For jobs of all tenants.
    pub roots: Vec<MountRoot>,
    /// By the tenant's id: a folder that its jobs see without asking, and may not change.
    pub projects: BTreeMap<String, HostPath>,
}

/// More is a mistake.
const MOST: usize = 32;

/// What the sandbox itself is made of. Below /proc, /sys and /dev no path of a sandbox ever lies.
const RESERVED: [&str; 2] = ["/run", "/.cofferdam"];

/// The job's own room. Folders below may be mounted over.
const OWN: [&str; 2] = ["/workspace", "/tmp"];

/// Where a tenant's project is, if the job does not start elsewhere.
const PROJECT: &str = "/project";

/// The rule that a mount is denied by.
const RULE: &str = "mount_roots";

impl MountSettings {
    /// Every folder that any job may see part of.
    pub fn all(&self) -> Vec<MountRoot> {
        let projects = self.projects.values().map(|path| MountRoot { path: path.clone(), read_only: true });
        self.roots.iter().cloned().chain(projects).collect()
    }

    /// Checks where a sandbox starts and what it mounts, and fills in what it does not say.
    pub(crate) fn settle(&self, tenant: &str, sandbox: &mut SandboxRequest) -> Result<()> {
        let start = sandbox.workdir.as_deref().map(|text| GuestPath::parse("sandbox.workdir", text));
        let start = start.transpose()?;
        let project = self.projects.get(tenant);
        if sandbox.mounts.is_empty() {
            match (project, &start) {
                (Some(project), start) => {
                    let target = start.as_ref().map(GuestPath::as_str).filter(|path| !is_within(path, &OWN));
                    let target = target.unwrap_or(PROJECT).to_owned();
                    check_target("sandbox.workdir", &GuestPath::parse("sandbox.workdir", &target)?)?;
                    if start.is_none() {
                        sandbox.workdir = Some(target.clone());
                    }
                    let source = project.to_string();
                    sandbox.mounts.push(MountRequest { source, target, read_only: Some(true) });
                    return Ok(());
                }
                // Its own workspace is put there.
                (None, Some(start)) if !is_within(start.as_str(), &OWN) => {
                    return Ok(check_target("sandbox.workdir", start)?);
                }
                (None, _) => return Ok(()),
            }
        }
        if sandbox.mounts.len() > MOST {
            let count = sandbox.mounts.len().to_string();
            return Err(
                InvalidValue::new("sandbox.mounts", count, format!("there may be at most {MOST}")).into()
            );
        }
        let own = project.map(|path| MountRoot { path: path.clone(), read_only: true });
        let roots: Vec<&MountRoot> = self.roots.iter().chain(&own).collect();
        let mut targets: Vec<GuestPath> = Vec::new();
        for (i, mount) in sandbox.mounts.iter_mut().enumerate() {
            let field = |name: &str| format!("sandbox.mounts[{i}].{name}");
            let target = GuestPath::parse(&field("target"), &mount.target)?;
            check_target(&field("target"), &target)?;
            // One within the other would have the daemon make a folder in the host's.
            let meets = |other: &GuestPath| {
                is_within(target.as_str(), &[other.as_str()]) || is_within(other.as_str(), &[target.as_str()])
            };
            if targets.iter().any(meets) {
                let fix = "another mount has that target, or one within the other; give each its own";
                return Err(InvalidValue::new(&field("target"), &*mount.target, fix).into());
            }
            let source = HostPath::parse(&field("source"), &mount.source)?;
            mount.read_only = Some(check_source(i, mount, &source, &roots)?);
            (mount.source, mount.target) = (source.to_string(), target.to_string());
            targets.push(target);
        }
        Ok(())
    }
}

/// Whether nothing may be written, if the folder may be seen at all.
fn check_source(i: usize, mount: &MountRequest, source: &HostPath, roots: &[&MountRoot]) -> Result<bool> {
    let asked = mount.read_only.unwrap_or(true);
    let Some(root) = MountRoot::of(roots.iter().copied(), source) else {
        let why =
            format!("sandbox.mounts[{i}].source: {:?} lies in no folder that jobs may mount", mount.source);
        return Err(outside(why, "name a folder that the operator lets in (backends.mount_roots)"));
    };
    if root.read_only && !asked {
        let why = format!(
            "sandbox.mounts[{i}].read_only: false is not allowed for {:?}, which jobs may only read",
            mount.source
        );
        return Err(outside(
            why,
            "leave read_only out, or have the operator allow it (backends.mount_roots)",
        ));
    }
    Ok(asked)
}

/// A mount that the operator does not allow.
pub(crate) fn outside(why: String, change: &str) -> ControlError {
    ControlError::Denied(Denial { rule: RULE.to_owned(), why, change: change.to_owned() })
}

fn is_within(path: &str, folders: &[&str]) -> bool {
    let below = |folder: &&str| {
        path.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    folders.iter().any(below)
}

/// Whether something may be mounted there.
fn check_target(field: &str, target: &GuestPath) -> std::result::Result<(), InvalidValue> {
    let path = target.as_str();
    let fix = match path {
        "/" => "the image is there; mount at a folder below",
        path if OWN.contains(&path) => {
            "it is the job's own; mount at a folder below, such as /workspace/data"
        }
        path if is_within(path, &RESERVED) => "what the sandbox itself needs is there; mount elsewhere",
        _ => return Ok(()),
    };
    Err(InvalidValue::new(field, path, fix))
}

#[cfg(test)]
#[path = "mounts_tests.rs"]
mod tests;
