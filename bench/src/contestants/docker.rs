//! Docker: the client's whole command against a daemon that the benchmark started for itself.

use std::path::Path;
use std::process::Command;

use super::dockerd::Dockerd;
use super::whole_command::{WholeCommand, quiet};
use super::{Peer, image, installed};
use crate::contestant::Pace;
use crate::failure::{Doing, Failure, Result};
use crate::workload::Workload;
use crate::workplace::{CGROUP, Workplace};

const CLIENT: &str = "/usr/bin/docker";
const DAEMON: &str = "/usr/sbin/dockerd";

pub(crate) struct Docker {
    daemon: Dockerd,
    image: String,
}

impl Docker {
    pub(crate) fn prepare(place: &Workplace) -> Result<Self> {
        installed("docker", Path::new(CLIENT), place)?;
        installed("docker", Path::new(DAEMON), place)?;
        let peer = Self { daemon: Dockerd::start(Path::new(DAEMON), place)?, image: place.image() };
        image::ensure(|| peer.engine(), &peer.image, &place.rootfs())?;
        Ok(peer)
    }

    pub(crate) fn host(&self) -> &str {
        self.daemon.host()
    }

    /// A container that waits for others to run something in it.
    pub(crate) fn container(&self) -> Result<Container<'_>> {
        let name = format!("{CGROUP}-exec-{}", std::process::id());
        let mut run = self.engine();
        run.args(["run", "--rm", "--detach", "--init", "--network", "none", "--read-only", "--name", &name]);
        let status =
            run.arg(&self.image).args(["/bin/sleep", "infinity"]).status().doing("starting docker")?;
        match status.success() {
            true => Ok(Container { docker: self, name }),
            false => Err(Failure::new(format!("docker run --detach ended with {status}"))),
        }
    }

    fn engine(&self) -> Command {
        let mut command = quiet(CLIENT);
        command.args(["--host", self.daemon.host()]);
        command
    }
}

/// Gone with the value.
pub(crate) struct Container<'d> {
    docker: &'d Docker,
    name: String,
}

impl Container<'_> {
    pub(crate) fn exec(&self, workload: Workload) -> WholeCommand {
        WholeCommand::new("docker exec", CLIENT, ["--host", self.docker.daemon.host(), "exec", &self.name])
            .args(workload.argv())
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        let _ = self.docker.engine().args(["rm", "--force", &self.name]).status();
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
