//! Docker: the client's whole command against a daemon that the benchmark started for itself.

use std::path::Path;
use std::process::Command;

use super::dockerd::Dockerd;
use super::whole_command::{WholeCommand, quiet};
use super::{Peer, image, installed};
use crate::contestant::Pace;
use crate::failure::Result;
use crate::workload::Workload;
use crate::workplace::Workplace;

const CLIENT: &str = "/usr/bin/docker";
const DAEMON: &str = "/usr/sbin/dockerd";

pub(super) struct Docker {
    daemon: Dockerd,
    image: String,
}

impl Docker {
    pub(super) fn prepare(place: &Workplace) -> Result<Self> {
        installed("docker", Path::new(CLIENT), place)?;
        installed("docker", Path::new(DAEMON), place)?;
        let peer = Self { daemon: Dockerd::start(Path::new(DAEMON), place)?, image: place.image() };
        image::ensure(|| peer.engine(), &peer.image, &place.rootfs())?;
        Ok(peer)
    }

    fn engine(&self) -> Command {
        let mut command = quiet(CLIENT);
        command.args(["--host", self.daemon.host()]);
        command
    }
}

impl Peer for Docker {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn command(&self, workload: Workload) -> Result<WholeCommand> {
        let command = WholeCommand::new("docker", CLIENT, ["--host", self.daemon.host()])
            .args(["run", "--rm", "--pull", "never", "--network", "none", "--read-only"])
            .args([&self.image])
            .args(workload.argv());
        Ok(command)
    }
}
