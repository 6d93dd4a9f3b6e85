//! Containers whose maker is gone. Each carries a label that says who made it.

use crate::container::{LABEL_OWNER, LABEL_SANDBOX};
use crate::daemon::failed;
use bollard::Docker;
use bollard::query_parameters::{ListContainersOptions, RemoveContainerOptions};
use cofferdam_backend::Result;
use std::collections::HashMap;
use std::fs;

/// This process, in words that no other process has: the boot, its number, and when it began.
pub(crate) fn owner() -> String {
    describe(std::process::id()).unwrap_or_else(|| "unknown".to_owned())
}

fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

fn describe(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, so fields are counted from behind it.
    let began = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_owned();
    Some(format!("{}:{pid}:{began}", boot()?))
}

/// Whether the maker is certainly gone. One of another boot or another machine is not ours to judge.
fn is_gone(owner: &str) -> bool {
    let mut parts = owner.splitn(3, ':');
    let (Some(of), Some(pid)) = (parts.next(), parts.next().and_then(|pid| pid.parse().ok())) else {
        return false;
    };
    boot().is_some_and(|boot| boot == of) && describe(pid).as_deref() != Some(owner)
}

/// Removes what processes of this machine left behind; answers the names.
pub(crate) async fn remove(docker: &Docker) -> Result<Vec<String>> {
    let filters = HashMap::from([("label".to_owned(), vec![LABEL_SANDBOX.to_owned()])]);
    let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
    let listed = docker.list_containers(Some(options)).await;
    let mut removed = Vec::new();
    for container in listed.map_err(|error| failed("listing containers", error))? {
        let owner = container.labels.as_ref().and_then(|labels| labels.get(LABEL_OWNER));
        let (Some(id), true) = (container.id, owner.is_some_and(|owner| is_gone(owner))) else { continue };
        let options = RemoveContainerOptions { force: true, v: true, ..Default::default() };
        // Another one may be doing the same.
        if docker.remove_container(&id, Some(options)).await.is_ok() {
            removed.extend(container.names.unwrap_or_default().into_iter().next());
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_makers_that_are_certainly_gone_are() {
        assert!(!is_gone(&owner()), "this process is there");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let of_child = describe(child.id()).unwrap();
        child.wait().unwrap();
        assert!(is_gone(&of_child), "{of_child}");
        for odd in ["", "unknown", "another-boot:1:2", ":::"] {
            assert!(!is_gone(odd), "{odd:?}");
        }
    }
}
