//! `[backends]`: what may make sandboxes, and of what.

use crate::config::Config;
use crate::config::kinds::{Maybe, Switch, Text, UpTo, Words};
use crate::config::mounts::{Projects, Roots};
use crate::config::setting::{Clash, Section, setting};
use cofferdam_control::MountSettings;
use cofferdam_core::HostPath;

/// Each takes megabytes, and all of a backend together have a bound of their own.
pub(crate) const MOST_WAITING: usize = 8;

/// What this process makes sandboxes with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackendsConfig {
    pub(crate) enabled: Vec<String>,
    pub(crate) oci_runtime: String,
    pub(crate) docker_socket: Option<String>,
    pub(crate) podman_socket: Option<String>,
    /// Of each kind.
    pub(crate) waiting: usize,
    pub(crate) mounts: MountSettings,
}

impl Default for BackendsConfig {
    fn default() -> Self {
        Self {
            enabled: vec!["native".to_owned()],
            oci_runtime: "runc".to_owned(),
            docker_socket: None,
            podman_socket: None,
            waiting: 2,
            mounts: MountSettings::default(),
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
        setting!(
            "waiting",
            UpTo<MOST_WAITING>,
            serve.backends.waiting,
            "containers of a kind that wait for the next job or session, once one was asked for; 0 for none"
        ),
        setting!(
            "mount_roots",
            Roots,
            serve.backends.mounts.roots,
            "folders of this machine that docker-sandbox jobs of all tenants may mount, and those below them; \
             read-only, unless `:rw` is behind the path"
        ),
        setting!(
            "project_roots",
            Projects,
            serve.backends.mounts.projects,
            "for each tenant, as `TENANT=PATH`, a folder of this machine that its docker-sandbox jobs see, read-only, \
             where they mount nothing"
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
    check_mounts(&config.serve.backends.mounts)
}

/// A tenant's project is nobody else's: no folder that others may mount, nor another tenant's project, has it within.
fn check_mounts(mounts: &MountSettings) -> Result<(), Clash> {
    let within = |inner: &HostPath, outer: &HostPath| inner.below(outer).is_some();
    for (tenant, project) in &mounts.projects {
        let clash =
            |fix: String| Err(Clash { key: "project_roots", value: format!("{tenant}={project}"), fix });
        if let Some(root) = mounts.roots.iter().find(|root| within(project, &root.path)) {
            return clash(format!("jobs of all tenants may mount {}, which it lies in", root.path));
        }
        let other = mounts.projects.iter().find(|(_, other)| *other != project && within(project, other));
        if let Some((other, _)) = other {
            return clash(format!("it lies in the project of {other}"));
        }
    }
    Ok(())
}
