//! Who puts up the walls: the native backend, or one that has it done by somebody else.

use cofferdam_docker::Engine;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Wall {
    #[serde(rename = "native")]
    Native,
    #[serde(rename = "oci/runc")]
    Runc,
    #[serde(rename = "oci/runsc")]
    Runsc,
    #[serde(rename = "docker")]
    Docker,
    #[serde(rename = "podman")]
    Podman,
}

impl Wall {
    pub(crate) const ALL: [Self; 5] = [Self::Native, Self::Runc, Self::Runsc, Self::Docker, Self::Podman];

    /// As the command names them: by `--backend` and `--runtime`.
    pub(crate) fn parse(backend: &str, runtime: Option<&str>) -> Result<Self, String> {
        match (backend, runtime) {
            ("native", None) => Ok(Self::Native),
            ("oci", None | Some("runc")) => Ok(Self::Runc),
            ("oci", Some("runsc")) => Ok(Self::Runsc),
            ("docker", None) => Ok(Self::Docker),
            ("podman", None) => Ok(Self::Podman),
            ("oci", Some(other)) => Err(format!("--runtime is runc or runsc, not {other}")),
            ("native" | "docker" | "podman", Some(_)) => {
                Err(format!("--backend {backend} takes no --runtime"))
            }
            _ => Err(format!("--backend is native, oci, docker or podman, not {backend}")),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Runc => "oci/runc",
            Self::Runsc => "oci/runsc",
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// What the path of every container's group has in it.
    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::Native => "/cofferdam/s",
            Self::Runc | Self::Runsc => "/oci-",
            Self::Docker => "/docker/",
            Self::Podman => "libpod",
        }
    }

    /// The daemon that it needs.
    pub(crate) fn engine(self) -> Option<Engine> {
        match self {
            Self::Docker => Some(Engine::Docker),
            Self::Podman => Some(Engine::Podman),
            Self::Native | Self::Runc | Self::Runsc => None,
        }
    }
}

impl std::fmt::Display for Wall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The groups of the threat list that are attacks by a job: these are made on every backend.
const GROUPS: [&str; 7] = ["escape-", "priv-", "leak-", "exhaust-", "outlive-", "files-", "net-"];

pub(crate) fn is_by_a_job(case: &str) -> bool {
    GROUPS.iter().any(|group| case.starts_with(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_named_as_the_command_names_it() {
        assert_eq!(Wall::parse("oci", None), Ok(Wall::Runc));
        assert_eq!(Wall::parse("oci", Some("runsc")), Ok(Wall::Runsc));
        assert_eq!(Wall::parse("podman", None), Ok(Wall::Podman));
        assert!(Wall::parse("oci", Some("crun")).is_err_and(|said| said.contains("crun")));
        assert!(Wall::parse("docker", Some("runsc")).is_err());
        assert!(Wall::parse("lxc", None).is_err_and(|said| said.contains("lxc")));
    }
}
