//! The backends whose walls somebody else puts up: how they are made, what can be left out, and what they leave.

use crate::daemon;
use crate::inventory::Inventory;
use crate::lab::Wish;
use crate::mode;
use crate::site::{OPEN_HELPER, Site};
use crate::wall::Wall;
use cofferdam_backend::{Backend, BackendError, Sandbox, SandboxSpec};
use cofferdam_core::{Control, Cpus, Disk};
use cofferdam_docker::{DockerBackend, DockerOptions, LOST_AFTER};
use cofferdam_guest::maker;
use cofferdam_linux::ControlSet;
use cofferdam_linux::cgroup::Layout;
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_oci::{OciBackend, OciOptions};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The helper puts every process under the filter, so that without one it has to be another helper.
const BY_HELPER: ControlSet = ControlSet::of(&[Control::Seccomp, Control::InitSeccomp, Control::NoNewPrivs]);

#[derive(Debug)]
pub(crate) struct Works {
    usual: Made,
    /// The same with the helper that puts up no filter.
    open: Made,
    socket: Option<PathBuf>,
    /// What the roots of sandboxes are made of.
    pub(crate) root: PathBuf,
}

#[derive(Debug)]
enum Made {
    Oci(OciBackend),
    Docker(DockerBackend),
}

impl Made {
    fn backend(&self) -> &dyn Backend {
        match self {
            Self::Oci(backend) => backend,
            Self::Docker(backend) => backend,
        }
    }

    fn mutation(&self) -> &Mutex<ControlSet> {
        match self {
            Self::Oci(backend) => &backend.mutation,
            Self::Docker(backend) => &backend.mutation,
        }
    }

    fn leave_out(&self, controls: ControlSet) {
        *self.mutation().lock().unwrap_or_else(PoisonError::into_inner) = controls;
    }
}

impl Works {
    pub(crate) fn open(site: &Site, cofferdam: &Path) -> Result<Self, BackendError> {
        let own = std::env::current_exe().map_err(|e| BackendError::failed("finding this program", e))?;
        let open_helper = own.with_file_name(OPEN_HELPER);
        Ok(Self {
            usual: make(site, cofferdam)?,
            open: make(site, &open_helper)?,
            socket: site.socket.clone(),
            root: site.root.clone(),
        })
    }

    /// The backend with every wall.
    pub(crate) fn backend(&self) -> &dyn Backend {
        self.usual.backend()
    }

    pub(crate) async fn create(
        &self,
        wish: &Wish,
        spec: SandboxSpec,
    ) -> Result<Box<dyn Sandbox>, BackendError> {
        let made = if (wish.leave_out.0 & BY_HELPER.0) == 0 { &self.usual } else { &self.open };
        made.leave_out(wish.leave_out);
        let sandbox = made.backend().create(without_limits(spec, wish.leave_out)).await;
        made.leave_out(ControlSet::EMPTY);
        sandbox
    }

    /// What there is because of sandboxes of this process.
    pub(crate) fn inventory(&self) -> Inventory {
        let (groups, folders) = match &self.socket {
            Some(socket) => (containers(socket), BTreeSet::new()),
            None => (orphaned_groups(), own_places()),
        };
        let place = self.socket.as_deref().and_then(Path::parent).map(|folder| folder.display().to_string());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        // A daemon keeps the host's network at hand once somebody has asked for it.
        let is_kept = |line: &str| line.contains("/netns/");
        let is_own =
            |line: &&str| place.as_ref().is_some_and(|place| line.contains(place.as_str())) && !is_kept(line);
        Inventory {
            processes: BTreeSet::new(),
            groups,
            mounts: mounts.lines().filter(is_own).count(),
            descriptors: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            launcher_descriptors: 0,
            launcher_children: 0,
            folders,
        }
    }

    /// The host's processes of a sandbox, by what its group is called.
    pub(crate) fn processes(&self, id: &str) -> Result<BTreeSet<u32>, String> {
        let group = match &self.socket {
            None => format!("/oci-{id}"),
            Some(socket) => {
                let path = format!("/containers/cofferdam-{id}/json");
                let answer = daemon::request(socket, "GET", &path, None).map_err(|e| e.to_string())?;
                let answer: serde_json::Value = serde_json::from_str(&answer).map_err(|e| e.to_string())?;
                answer["Id"].as_str().ok_or_else(|| format!("no container: {answer}"))?.to_owned()
            }
        };
        let is_in = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| text.contains(&group))
        };
        Ok(crate::inventory::all_processes().filter(is_in).collect())
    }
}

fn make(site: &Site, helper: &Path) -> Result<Made, BackendError> {
    let helper = helper.to_owned();
    let Some(engine) = site.wall.engine() else {
        let runtime = if site.wall == Wall::Runsc { "runsc" } else { "runc" }.to_owned();
        let rootfs = Some(site.root.clone());
        let options = OciOptions { runtime, rootfs, helper, runtime_folder: default_runtime_folder() };
        return OciBackend::new(options).map(Made::Oci);
    };
    let socket = site.socket.as_deref().unwrap_or(Path::new("/nowhere"));
    let options = DockerOptions {
        engine,
        host: format!("unix://{}", socket.display()),
        image: Some(daemon::IMAGE.to_owned()),
        store: None,
        folder: socket.with_file_name("files"),
        runtime: None,
        helper,
        lost_after: LOST_AFTER,
    };
    DockerBackend::new(options).map(Made::Docker)
}

/// Limits are the caller's to ask for: a high one is none.
fn without_limits(mut spec: SandboxSpec, without: ControlSet) -> SandboxSpec {
    let limits = &mut spec.limits;
    if without.has(Control::MemoryLimit) {
        limits.memory_bytes = 1 << 30;
    }
    if without.has(Control::PidsLimit) {
        limits.pids = 4000;
    }
    if without.has(Control::CpuLimit) {
        limits.cpus = Cpus::parse("cpus", "2").unwrap_or(limits.cpus);
    }
    if without.has(Control::DiskLimit) || without.has(Control::InodeLimit) {
        limits.memory_bytes = 1 << 30;
        limits.disk = Disk::Memory { bytes: 256 << 20 };
    }
    spec
}

/// Every container of the daemon, which is the suite's own.
fn containers(socket: &Path) -> BTreeSet<String> {
    let answer = daemon::request(socket, "GET", "/containers/json?all=true", None).unwrap_or_default();
    match serde_json::from_str::<Vec<serde_json::Value>>(&answer) {
        Ok(list) => list.iter().map(|container| format!("container {}", container["Names"])).collect(),
        Err(_) => BTreeSet::from([format!("a daemon that answers {answer:?}")]),
    }
}

/// Folders of sandboxes that this process has made.
fn own_places() -> BTreeSet<String> {
    let places = fs::read_dir(default_runtime_folder().join("oci/places")).into_iter().flatten().flatten();
    let is_own =
        |path: &PathBuf| fs::read_to_string(path.join("owner")).is_ok_and(|owner| owner == maker::own());
    places.map(|place| place.path()).filter(is_own).map(|path| path.display().to_string()).collect()
}

/// Groups of sandboxes that have no folder any more; others on this machine may have theirs elsewhere.
fn orphaned_groups() -> BTreeSet<String> {
    let folders: Vec<PathBuf> = match mode::layout() {
        Layout::V1 { mounts } => {
            mounts.iter().map(|(_, mount)| mount.join("cofferdam-oci/cofferdam")).collect()
        }
        Layout::V2 { base } => vec![base.with_file_name("cofferdam-oci")],
        Layout::None { .. } => Vec::new(),
    };
    let groups = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let has_place = |id: &str| {
        let runs = fs::read_dir("/run").into_iter().flatten().flatten();
        runs.map(|entry| entry.path()).any(|run| {
            let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("cofferdam") && run.join("oci/places").join(id).exists()
        })
    };
    let is_orphan = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.strip_prefix("oci-").is_some_and(|id| !has_place(id)) && path.exists()
    };
    groups.map(|group| group.path()).filter(is_orphan).map(|path| path.display().to_string()).collect()
}
