//! Making sandboxes.

use crate::connection::{Connection, ReadyReceiver};
use crate::disk::{self, Disks, MadeDisk};
use crate::groups::Groups;
use crate::image::Images;
use crate::launcher::{CreatedReceiver, Launcher, LauncherHandle};
use crate::report;
use crate::runtime;
use crate::sandbox::{NativeSandbox, check_start};
use crate::share::SharedDisk;
use cofferdam_backend::{
    Backend, BackendError, Capabilities, Image, Process, ProcessSpec, Result, Sandbox, SandboxSpec,
    async_trait,
};
use cofferdam_core::{Disk, IsolationMode};
use cofferdam_linux::cgroup::{self, Layout};
use cofferdam_linux::launcher::CreateRequest;
use cofferdam_linux::slots::Slots;
use cofferdam_linux::{ControlSet, Stage, socket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Makes sandboxes on this machine.
#[derive(Debug)]
pub struct NativeBackend {
    launcher: Launcher,
    images: Images,
    disks: Disks,
    groups: OnceLock<Arc<Groups>>,
    slots: Mutex<Slots>,
    /// What the attack suite leaves out of the next sandboxes, and where it makes them fail.
    #[cfg(feature = "leave-out")]
    pub mutation: Mutex<(ControlSet, Option<Stage>)>,
}

impl NativeBackend {
    /// Connects to a launcher; needs a tokio runtime.
    pub fn new(launcher: LauncherHandle, runtime_folder: PathBuf) -> std::io::Result<Self> {
        runtime::prepare(&runtime_folder)?;
        let slots = Slots::open(&runtime_folder.join("slots"))?;
        Ok(Self {
            launcher: launcher.connect()?,
            disks: Disks::new(&runtime_folder),
            images: Images::new(runtime_folder),
            groups: OnceLock::new(),
            slots: Mutex::new(slots),
            #[cfg(feature = "leave-out")]
            mutation: Mutex::default(),
        })
    }

    /// Refuses a strict sandbox where nothing could limit it.
    fn check_limits(&self, spec: &SandboxSpec) -> Result<()> {
        match &self.groups().layout {
            Layout::None { reason } if spec.isolation == IsolationMode::Strict => {
                Err(report::no_limits(reason))
            }
            _ => Ok(()),
        }
    }

    fn groups(&self) -> Arc<Groups> {
        let open = || {
            let groups = Groups::open();
            let (folders, init) = groups.cgroups.folders();
            // A launcher that is gone says so at the next request.
            let _ = self.launcher.set_groups(&folders, init);
            groups.sweep(&lock(&self.slots));
            Arc::new(groups)
        };
        Arc::clone(self.groups.get_or_init(open))
    }

    #[cfg(feature = "leave-out")]
    fn mutation(&self) -> (ControlSet, Option<Stage>) {
        *self.mutation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(not(feature = "leave-out"))]
    fn mutation(&self) -> (ControlSet, Option<Stage>) {
        (ControlSet::EMPTY, None)
    }

    /// The disk of a sandbox that is to have one: only then is there anything to wait for.
    async fn make_disk(&self, spec: &SandboxSpec) -> Result<Option<MadeDisk>> {
        let shared = spec.files.as_deref().map(SharedDisk::of).transpose()?;
        if shared.is_some() && spec.writable_root {
            let what = "begin with the files of another sandbox and a writable root";
            return Err(BackendError::Unsupported { backend: "native", what });
        }
        let Disk::OnDisk { bytes } = spec.limits.disk else {
            let what = "begin with the files of another sandbox in memory";
            let refused = BackendError::Unsupported { backend: "native", what };
            return if shared.is_some() { Err(refused) } else { Ok(None) };
        };
        spec.limits.validate()?;
        let (disks, root) = (self.disks.clone(), spec.workspace_root.clone());
        let make = move || match shared {
            Some(shared) => disks.make_from(&shared.image, bytes, &root),
            None => disks.make(bytes, &root),
        };
        let made = tokio::task::spawn_blocking(make).await;
        let lost = |e| BackendError::failed("making a disk", std::io::Error::other(e));
        made.map_err(lost)?.map(Some)
    }

    fn request(&self, spec: &SandboxSpec, image: u32, slot: u32, disk: Option<&MadeDisk>) -> CreateRequest {
        let (leave_out, fail_at) = self.mutation();
        let required = match spec.isolation {
            IsolationMode::Strict => report::required(),
            IsolationMode::BestEffort => ControlSet::EMPTY,
        };
        CreateRequest {
            sandbox: self.launcher.next_sandbox(),
            slot,
            image,
            files_bytes: spec.limits.disk.bytes(),
            files_inodes: disk::max_inodes(spec.limits.disk),
            on_disk: disk.is_some(),
            disk_first_id: disk.and_then(|disk| disk.image.first_id),
            writable_root: spec.writable_root,
            terminal: spec.terminal,
            required,
            leave_out,
            fail_at,
            hostname: "sandbox".to_owned(),
        }
    }
}

#[async_trait]
impl Backend for NativeBackend {
    fn name(&self) -> &'static str {
        "native"
    }

    fn ends_with_host(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pause: true,
            terminal: true,
            listen: true,
            connect: true,
            disk: disk::obstacle().is_none(),
            writable_root: self.images.writable_obstacle(&Image::Host).is_none(),
            change_limits: true,
            watch: true,
            hand_over: true,
            mounts: false,
            // The files are those of a user inside, whose times nobody but root may set.
            file_times: cofferdam_linux::sys::geteuid() == 0,
            secrets: true,
        }
    }

    async fn health(&self) -> Result<()> {
        match &self.groups().layout {
            Layout::None { reason } => Err(report::no_limits(reason)),
            _ => self.launcher.check(),
        }
    }

    async fn create(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>> {
        let disk = self.make_disk(&spec).await?;
        let shared = spec.files.as_deref().map(SharedDisk::of).transpose()?;
        let sandbox = self.begin(spec, disk)?.finish().await?;
        if let Some(shared) = shared {
            shared.tidy(&sandbox).await?;
        }
        Ok(Box::new(sandbox))
    }

    async fn create_and_start(
        &self,
        spec: SandboxSpec,
        process: ProcessSpec,
    ) -> Result<(Box<dyn Sandbox>, Result<Box<dyn Process>>)> {
        check_start(&spec, &process)?;
        if spec.files.is_some() {
            let what = "begin with the files of another sandbox and a process at once";
            return Err(BackendError::Unsupported { backend: "native", what });
        }
        let disk = self.make_disk(&spec).await?;
        let pending = self.begin(spec, disk)?;
        // Init finds the request waiting when it is done with the set-up.
        let connection = &pending.sandbox.connection;
        let start = Connection::begin_start(connection, connection.first_turn()?, process)?;
        let sandbox: Box<dyn Sandbox> = Box::new(pending.finish().await?);
        let started = start.finish().await.map(|process| Box::new(process) as Box<dyn Process>);
        Ok((sandbox, started))
    }
}

/// A sandbox that the launcher was asked for.
struct Pending {
    sandbox: NativeSandbox,
    created: CreatedReceiver,
    ready: ReadyReceiver,
}

impl NativeBackend {
    /// Asks for a sandbox, and makes its cgroup while the launcher and init are at work on the rest.
    fn begin(&self, spec: SandboxSpec, disk: Option<MadeDisk>) -> Result<Pending> {
        spec.limits.validate()?;
        if spec.writable_root
            && let Some(what) = self.images.writable_obstacle(&spec.image)
        {
            return Err(BackendError::Unsupported { backend: "native", what });
        }
        if !spec.mounts.is_empty() {
            return Err(BackendError::Unsupported { backend: "native", what: "mount folders" });
        }
        let failed = |step: &'static str| move |e: std::io::Error| BackendError::failed(step, e);
        let image = self.images.open(&spec.image, &self.launcher)?;
        // On version 2 the launcher needs to know the inits' group; else it can wait until the launcher is at work.
        if !cgroup::is_v1() {
            self.check_limits(&spec)?;
        }
        let slot = lock(&self.slots).take().map_err(|e| failed("taking a range of user ids")(e.into()))?;
        let request = self.request(&spec, image, slot.number, disk.as_ref());
        let (number, leave_out, fail_at) = (request.sandbox, request.leave_out, request.fail_at);
        if fail_at == Some(Stage::Slot) {
            return Err(failed("taking a range of user ids")(std::io::ErrorKind::Other.into()));
        }
        let (host, inner) = socket::pair().map_err(|e| failed("making a socket")(e.into()))?;
        let created =
            self.launcher.create(request, &inner, slot.lock(), disk.as_ref().map(|disk| &disk.mount))?;
        let (connection, ready) = Connection::new(host).map_err(failed("connecting a socket"))?;
        let launcher = self.launcher.clone();
        let image = disk.map(|disk| disk.image);
        // What it began with is not held: it would keep what both have replaced by then.
        let spec = SandboxSpec { files: None, ..spec };
        let mut sandbox = NativeSandbox::new(spec, number, slot, connection, launcher, self.groups(), image);
        sandbox.make_group(leave_out, fail_at)?;
        Ok(Pending { sandbox, created, ready })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pending {
    async fn finish(self) -> Result<NativeSandbox> {
        let Self { mut sandbox, mut created, ready } = self;
        let layout = sandbox.groups.layout.clone();
        let layout = &layout;
        let answer = tokio::select! {
            biased;
            ready = ready => ready.ok(),
            failed = &mut created => match failed {
                Ok((stage, errno)) => return Err(report::create_error(stage, errno, layout)),
                Err(_) => return Err(sandbox.launcher.gone()),
            },
        };
        match answer {
            Some(Ok(_)) => {
                sandbox.is_made = true;
                Ok(sandbox)
            }
            Some(Err((stage, errno, missing))) => Err(report::ready_error(stage, errno, missing, layout)),
            // Init's socket closed without a word. If the launcher knows why, it says so before it answers this.
            None => {
                let _ = sandbox.launcher.destroy(sandbox.number)?.await;
                match created.try_recv() {
                    Ok((stage, errno)) => Err(report::create_error(stage, errno, layout)),
                    Err(_) => {
                        Err(BackendError::Gone { cause: "its init died while it was being made".to_owned() })
                    }
                }
            }
        }
    }
}
