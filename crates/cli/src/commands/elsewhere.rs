//! Jobs and sessions on an image, or on another backend than the native one. Each backend has a pool of its own.

use cofferdam_api::{JobRequest, SandboxRequest};
use cofferdam_backend::{Backend, Image};
use cofferdam_control::{RunEnd, SessionFailure};
use cofferdam_core::{GuestPath, InvalidValue, MountRoot};
use cofferdam_images::{HOST, ImageRef, Lease, Profile, Store};
use cofferdam_worker::{JobSpec, Pool, PoolSettings, SessionPlace, SessionSpec, open_mounts};
use std::sync::Arc;
use std::time::Duration;

/// Containers take tens of milliseconds of a processor to make, and megabytes while they wait: few of each kind, for as
/// long as they are asked for.
const CONTAINERS: PoolSettings =
    PoolSettings { per_kind: 0, total: 8, bytes: 256 << 20, idle: Duration::from_secs(60) };

/// The other backends, and the images.
#[derive(Debug)]
pub(super) struct Elsewhere {
    pools: Vec<Arc<Pool>>,
    store: Store,
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

/// Why it cannot be made there: the code is for programs, the message for people.
struct Refused(&'static str, String);

impl From<Refused> for RunEnd {
    fn from(Refused(code, message): Refused) -> Self {
        Self::Errored { code: code.into(), message }
    }
}

impl From<Refused> for SessionFailure {
    fn from(Refused(code, message): Refused) -> Self {
        Self::new(code, message)
    }
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
    /// `waiting` is how many containers of a kind may wait.
    pub(super) fn new(
        backends: Vec<Arc<dyn Backend>>,
        waiting: usize,
        store: Store,
        roots: Vec<MountRoot>,
    ) -> Self {
        let settings = PoolSettings { per_kind: waiting, ..CONTAINERS };
        let pool = |backend| Arc::new(Pool::new(backend, settings));
        Self { pools: backends.into_iter().map(pool).collect(), store, roots }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn pools(&self) -> &[Arc<Pool>] {
        &self.pools
    }

    /// The pool of a backend by its name; the native one's where none is named.
    fn pool(&self, name: Option<&str>, native: &Arc<Pool>) -> Result<Arc<Pool>, Refused> {
        let Some(name) = name else { return Ok(Arc::clone(native)) };
        match self.pools.iter().find(|pool| pool.backend().name() == name) {
            Some(pool) => Ok(Arc::clone(pool)),
            None => Err(Refused("unsupported", format!("this worker has no backend {name:?}"))),
        }
    }

    /// Opens an image for a backend.
    async fn open(&self, wanted: ImageRef, backend: &dyn Backend) -> Result<(Image, Lease), Refused> {
        let store = self.store.clone();
        let lease = match tokio::task::spawn_blocking(move || store.open(&wanted)).await {
            Ok(Ok(lease)) => lease,
            Ok(Err(error)) => return Err(Refused(error.code(), error.to_string())),
            Err(error) => return Err(Refused("image_store_failed", error.to_string())),
        };
        let image = match backend.name() {
            // By its digest: what the daemon itself has under that name is not what the operator put here.
            "docker" | "podman" => Image::Named(format!("cofferdam@{}", lease.image.id)),
            _ => Image::Layers(lease.layers.clone()),
        };
        Ok((image, lease))
    }

    /// Opens the image and puts it into the session. The workspace stays where its steps begin, whatever the image says.
    pub(super) async fn place_session(
        &self,
        place: Place,
        native: &Arc<Pool>,
        session: &mut SessionSpec,
    ) -> Result<(), SessionFailure> {
        let pool = self.pool(place.backend.as_deref(), native)?;
        let mut held = None;
        if let Some(wanted) = place.image {
            let (image, lease) = self.open(wanted, &**pool.backend()).await?;
            let own = std::mem::take(&mut session.env);
            session.env = lease.image.config.config.variables().into_iter().chain(own).collect();
            session.image = image;
            held = Some(Arc::new(lease) as _);
        }
        session.place = Some(SessionPlace { pool, held });
        Ok(())
    }

    /// Opens the image, and what is mounted, and puts them into the job. The pool is the one that it is to run in.
    pub(super) async fn place(
        &self,
        place: Place,
        native: &Arc<Pool>,
        job: &mut JobSpec,
    ) -> Result<Arc<Pool>, RunEnd> {
        let errored = |code: &'static str, message: String| RunEnd::Errored { code: code.into(), message };
        let pool = self.pool(place.backend.as_deref(), native)?;
        let starts_elsewhere = place.sandbox.as_ref().is_some_and(|sandbox| sandbox.workdir.is_some());
        if let Some(sandbox) = place.sandbox {
            let roots = self.roots.clone();
            let opened = tokio::task::spawn_blocking(move || open_mounts(&sandbox, &roots)).await;
            let opened = opened.map_err(|error| errored("sandbox_failed", error.to_string()))?;
            job.mounts = opened.map_err(|error| errored("mount_refused", error.to_string()))?;
        }
        let Some(wanted) = place.image else { return Ok(pool) };
        let (image, lease) = self.open(wanted, &**pool.backend()).await?;
        job.image = image;
        let config = &lease.image.config.config;
        let own = std::mem::take(&mut job.env);
        job.env = config.variables().into_iter().chain(own).collect();
        if let (false, Some(path)) = (starts_elsewhere, config.workdir()) {
            job.workdir = GuestPath::parse("the image's WorkingDir", path)
                .map_err(|error| errored("invalid", error.to_string()))?;
        }
        job.held = Some(Arc::new(lease));
        Ok(pool)
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
