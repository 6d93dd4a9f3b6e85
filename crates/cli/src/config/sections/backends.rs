//! `[backends]`: what may make sandboxes, and of what.

use crate::config::Config;
use crate::config::kinds::{Maybe, Switch, Text, Words};
use crate::config::setting::{Clash, Section, setting};

/// What this process makes sandboxes with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackendsConfig {
    pub(crate) enabled: Vec<String>,
    pub(crate) oci_runtime: String,
    pub(crate) docker_socket: Option<String>,
    pub(crate) podman_socket: Option<String>,
}

impl Default for BackendsConfig {
    fn default() -> Self {
        Self {
            enabled: vec!["native".to_owned()],
            oci_runtime: "runc".to_owned(),
            docker_socket: None,
            podman_socket: None,
        }
    }
}

pub(crate) const SECTION: Section = Section {
    name: "backends",
    about: "What may make sandboxes, and of what: [backends.md](backends.md). Jobs ask by `backend` and `image`.",
    settings: &[
        setting!(
            "enabled",
            Words,
            serve.backends.enabled,
            "native, oci, docker, podman: those that jobs may ask for. `native` is always among them"
        ),
        setting!(
            "images",
            Switch,
            control.backends.images,
            "lets jobs of all tenants run on every image of the image store"
        ),
        setting!("oci_runtime", Text, serve.backends.oci_runtime, "the runtime of the oci backend"),
        setting!(
            "docker_socket",
            Maybe<Text>,
            serve.backends.docker_socket,
            "where dockerd listens; DOCKER_HOST or the usual place unless it is given"
        ),
        setting!(
            "podman_socket",
            Maybe<Text>,
            serve.backends.podman_socket,
            "where Podman listens; CONTAINER_HOST or the usual place unless it is given"
        ),
    ],
    check,
};

const KNOWN: [&str; 4] = ["native", "oci", "docker", "podman"];

/// Known words, the native backend among them; and others need images.
fn check(config: &Config) -> Result<(), Clash> {
    let enabled = &config.serve.backends.enabled;
    let clash = |fix: &str| Err(Clash { key: "enabled", value: enabled.join(","), fix: fix.to_owned() });
    if enabled.iter().any(|name| !KNOWN.contains(&name.as_str())) {
        return clash("it has native, oci, docker and podman");
    }
    if !enabled.iter().any(|name| name == "native") {
        return clash("native has to be among them: sessions and jobs that name none run on it");
    }
    if enabled.len() > 1 && !config.control.backends.images {
        return clash("other backends run on images alone: set backends.images to true");
    }
    Ok(())
}
