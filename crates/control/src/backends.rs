//! What sandboxes may be made of, besides the walls and programs of the machine itself.

use crate::mounts::MountSettings;
use crate::{BackendHealth, Control, ControlError, Result};
use cofferdam_api::{BackendState, JobRequest};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// What an operator allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackendSettings {
    /// Whether jobs may run on images of the worker's image store. All tenants see all of them.
    pub images: bool,
    /// What of the workers' machine jobs may see.
    pub mounts: MountSettings,
}

/// The backend that is used unless another one is asked for.
pub(crate) const NATIVE: &str = "native";

/// Backends that a job may ask for; whether somebody has it is seen when a worker is looked for.
const KNOWN: [&str; 4] = [NATIVE, "oci", "docker", "podman"];

/// An older word for the native backend.
const DIRECT: &str = "direct";

const HOST: &str = "host";

impl BackendSettings {
    pub(crate) fn check(&self, request: &JobRequest) -> Result<()> {
        let unsupported =
            |field, why: &'static str| Err(ControlError::Unsupported { field, why: why.into() });
        let wanted = request.backend.as_deref();
        if wanted.is_some_and(|backend| backend != DIRECT && !KNOWN.contains(&backend)) {
            return unsupported("backend", "it is native, oci, docker or podman");
        }
        if name(request) != NATIVE && !self.images {
            return unsupported(
                "backend",
                "the only backend is native; an operator may turn others on (backends.enabled)",
            );
        }
        let has_image = request.image.as_deref().is_some_and(|image| image != HOST);
        if has_image && request.profile.is_some() {
            return unsupported("profile", "give an image or a profile, not both");
        }
        if has_image && !self.images {
            return unsupported(
                "image",
                "the only image is host; an operator may allow others (backends.images)",
            );
        }
        if request.profile.is_some() && !self.images {
            return unsupported(
                "profile",
                "profiles are images, which an operator may allow (backends.images)",
            );
        }
        if name(request) != NATIVE && !has_image && request.profile.is_none() {
            return unsupported("image", "this backend has no image host; name one, or a profile");
        }
        Ok(())
    }
}

/// The backend that a job is to run on.
pub(crate) fn name(request: &JobRequest) -> &str {
    request.backend.as_deref().filter(|backend| *backend != DIRECT).unwrap_or(NATIVE)
}

/// How often backends are asked how they are: some start a program to find out.
const ASKED_EVERY: Duration = Duration::from_secs(15);

/// A daemon that hangs must not hold up whoever else is watched.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// How the backends were when they were last asked.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<(Option<Instant>, Vec<BackendHealth>)>);

impl Seen {
    fn is_due(&self) -> bool {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.0.is_none_or(|at| at.elapsed() >= ASKED_EVERY)
    }

    /// Those that are known, when they do not answer. The native one is asked apart from these.
    fn silent(&self) -> Vec<BackendHealth> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        for backend in all.iter_mut().filter(|backend| backend.name != NATIVE) {
            backend.problem = Some("it does not answer".to_owned());
        }
        all
    }

    fn note(&self, all: Vec<BackendHealth>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for now in &all {
            let was = seen.1.iter().find(|was| was.name == now.name).and_then(|was| was.problem.as_ref());
            match (was, &now.problem) {
                (None, Some(why)) => tracing::error!(backend = now.name, "a backend is unhealthy: {why}"),
                (Some(_), None) => tracing::warn!(backend = now.name, "a backend is healthy again"),
                _ => {}
            }
        }
        *seen = (Some(Instant::now()), all);
    }
}

impl Control {
    /// Asks the backends of the worker in this process how they are, if that was not done just now.
    pub(crate) async fn look_at_backends(&self) {
        if let Some(worker) = self.parts.fleet.local().filter(|_| self.parts.backends.is_due()) {
            let all = timeout(ANSWERED_WITHIN, worker.backends()).await;
            self.parts.backends.note(all.unwrap_or_else(|_| self.parts.backends.silent()));
        }
    }

    /// How the backends were when they were last asked.
    pub fn backends(&self) -> Vec<BackendState> {
        let seen = self.parts.backends.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = |backend: &BackendHealth| BackendState {
            name: backend.name.clone(),
            state: if backend.problem.is_none() { "ready" } else { "unhealthy" }.to_owned(),
        };
        seen.1.iter().map(state).collect()
    }
}
