//! Where attacks are run: launchers with planted secrets, and sandboxes with controls left out.

use crate::inventory::{self, Inventory};
use crate::mode::{self, Mode};
use crate::plants::Plants;
use crate::probe::{self, Output};
use crate::service::server::Ground;
use crate::site::Site;
use crate::ward::Ward;
use crate::works::Works;
use cofferdam_backend::{
    Backend, BackendError, Image, OomScope, Process, ProcessSpec, Sandbox, SandboxSpec, Stdio,
};
use cofferdam_core::{Control, Cpus, Disk, GuestPath, IsolationMode, Limits, NetworkPolicy, SandboxId};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_linux::{ControlSet, Stage, socket};
use cofferdam_native::{LauncherHandle, NativeBackend};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Cursor};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio as HostStdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Small, so that going over it is quick and harmless where the limit is missing.
pub(crate) const MEMORY_BYTES: u64 = 128 << 20;
pub(crate) const DISK_BYTES: u64 = 16 << 20;
pub(crate) const PIDS: u32 = 64;

/// What a runtime may take to remove what is left of a container that has ended.
const RUNTIMES_WITHIN: Duration = Duration::from_secs(5);

/// Where the probe lies inside.
pub(crate) const PROBE: &str = "/workspace/probe";

/// What only the launcher can leave out.
const BY_LAUNCHER: ControlSet =
    ControlSet::of(&[Control::ClosedFds, Control::CleanEnvironment, Control::NetNamespace]);

/// A launcher and the backend that talks to it.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) backend: NativeBackend,
    pub(crate) child: Child,
}

impl Launched {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// A sandbox, and what the host knows of it.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) sandbox: Box<dyn Sandbox>,
    pub(crate) slot: u32,
    pub(crate) launcher: u32,
    /// Its ids, as it sees those of the namespace around it.
    pub(crate) parent_ids: Range<u32>,
    id: String,
}

impl Cell {
    /// The host's ids that are this sandbox's.
    pub(crate) fn ids(&self) -> Range<u32> {
        mode::host_ids(self.slot)
    }
}

#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) mode: Mode,
    pub(crate) quick: bool,
    /// Whether the positive controls are left untried.
    pub(crate) walls_only: bool,
    /// Whether attacks on the service are left out.
    pub(crate) without_service: bool,
    pub(crate) plants: Plants,
    pub(crate) probe: PathBuf,
    pub(crate) cofferdam: Option<PathBuf>,
    probe_bytes: Vec<u8>,
    launcher: PathBuf,
    launched: HashMap<(u64, bool), Launched>,
    /// Where sessions are attacked; started when the first is.
    ward: Option<Arc<Ward>>,
    /// Every slot that this run has used.
    pub(crate) slots: BTreeSet<u32>,
    /// The backend that is attacked, where that is not the native one.
    pub(crate) works: Option<Works>,
}

/// How a sandbox differs from the suite's usual one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish {
    pub(crate) leave_out: ControlSet,
    /// Strict although something is left out: it has to be refused.
    pub(crate) strict: bool,
    pub(crate) fail_at: Option<Stage>,
    pub(crate) image: Option<PathBuf>,
    pub(crate) cpus: Option<String>,
    /// A launcher that makes parts of sandboxes ahead.
    pub(crate) spares: bool,
    pub(crate) pausable: bool,
    pub(crate) terminal: bool,
    pub(crate) writable_root: bool,
}

impl Wish {
    pub(crate) fn without(controls: &[Control]) -> Self {
        Self { leave_out: ControlSet::of(controls), ..Self::default() }
    }
}

impl Lab {
    /// With a site, what is attacked is the backend that it was set up for.
    pub(crate) fn open(
        mode: Mode,
        probe: &Path,
        cofferdam: Option<PathBuf>,
        site: Option<Site>,
    ) -> Result<Self, String> {
        let works = match (&site, &cofferdam) {
            (Some(site), Some(cofferdam)) => Some(Works::open(site, cofferdam).map_err(|e| e.to_string())?),
            _ => None,
        };
        let plants = match site {
            Some(site) => site.plants,
            None => Plants::make(probe).map_err(|e| e.to_string())?,
        };
        Self::with(mode, probe, cofferdam, plants, works).map_err(|e| e.to_string())
    }

    fn with(
        mode: Mode,
        probe: &Path,
        cofferdam: Option<PathBuf>,
        plants: Plants,
        works: Option<Works>,
    ) -> io::Result<Self> {
        let launcher = std::env::current_exe()?.with_file_name("attack-launcher");
        for file in [&launcher, probe] {
            if !file.is_file() {
                let text = format!("{} is missing; scripts/attack.sh builds everything", file.display());
                return Err(io::Error::other(text));
            }
        }
        Ok(Self {
            mode,
            quick: false,
            walls_only: false,
            without_service: false,
            plants,
            probe: probe.to_owned(),
            cofferdam,
            probe_bytes: std::fs::read(probe)?,
            launcher,
            launched: HashMap::new(),
            ward: None,
            slots: BTreeSet::new(),
            works,
        })
    }

    /// Starts a launcher with what a careless server would pass on to it.
    pub(crate) fn launch(&self, leave_out: ControlSet, spares: bool) -> io::Result<Launched> {
        self.launch_as(leave_out, if spares { "spares" } else { "plain" })
    }

    /// The same, of a kind that the launcher's own documentation lists.
    pub(crate) fn launch_as(&self, leave_out: ControlSet, kind: &str) -> io::Result<Launched> {
        let (host, inner) = socket::pair()?;
        let mut command = Command::new(&self.probe);
        command.args(["--plant", &self.plants.name, &self.plants.nonce]).arg(&self.plants.host_file);
        command.arg(&self.launcher).arg(leave_out.0.to_string());
        command.arg(kind);
        // Found again where it must not be: in the command line and in the environment.
        command.arg(format!("--token={}", self.plants.nonce)).env("SERVER_TOKEN", &self.plants.nonce);
        let child = command.stdin(inner).stdout(HostStdio::null()).spawn()?;
        let backend = NativeBackend::new(LauncherHandle::new(host), default_runtime_folder())?;
        Ok(Launched { backend, child })
    }

    fn launched(&mut self, leave_out: ControlSet, spares: bool) -> io::Result<&Launched> {
        let by_launcher = ControlSet(leave_out.0 & BY_LAUNCHER.0);
        let key = (by_launcher.0, spares);
        if !self.launched.contains_key(&key) {
            let launched = self.launch(by_launcher, spares)?;
            self.launched.insert(key, launched);
        }
        Ok(&self.launched[&key])
    }

    /// The usual backend, for drivers that go through the worker.
    pub(crate) fn backend(&mut self) -> Result<&dyn Backend, BackendError> {
        if self.works.is_some() {
            let none = || BackendError::failed("choosing a backend", io::ErrorKind::NotFound.into());
            return self.works.as_ref().map(Works::backend).ok_or_else(none);
        }
        let launched = self.launched(ControlSet::EMPTY, false);
        launched
            .map(|l| &l.backend as &dyn Backend)
            .map_err(|e| BackendError::failed("starting a launcher", e))
    }

    pub(crate) fn launcher_pids(&self) -> Vec<u32> {
        self.launched.values().map(Launched::pid).collect()
    }

    /// What there is on the host because of sandboxes.
    pub(crate) fn inventory(&self) -> Inventory {
        match &self.works {
            Some(works) => works.inventory(),
            None => Inventory::take(&self.slots, &self.launcher_pids()),
        }
    }

    /// Takes inventories until nothing is left over, or says what is.
    pub(crate) async fn back_to(&self, before: &Inventory, within: Duration) -> Result<Duration, String> {
        // Runtimes take groups and folders away in steps of their own.
        let within = if self.works.is_some() { within.max(RUNTIMES_WITHIN) } else { within };
        let began = Instant::now();
        let mut more = self.inventory().since(before);
        loop {
            // What comes and goes meanwhile is somebody else's.
            let now = self.inventory().since(before);
            more.retain(|one| now.contains(one));
            if more.is_empty() {
                return Ok(began.elapsed());
            }
            if began.elapsed() > within {
                return Err(format!("left after {} ms: {}", within.as_millis(), more.join(", ")));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The host's processes that are in a sandbox.
    pub(crate) fn processes(&self, cell: &Cell) -> Result<BTreeSet<u32>, String> {
        match &self.works {
            Some(works) => works.processes(&cell.id),
            None => Ok(inventory::processes(&[cell.slot].into())),
        }
    }

    /// The folder of the group that limits the memory of a container, as its processes are in it.
    pub(crate) fn memory_group(&self, cell: &Cell) -> Result<String, String> {
        let inside = self.processes(cell)?;
        let pid = inside.first().ok_or("nothing runs in it")?;
        let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).map_err(|e| e.to_string())?;
        let of_memory = text.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
        match (of_memory, text.trim().strip_prefix("0::")) {
            (Some(path), _) => Ok(format!("/sys/fs/cgroup/memory{path}")),
            (None, Some(path)) => Ok(format!("/sys/fs/cgroup{path}")),
            (None, None) => Err(format!("no group of memory: {text}")),
        }
    }

    /// Makes a sandbox without the probe in it.
    pub(crate) async fn bare(&mut self, wish: &Wish) -> Result<Cell, BackendError> {
        if let Some(works) = &self.works {
            let spec = spec(&Wish { image: None, ..wish.clone() });
            let id = spec.id.to_string();
            let sandbox = works.create(wish, spec).await?;
            let slot = range_of(&*sandbox);
            return Ok(Cell { sandbox, slot, launcher: 0, parent_ids: mode::parent_ids(slot), id });
        }
        let launched = self.launched(wish.leave_out, wish.spares);
        let launched = launched.map_err(|e| BackendError::failed("starting a launcher", e))?;
        let cell = create(launched, wish).await?;
        self.slots.insert(cell.slot);
        Ok(cell)
    }

    /// Makes a sandbox with the probe in it.
    pub(crate) async fn cell(&mut self, wish: &Wish) -> Result<Cell, BackendError> {
        let cell = self.bare(wish).await?;
        self.bring_probe(&cell).await?;
        Ok(cell)
    }

    pub(crate) async fn bring_probe(&self, cell: &Cell) -> Result<(), BackendError> {
        let content = Box::new(Cursor::new(self.probe_bytes.clone()));
        cell.sandbox.write_file(&guest(PROBE), 0o755, content).await.map(drop)
    }

    /// The server whose sessions are attacked, or why there is none.
    pub(crate) fn ward(&mut self) -> Result<Arc<Ward>, String> {
        if let Some(ward) = &self.ward {
            return Ok(Arc::clone(ward));
        }
        let cofferdam = self.cofferdam.as_ref().ok_or("--cofferdam was not given")?;
        let ground = Ground::product(cofferdam, self.quick);
        let opened = Ward::open(&ground, &self.probe, &self.plants.nonce);
        let ward = Arc::new(opened.map_err(|stop| format!("{stop:?}"))?);
        self.ward = Some(Arc::clone(&ward));
        Ok(ward)
    }

    /// Runs one probe in a sandbox of its own, which is gone afterwards.
    pub(crate) async fn run(&mut self, wish: &Wish, argv: &[&str]) -> Result<Output, String> {
        let cell = self.cell(wish).await.map_err(|e| format!("create: {e}"))?;
        let output = self.run_in(&cell, argv).await;
        let destroyed = cell.sandbox.destroy().await;
        destroyed.map_err(|e| format!("destroy: {e}"))?;
        output
    }

    /// Runs one probe; `{names}` in its arguments are filled in.
    pub(crate) async fn run_in(&self, cell: &Cell, argv: &[&str]) -> Result<Output, String> {
        let process = self.start(cell, argv).await?;
        probe::finish(&*process, cell).await
    }

    pub(crate) async fn start(&self, cell: &Cell, argv: &[&str]) -> Result<Box<dyn Process>, String> {
        let mut words = vec![PROBE.to_owned()];
        for arg in argv {
            words.push(self.plants.fill(arg, Some(&cell.parent_ids)).map_err(|e| format!("{arg}: {e}"))?);
        }
        cell.sandbox.start(process(words)).await.map_err(|e| format!("start: {e}"))
    }
}

/// Makes a sandbox by a launcher; what is left out of it is left out of no other.
pub(crate) async fn create(launched: &Launched, wish: &Wish) -> Result<Cell, BackendError> {
    set_mutation(&launched.backend, (wish.leave_out, wish.fail_at));
    let spec = spec(wish);
    let id = spec.id.to_string();
    let made = launched.backend.create(spec).await;
    set_mutation(&launched.backend, (ControlSet::EMPTY, None));
    let sandbox = made?;
    let slot = slot_of(&*sandbox)?;
    Ok(Cell { sandbox, slot, launcher: launched.pid(), parent_ids: mode::parent_ids(slot), id })
}

fn set_mutation(backend: &NativeBackend, mutation: (ControlSet, Option<Stage>)) {
    *backend.mutation.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = mutation;
}

pub(crate) fn spec(wish: &Wish) -> SandboxSpec {
    let cpus = wish.cpus.as_deref().and_then(|text| Cpus::parse("cpus", text).ok()).unwrap_or(Cpus::ONE);
    let is_strict = wish.strict || wish.leave_out.is_empty();
    SandboxSpec {
        id: sandbox_id(),
        image: wish.image.clone().map_or(Image::Host, Image::Folder),
        limits: limits(cpus),
        network: NetworkPolicy::None,
        isolation: if is_strict { IsolationMode::Strict } else { IsolationMode::BestEffort },
        oom_scope: OomScope::Sandbox,
        writable_root: wish.writable_root,
        terminal: wish.terminal,
        pausable: wish.pausable,
        workspace_root: std::env::temp_dir(),
        mounts: Vec::new(),
        files: None,
    }
}

pub(crate) fn limits(cpus: Cpus) -> Limits {
    Limits {
        cpus,
        memory_bytes: MEMORY_BYTES,
        pids: PIDS,
        disk: Disk::Memory { bytes: DISK_BYTES },
        timeout: Duration::from_secs(120),
        ..Limits::default()
    }
}

fn sandbox_id() -> SandboxId {
    let mut random = [0; 10];
    // Names need not be secret here, only different.
    let _ = cofferdam_linux::sys::random(&mut random);
    SandboxId::from_random(random)
}

/// A process with pipes and nothing but `PATH` in its environment, in `/workspace`.
pub(crate) fn process(argv: Vec<String>) -> ProcessSpec {
    ProcessSpec {
        argv,
        env: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
        cwd: guest("/workspace"),
        make_cwd: false,
        stdio: Stdio::Pipes { stdin: false },
    }
}

/// A path that the suite itself has written down.
pub(crate) fn guest(path: &str) -> GuestPath {
    GuestPath::parse("path", path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The trait has no word for it, and only this suite needs it: it stands in the sandbox's description.
fn slot_of(sandbox: &dyn Sandbox) -> Result<u32, BackendError> {
    let text = format!("{sandbox:?}");
    let digits = text.split("slot: ").nth(1).map(|rest| rest.chars().take_while(char::is_ascii_digit));
    let number = digits.and_then(|digits| digits.collect::<String>().parse().ok());
    number
        .ok_or_else(|| BackendError::failed(format!("no slot in {text}"), io::ErrorKind::InvalidData.into()))
}

/// The number of a container's range of ids; 0 where it has none, which its map of ids then shows.
fn range_of(sandbox: &dyn Sandbox) -> u32 {
    let text = format!("{sandbox:?}");
    let digits =
        text.split("Slot { number: ").nth(1).map(|rest| rest.chars().take_while(char::is_ascii_digit));
    digits.and_then(|digits| digits.collect::<String>().parse().ok()).unwrap_or(0)
}
