//! Jobs that run on an image, or on another backend than the native one: each in a sandbox made for it.

use cofferdam_api::{JobRequest, SandboxRequest};
use cofferdam_backend::{Backend, Image};
use cofferdam_control::RunEnd;
use cofferdam_core::{GuestPath, InvalidValue, MountRoot};
use cofferdam_images::{HOST, ImageRef, Lease, Profile, Store};
use cofferdam_worker::{JobSpec, open_mounts};
use std::sync::Arc;

/// The other backends, and the images.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    backends: Vec<Arc<dyn Backend>>,
    store: Option<Store>,
    /// What of this machine jobs may see.
    roots: Vec<MountRoot>,
}

/// Where a job is to run, if not on the machine's own programs behind the native backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// `None` for the native one.
    backend: Option<String>,
    image: Option<ImageRef>,
    /// Where it starts and what it mounts, where it says so.
    sandbox: Option<SandboxRequest>,
}

/// A job that is ready for its backend. The lease keeps the image's layers for as long.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) backend: Option<Arc<dyn Backend>>,
    _lease: Option<Lease>,
}

impl Place {
    /// What a request asks for; `None` where it is nothing special.
    pub(super) fn of(request: &JobRequest) -> Result<Option<Self>, InvalidValue> {
        let named = request.image.as_deref().filter(|image| *image != HOST);
        let image = match (&request.profile, named) {
            // A job that waits since before images were registered: its profile is the image of that name.
            (Some(profile), _) => {
                Some(ImageRef::parse("profile", &Profile::by_name("profile", profile)?.name)?)
            }
            (None, Some(image)) => Some(ImageRef::parse("image", image)?),
            (None, None) => None,
        };
        let backend = request.backend.as_deref().filter(|name| !matches!(*name, "native" | "direct"));
        let backend = backend.map(str::to_owned);
        let sandbox = request.sandbox.clone();
        let is_special = backend.is_some() || image.is_some() || sandbox.is_some();
        Ok(is_special.then_some(Self { backend, image, sandbox }))
    }
}

impl Elsewhere {
    pub(super) fn new(backends: Vec<Arc<dyn Backend>>, store: Store, roots: Vec<MountRoot>) -> Self {
        Self { backends, store: Some(store), roots }
    }

    pub(super) fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    pub(super) fn backends(&self) -> &[Arc<dyn Backend>] {
        &self.backends
    }

    /// Opens the image, and what is mounted, and puts them into the job.
    pub(super) async fn place(&self, place: Place, job: &mut JobSpec) -> Result<Placed, RunEnd> {
        let errored = |code: &'static str, message: String| RunEnd::Errored { code: code.into(), message };
        let backend = match &place.backend {
            None => None,
            Some(name) => match self.backends.iter().find(|backend| backend.name() == name) {
                Some(backend) => Some(Arc::clone(backend)),
                None => return Err(errored("unsupported", format!("this worker has no backend {name:?}"))),
            },
        };
        let starts_elsewhere = place.sandbox.as_ref().is_some_and(|sandbox| sandbox.workdir.is_some());
        if let Some(sandbox) = place.sandbox {
            let roots = self.roots.clone();
            let opened = tokio::task::spawn_blocking(move || open_mounts(&sandbox, &roots)).await;
            let opened = opened.map_err(|error| errored("sandbox_failed", error.to_string()))?;
            job.mounts = opened.map_err(|error| errored("mount_refused", error.to_string()))?;
        }
        let Some(wanted) = place.image else { return Ok(Placed { backend, _lease: None }) };
        let Some(store) = self.store.clone() else {
            return Err(errored("unsupported", "this worker has no image store".to_owned()));
        };
        let opened = tokio::task::spawn_blocking(move || store.open(&wanted)).await;
        let lease = match opened {
            Ok(Ok(lease)) => lease,
            Ok(Err(error)) => return Err(errored(error.code(), error.to_string())),
            Err(error) => return Err(errored("image_store_failed", error.to_string())),
        };
        let config = &lease.image.config.config;
        let own = std::mem::take(&mut job.env);
        job.env = config.variables().into_iter().chain(own).collect();
        if let (false, Some(path)) = (starts_elsewhere, config.workdir()) {
            job.workdir = GuestPath::parse("the image's WorkingDir", path)
                .map_err(|error| errored("invalid", error.to_string()))?;
        }
        job.image = match &backend {
            // By its digest: what the daemon itself has under that name is not what the operator put here.
            Some(backend) if matches!(backend.name(), "docker" | "podman") => {
                Image::Named(format!("cofferdam@{}", lease.image.id))
            }
            _ => Image::Layers(lease.layers.clone()),
        };
        Ok(Placed { backend, _lease: Some(lease) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(json: &str) -> Result<Option<Place>, String> {
        let request: JobRequest = serde_json::from_str(json).expect("a request");
        Place::of(&request).map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_says_where_it_is_to_run() {
        for plain in [r#"{}"#, r#"{"backend":"native"}"#, r#"{"backend":"direct","image":"host"}"#] {
            assert_eq!(place(plain), Ok(None), "{plain}");
        }
        let image = |name: &str| Some(ImageRef::parse("image", name).expect("a name"));
        let expected = Place { backend: None, image: image("app:1"), sandbox: None };
        assert_eq!(place(r#"{"image":"app:1"}"#), Ok(Some(expected)));
        let expected = Place { backend: Some("oci".to_owned()), image: image("python-tools"), sandbox: None };
        assert_eq!(place(r#"{"backend":"oci","profile":"python-tools"}"#), Ok(Some(expected)));
        assert!(place(r#"{"image":"../x"}"#).unwrap_err().contains("image"));
        assert!(place(r#"{"profile":"cobol-tools"}"#).unwrap_err().contains("cobol-tools"));
    }
}
