//! The contestants that run as whole commands, a file each, and who can take part on this machine.

mod bare;
mod bwrap;
mod cofferdam;
mod docker;
mod dockerd;
mod image;
mod oci_bundle;
mod podman;
mod runc;
mod runsc;
mod whole_command;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::args::Args;
use crate::contestant::{Contestant, Entrant, Pace};
use crate::failure::{Failure, Result};
use crate::in_process::{self, Host};
use crate::progress::Progress;
use crate::workload::Workload;
use crate::workplace::Workplace;
pub(crate) use bare::{Bare, become_runner_if_asked};
pub(crate) use docker::Docker;
pub(crate) use runc::Runc;
pub(crate) use runsc::Runsc;
pub(crate) use whole_command::{WholeCommand, quiet};

pub(crate) const NAMES: [&str; 10] =
    ["bare", "bwrap", "cofferdam", "cold", "warm", "ahead", "runc", "podman", "docker", "runsc"];

/// Those that run inside this process.
const IN_PROCESS: [&str; 3] = ["cold", "warm", "ahead"];

/// Without these a table says nothing: they cannot be absent.
pub(crate) const REQUIRED: [&str; 5] = ["bare", "cofferdam", "cold", "warm", "ahead"];

/// A program that runs workloads, ready to do so. Dropping it stops whatever it started.
pub(crate) trait Peer {
    fn pace(&self) -> Pace;
    fn command(&self, workload: Workload) -> Result<WholeCommand>;
}

/// Everyone who was asked to take part: those who can, and those who cannot with the reason.
pub(crate) struct Field {
    present: Vec<Present>,
    pub(crate) absent: Vec<Absent>,
}

struct Present {
    facts: Facts,
    contestants: Vec<(Workload, Box<dyn Contestant>)>,
    /// Kept for its daemon.
    _peer: Option<Box<dyn Peer>>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Facts {
    pub(crate) name: &'static str,
    pub(crate) version: Option<String>,
    pub(crate) pace: Pace,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Absent {
    pub(crate) name: &'static str,
    pub(crate) reason: String,
}

impl Field {
    /// Prepares each one and proves it by running every workload once, output and all.
    pub(crate) fn assemble(args: &Args, place: &Workplace, progress: &mut Progress) -> Result<Self> {
        let mut field = Self { present: Vec::new(), absent: Vec::new() };
        let mut host = None;
        for name in NAMES.into_iter().filter(|name| args.only.iter().any(|asked| asked == name)) {
            progress.show(&format!("preparing {name}"));
            let entered = match name {
                "bare" => enter_bare(place),
                _ if IN_PROCESS.contains(&name) => enter_in_process(name, &mut host, place),
                _ => enter(name, args, place),
            };
            match entered {
                Ok(present) => field.present.push(present),
                Err(failure) if REQUIRED.contains(&name) => {
                    return Err(Failure::new(format!("{name}: {failure}")));
                }
                Err(failure) => field.absent.push(Absent { name, reason: failure.to_string() }),
            }
        }
        Ok(field)
    }

    pub(crate) fn entrants(&self, workload: Workload) -> Vec<Entrant<'_>> {
        let all = self.present.iter().flat_map(|present| {
            present.contestants.iter().map(move |(of, contestant)| (present.facts.pace, *of, contestant))
        });
        all.filter(|(_, of, _)| *of == workload)
            .map(|(pace, _, contestant)| Entrant { contestant: Box::new(&**contestant), pace })
            .collect()
    }

    pub(crate) fn facts(&self) -> Vec<Facts> {
        self.present.iter().map(|present| present.facts.clone()).collect()
    }
}

fn enter_bare(place: &Workplace) -> Result<Present> {
    let mut contestants = Vec::new();
    for workload in Workload::ALL {
        let contestant = Bare::new(place.rootfs(), workload)?;
        contestants.push((workload, Box::new(contestant) as Box<dyn Contestant>));
    }
    let facts = Facts { name: "bare", version: None, pace: Pace::Fast };
    Ok(Present { facts, contestants, _peer: None })
}

fn enter(name: &'static str, args: &Args, place: &Workplace) -> Result<Present> {
    let peer = prepare(name, args, place)?;
    let mut commands = Vec::new();
    for workload in Workload::ALL {
        let command = peer.command(workload)?;
        command.check(workload)?;
        commands.push((workload, command));
    }
    let version = commands.first().and_then(|(_, command)| command.version());
    let facts = Facts { name, version, pace: peer.pace() };
    let boxed = |(workload, command)| (workload, Box::new(command) as Box<dyn Contestant>);
    let contestants = commands.into_iter().map(boxed).collect();
    Ok(Present { facts, contestants, _peer: Some(peer) })
}

/// All of them share one host, which is started for the first.
fn enter_in_process(name: &'static str, host: &mut Option<Arc<Host>>, place: &Workplace) -> Result<Present> {
    let host = match host {
        Some(host) => host,
        None => host.insert(in_process::host(&place.rootfs())?),
    };
    let mut contestants = Vec::new();
    for workload in Workload::ALL {
        contestants.extend(in_process::contestant(name, host, workload)?.map(|c| (workload, c)));
    }
    let version = Some(format!("cofferdam {}", env!("CARGO_PKG_VERSION")));
    Ok(Present { facts: Facts { name, version, pace: Pace::Fast }, contestants, _peer: None })
}

fn prepare(name: &'static str, args: &Args, place: &Workplace) -> Result<Box<dyn Peer>> {
    Ok(match name {
        "bwrap" => Box::new(bwrap::Bwrap::prepare(place)?),
        "cofferdam" => Box::new(cofferdam::Cofferdam::prepare(args.cofferdam.as_deref(), place)?),
        "runc" => Box::new(Runc::prepare(place)?),
        "podman" => Box::new(podman::Podman::prepare(place)?),
        "docker" => Box::new(Docker::prepare(place)?),
        "runsc" => Box::new(Runsc::prepare(place)?),
        _ => return Err(Failure::new("no such contestant")),
    })
}

/// The peer's program must be where Debian puts it: a stray copy earlier in PATH would be another contestant.
fn installed(name: &str, program: &Path, place: &Workplace) -> Result<()> {
    if program.is_file() {
        return Ok(());
    }
    let reason =
        place.absence(name).unwrap_or_else(|| "not installed (bench/setup.sh does it, as root)".into());
    Err(Failure::new(reason))
}
