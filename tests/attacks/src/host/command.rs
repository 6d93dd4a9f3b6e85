//! The `cofferdam` command itself, from outside.

use super::leak::mapping;
use super::{Looks, broke, held};
use crate::inventory::{children, is_alive, marked};
use crate::lab::Lab;
use crate::mode;
use crate::plants::random_hex;
use crate::row::Seen;
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A start takes milliseconds. In an emulated machine that has something else to do, it has taken 5 seconds.
const START_MAX: Duration = Duration::from_secs(60);

fn without_command() -> Looks {
    let text = "--cofferdam was not given";
    (Seen::Without(text.to_owned()), Seen::Without(text.to_owned()))
}

/// Starts `cofferdam run` of a program that sleeps, and waits until that runs.
async fn sleeping(lab: &Lab, marker: &str, options: &[&str]) -> Result<Option<Child>, String> {
    let Some(cofferdam) = &lab.cofferdam else { return Ok(None) };
    let script = format!(": {marker}; while :; do sleep 1; done");
    let mut command = Command::new(cofferdam);
    command.arg("run").args(options).args(["--", "/bin/sh", "-c", &script]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| e.to_string())?;
    let began = Instant::now();
    // The command's own line has the marker, too, and so has its launcher until that has wiped its own: what is
    // waited for is the program, which is in a group.
    while marked(marker).len() < 2 || groups_of(marker).is_empty() {
        if began.elapsed() > START_MAX {
            return Err("cofferdam run does not start".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(Some(child))
}

/// kill -9 of the command: its sandbox is dead within two seconds, and nothing is left.
pub(crate) async fn kill(lab: &mut Lab) -> Result<Looks, String> {
    let marker = format!("killed-{}", random_hex(8).map_err(|e| e.to_string())?);
    let Some(mut child) = sleeping(lab, &marker, &[]).await? else { return Ok(without_command()) };
    let groups = groups_of(&marker);
    let launcher = children(child.id());
    child.kill().and_then(|()| child.wait()).map_err(|e| e.to_string())?;
    let began = Instant::now();
    let gone = || marked(&marker).is_empty() && !launcher.iter().any(|pid| is_alive(*pid));
    while !gone() && began.elapsed() < lab.mode.patience() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = began.elapsed();
    let left: Vec<&String> = groups.iter().filter(|group| std::path::Path::new(group).exists()).collect();
    let wall = match (gone(), left.as_slice()) {
        (false, _) => {
            broke(format!("still there after {} s: {:?}", lab.mode.patience().as_secs(), marked(&marker)))
        }
        (true, []) if !groups.is_empty() => {
            held(format!("gone in {} ms, its {} groups too", took.as_millis(), groups.len()))
        }
        (true, []) => Seen::Error("its groups were not found".to_owned()),
        (true, left) => broke(format!("left: {left:?}")),
    };
    Ok((wall, Seen::Without("leaving out dies_with_host is outlive-06-kill-launcher".to_owned())))
}

/// The folders of the groups that the marked processes are in.
fn groups_of(marker: &str) -> BTreeSet<String> {
    let mut groups = BTreeSet::new();
    for pid in marked(marker) {
        let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        for path in text.lines().filter_map(|line| line.splitn(3, ':').nth(2)) {
            let name = path.rsplit('/').next().unwrap_or("");
            if name.strip_prefix('s').is_some_and(|number| number.parse::<u32>().is_ok()) {
                let folders = mode::group_folders().into_iter().map(|folder| folder.join(name));
                groups
                    .extend(folders.filter(|group| group.exists()).map(|group| group.display().to_string()));
            }
        }
    }
    groups
}

/// Init is a copy of the command: what was given to that as arguments and environment must not be in it.
pub(crate) async fn arguments(lab: &mut Lab) -> Result<Looks, String> {
    let hex = || random_hex(12).map_err(|e| e.to_string());
    let (marker, secret) = (format!("arguments-{}", hex()?), hex()?);
    // A path of the host, which init has no use for; what the job itself is given, init must know.
    let folder = lab.plants.folder.join(&secret).display().to_string();
    let options = ["--artifacts-out", &folder];
    let Some(mut child) = sleeping(lab, &marker, &options).await? else { return Ok(without_command()) };
    let mut found = Vec::new();
    for launcher in children(child.id()) {
        for (who, pid) in
            children(launcher).into_iter().map(|pid| ("init", pid)).chain([("launcher", launcher)])
        {
            for place in ["[stack]", "[heap]"] {
                let bytes = mapping(pid, place).unwrap_or_default();
                if bytes.windows(secret.len()).any(|window| window == secret.as_bytes()) {
                    found.push(format!("{who}'s {place}"));
                }
            }
        }
    }
    child.kill().and_then(|()| child.wait()).map_err(|e| e.to_string())?;
    let wall = if found.is_empty() {
        held("the command's arguments are not in init's memory")
    } else {
        broke(format!("a secret of the command line is in {}", found.join(", ")))
    };
    Ok((wall, Seen::Without("leaving out clean_environment is leak-01-init".to_owned())))
}
