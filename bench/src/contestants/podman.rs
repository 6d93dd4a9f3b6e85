//! Podman as root, with an image store and state of its own, so that the user's containers neither help nor
//! suffer.
//!
//! runc, since crun refuses a hybrid cgroup layout; ulimits, since the defaults ask for more than a container
//! without CAP_SYS_RESOURCE may have.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::whole_command::{WholeCommand, quiet};
use super::{Peer, Runc, image, installed};
use crate::contestant::Pace;
use crate::failure::Result;
use crate::workload::Workload;
use crate::workplace::{CGROUP, Workplace};

const PROGRAM: &str = "/usr/bin/podman";

pub(super) struct Podman {
    global: Vec<OsString>,
    image: String,
}

impl Podman {
    pub(super) fn prepare(place: &Workplace) -> Result<Self> {
        installed("podman", Path::new(PROGRAM), place)?;
        let peer = Self { global: global(place), image: place.image() };
        image::ensure(|| peer.engine(), &peer.image, &place.rootfs())?;
        Ok(peer)
    }

    fn engine(&self) -> Command {
        let mut command = quiet(PROGRAM);
        command.args(&self.global);
        command
    }
}

/// `skip_mount_home`: else the store stays bind-mounted on itself when Podman is done.
fn global(place: &Workplace) -> Vec<OsString> {
    let words: [(&str, OsString); 8] = [
        ("--root", place.cache("podman").into()),
        ("--runroot", place.run("podman").into()),
        ("--tmpdir", place.run("podman-tmp").into()),
        ("--runtime", Runc::PROGRAM.into()),
        ("--cgroup-manager", "cgroupfs".into()),
        ("--events-backend", "file".into()),
        ("--storage-driver", "overlay".into()),
        ("--storage-opt", "overlay.skip_mount_home=true".into()),
    ];
    words.into_iter().flat_map(|(flag, value)| [flag.into(), value]).collect()
}

impl Peer for Podman {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn command(&self, workload: Workload) -> Result<WholeCommand> {
        let command = WholeCommand::new("podman", PROGRAM, &self.global)
            .args(["run", "--rm", "--pull", "never", "--network", "none", "--read-only", "--cgroup-parent"])
            .args([format!("/{CGROUP}")])
            .args(["--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1000:1000"])
            .args([&self.image])
            .args(workload.argv());
        Ok(command)
    }
}
