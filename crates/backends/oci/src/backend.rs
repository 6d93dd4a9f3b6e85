//! Makes containers with a runtime and hands them out as sandboxes.

use crate::layer::layer;
use crate::place::{self, Place, Root};
use crate::runtime::{self, Kind, Runtime};
use crate::sandbox::OciSandbox;
use crate::starting::{self, Starting, Streams};
use crate::{config, sandbox};
use cofferdam_backend::{
    Backend, BackendError, Capabilities, Image, OomScope, Result, Sandbox, SandboxSpec, async_trait,
};
use cofferdam_core::{Disk, IsolationMode};
use cofferdam_guest::UID;
use cofferdam_guest::agent::Options;
use cofferdam_guest::host::Contained;
use cofferdam_linux::cgroup::{self, Layout};
use cofferdam_linux::slots::{Slot, Slots};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

#[derive(Debug, Clone)]
pub struct OciOptions {
    /// The runtime by its name or path.
    pub runtime: String,
    /// The root folder of sandboxes that name none.
    pub rootfs: Option<PathBuf>,
    /// The program that becomes the helper: one of ours, linked statically, or with what it needs in the root.
    pub helper: PathBuf,
    /// The machine's folder for what lives as long as sandboxes; the native backend's, too.
    pub runtime_folder: PathBuf,
}

/// The helper reads the end of its stdin when this process dies; this is for a machine that hangs.
const LOST_AFTER: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct OciBackend {
    pub(crate) options: OciOptions,
    found: Runtime,
    slots: Mutex<Slots>,
    layout: Arc<Layout>,
    /// The flags that were seen to work.
    chosen: OnceCell<Runtime>,
    /// What the attack suite leaves out of the next sandboxes.
    #[cfg(feature = "leave-out")]
    pub mutation: Mutex<cofferdam_linux::ControlSet>,
}

/// Runs what blocks on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(
    step: &'static str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| BackendError::failed(step, error))
}

impl OciBackend {
    /// Looks for the runtime and removes what processes that are gone left behind.
    pub fn new(options: OciOptions) -> Result<Self> {
        let found = runtime::find(&options.runtime)?;
        if !rustix::process::geteuid().is_root() {
            return Err(BackendError::Refused {
                reason: "the oci backend mounts roots and makes cgroups, which takes root".to_owned(),
                fix: "run as root, or use --backend native, which does without".to_owned(),
            });
        }
        let made = prepare(&options.runtime_folder);
        let slots =
            made.map_err(|error| BackendError::failed("making the folders of the oci backend", error))?;
        let layout = Arc::new(groups_apart(cgroup::detect()));
        let backend = Self {
            options,
            found,
            slots: Mutex::new(slots),
            layout,
            chosen: OnceCell::new(),
            #[cfg(feature = "leave-out")]
            mutation: Mutex::default(),
        };
        backend.sweep();
        Ok(backend)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.options.runtime_folder.join("oci")
    }

    fn sweep(&self) {
        for (id, place) in place::left_behind(&self.folder().join("places")) {
            for runtime in self.found.candidates() {
                let _ = runtime.delete(&self.folder().join("state"), &container_name(&id));
            }
            let _ = place.remove();
        }
    }

    /// What the root is made of.
    fn root(&self, image: &Image) -> Result<Root> {
        let folder = match (image, &self.options.rootfs) {
            (Image::Layers(layers), _) => return Ok(Root::of_layers(layers.clone())),
            (Image::Folder(folder), _) | (Image::Host, Some(folder)) => folder,
            (Image::Named(name), _) => {
                return Err(BackendError::Refused {
                    reason: format!("the oci backend has no images of its own, such as {name:?}"),
                    fix: "take it into the image store: cofferdam image import".to_owned(),
                });
            }
            (Image::Host, None) => {
                return Err(BackendError::Refused {
                    reason: "neither an image nor a root folder was named".to_owned(),
                    fix: "name one: --image NAME, or --rootfs DIR".to_owned(),
                });
            }
        };
        match folder.is_dir() {
            true => Ok(Root::of_folder(folder.clone())),
            false => Err(BackendError::Refused {
                reason: format!("{} is no folder", folder.display()),
                fix: "name a folder that holds a root filesystem".to_owned(),
            }),
        }
    }

    /// A range of ids, where the runtime uses one.
    fn slot(&self) -> Result<Option<Slot>> {
        if self.found.kind == Kind::Gvisor {
            return Ok(None);
        }
        #[cfg(feature = "leave-out")]
        if crate::leave_out::has_no_range(self.mutation()) {
            return Ok(None);
        }
        let taken = self.slots.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map(Some).map_err(|errno| BackendError::failed("taking a range of user ids", errno.into()))
    }

    #[cfg(feature = "leave-out")]
    fn mutation(&self) -> cofferdam_linux::ControlSet {
        *self.mutation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it with the flags that work, which the first sandbox finds out.
    async fn begin(&self, spec: &SandboxSpec, slot: Option<&Slot>) -> Result<(Place, Runtime, Starting)> {
        if let Some(runtime) = self.chosen.get() {
            let (place, starting) = self.try_begin(spec, slot, runtime).await?;
            return Ok((place, runtime.clone(), starting));
        }
        let mut failed = None;
        for runtime in self.found.candidates() {
            match self.try_begin(spec, slot, &runtime).await {
                Ok((place, starting)) => {
                    let _ = self.chosen.set(runtime.clone());
                    return Ok((place, runtime, starting));
                }
                Err(error) => failed = Some(failed.unwrap_or(error)),
            }
        }
        Err(failed.unwrap_or_else(|| BackendError::failed("choosing flags", io::ErrorKind::NotFound.into())))
    }

    async fn try_begin(
        &self,
        spec: &SandboxSpec,
        slot: Option<&Slot>,
        runtime: &Runtime,
    ) -> Result<(Place, Starting)> {
        let root = self.root(&spec.image)?;
        let (folder, helper) = (self.folder(), self.options.helper.clone());
        let id = spec.id.to_string();
        let bytes = spec.limits.disk.bytes();
        let first_id = slot.map(Slot::first_id);
        let owner = first_id.unwrap_or(0) + UID;
        let make = {
            let folder = folder.clone();
            move || {
                let layer = layer(&folder.join("layers"), &root.folders, &helper)?;
                Place::make(&folder.join("places"), &id, &root, &layer, bytes, owner)
            }
        };
        let place = blocking("mounting the root and the room for files", make).await?;
        let begun = self.start(spec, &place, runtime, first_id).await;
        if let Err(error) = begun {
            let layout = Arc::clone(&self.layout);
            sandbox::take_away(runtime.clone(), folder, layout, spec.id.to_string(), place).await?;
            return Err(error);
        }
        begun.map(|starting| (place, starting))
    }

    async fn start(
        &self,
        spec: &SandboxSpec,
        place: &Place,
        runtime: &Runtime,
        first_id: Option<u32>,
    ) -> Result<Starting> {
        let helper = Options { oom_ends_all: spec.oom_scope == OomScope::Sandbox, lost_after: LOST_AFTER };
        let cgroup = cgroup_path(&self.layout, &spec.id.to_string());
        let json = config::config(runtime.kind, spec, place, &cgroup, first_id, helper.arguments());
        #[cfg(feature = "leave-out")]
        let (json, runtime) = crate::leave_out::changed(json, runtime, self.mutation());
        #[cfg(feature = "leave-out")]
        let runtime = &runtime;
        // The helper opens its streams again by name, as `/dev/stdout` is opened.
        let owner = first_id.filter(|_| runtime.kind == Kind::Namespaces).map(|first| first + UID);
        let (streams, theirs) = Streams::make(owner)?;
        let (state, bundle, runtime) = (self.folder().join("state"), place.folder.clone(), runtime.clone());
        let id = container_name(&spec.id.to_string());
        let run = move || {
            fs::write(bundle.join("config.json"), serde_json::to_vec(&json)?)?;
            runtime.start(&state, &bundle, &id, theirs)
        };
        starting::start(run, streams, LOST_AFTER).await
    }
}

/// Both of its folders, and those of sandboxes.
fn prepare(runtime_folder: &Path) -> io::Result<Slots> {
    match fs::DirBuilder::new().mode(0o755).create(runtime_folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // What lies in it ends up in every sandbox.
    let metadata = fs::symlink_metadata(runtime_folder)?;
    if !metadata.is_dir() || metadata.uid() != 0 || metadata.mode() & 0o022 != 0 {
        let problem = format!("{} is not a folder that only root can write to", runtime_folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    let folder = runtime_folder.join("oci");
    place::make_folder(&folder)?;
    for name in ["layers", "places", "state"] {
        place::make_folder(&folder.join(name))?;
    }
    Slots::open(&runtime_folder.join("slots"))
}

pub(crate) fn container_name(id: &str) -> String {
    format!("cofferdam-{id}")
}

/// The name of its group in the folder of all of ours.
pub(crate) fn group_name(id: &str) -> String {
    format!("oci-{id}")
}

/// The folder of our groups, in each hierarchy: beside that of the native backend, which allows none below it more
/// devices than its own sandboxes have.
const GROUPS: &str = "cofferdam-oci";

fn groups_apart(layout: Layout) -> Layout {
    match layout {
        Layout::V1 { mounts } => {
            let apart = |(name, mount): (String, PathBuf)| (name, mount.join(GROUPS));
            Layout::V1 { mounts: mounts.into_iter().map(apart).collect() }
        }
        Layout::V2 { base } => Layout::V2 { base: base.with_file_name(GROUPS) },
        none => none,
    }
}

/// The processes of a sandbox's group, as the host numbers them.
fn processes(layout: &Layout, id: &str) -> Vec<i32> {
    let folder = match layout {
        Layout::V1 { mounts } => {
            let memory = mounts.iter().find(|(name, _)| name == "memory");
            memory.map(|(_, mount)| mount.join("cofferdam").join(group_name(id)))
        }
        Layout::V2 { base } => Some(base.join(group_name(id))),
        Layout::None { .. } => None,
    };
    let list = folder.and_then(|folder| fs::read_to_string(folder.join("cgroup.procs")).ok());
    list.unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect()
}

/// Kills everything in a sandbox's group and waits until it is gone: runtimes wait in larger steps.
pub(crate) fn kill_group(layout: &Layout, id: &str) {
    let _ = layout.thaw_for_kill(&group_name(id));
    for _ in 0..KILL_TURNS {
        let processes = processes(layout, id);
        if processes.is_empty() {
            return;
        }
        for pid in processes.into_iter().filter_map(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        std::thread::sleep(KILL_TURN);
    }
}

const KILL_TURN: Duration = Duration::from_millis(5);

/// A second; what is left then is the runtime's to end.
const KILL_TURNS: u32 = 200;

/// The group of a sandbox as runtimes name it: from the top of each hierarchy.
fn cgroup_path(layout: &Layout, id: &str) -> String {
    match layout {
        Layout::V2 { base } => {
            let base = base.strip_prefix("/sys/fs/cgroup").unwrap_or(base);
            format!("/{}/{}", base.display().to_string().trim_matches('/'), group_name(id))
        }
        _ => format!("/{GROUPS}/cofferdam/{}", group_name(id)),
    }
}

#[async_trait]
impl Backend for OciBackend {
    fn name(&self) -> &'static str {
        "oci"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pause: true,
            terminal: true,
            listen: true,
            connect: true,
            disk: false,
            writable_root: false,
            change_limits: true,
            watch: true,
            hand_over: false,
            mounts: false,
            file_times: true,
            secrets: true,
        }
    }

    fn idle_bytes(&self) -> u64 {
        match self.found.kind {
            Kind::Namespaces => 8 << 20,
            // Its kernel and its file server are processes of their own.
            Kind::Gvisor => 32 << 20,
        }
    }

    async fn health(&self) -> Result<()> {
        let name = self.options.runtime.clone();
        let look = move || runtime::find(&name).map(drop).map_err(io::Error::other);
        blocking("asking the runtime", look).await
    }

    async fn create(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>> {
        spec.limits.validate()?;
        let unsupported = |what| BackendError::Unsupported { backend: self.name(), what };
        if matches!(spec.limits.disk, Disk::OnDisk { .. }) {
            return Err(unsupported(
                "keep files on disk: leave --disk out, or lower it to half of the memory",
            ));
        }
        if spec.writable_root {
            return Err(unsupported("make the root writable"));
        }
        if spec.files.is_some() {
            return Err(unsupported("begin with the files of another sandbox"));
        }
        if !spec.mounts.is_empty() {
            return Err(unsupported("mount folders"));
        }
        let slot = self.slot()?;
        let (place, runtime, Starting { connection, mut end }) = self.begin(&spec, slot.as_ref()).await?;
        let strict = spec.isolation == IsolationMode::Strict;
        let layout = Arc::clone(&self.layout);
        let sandbox =
            Contained::new(OciSandbox::new(self.folder(), runtime, spec, place, slot, layout, connection));
        if strict {
            // Seen while the runtime comes to its end, and judged below.
            let _ = sandbox.isolation().await;
        }
        if let Err(error) = end.wait().await {
            sandbox.destroy().await?;
            return Err(error);
        }
        if strict {
            sandbox.check_walls().await?;
        }
        Ok(Box::new(sandbox))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_beside_those_of_the_native_backend() {
        let base = PathBuf::from("/sys/fs/cgroup/user.slice/cofferdam");
        let layout = groups_apart(Layout::V2 { base });
        let Layout::V2 { base } = &layout else { panic!("{layout:?}") };
        assert_eq!(base, Path::new("/sys/fs/cgroup/user.slice/cofferdam-oci"));
        assert_eq!(cgroup_path(&layout, "sbx-a"), "/user.slice/cofferdam-oci/oci-sbx-a");
        let none = groups_apart(Layout::None { reason: "no groups".to_owned() });
        assert!(processes(&none, "sbx-a").is_empty());
    }
}
