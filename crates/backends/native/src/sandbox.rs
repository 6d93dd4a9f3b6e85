//! One sandbox, as the host holds it: a socket to its init, and its group on the host.

use crate::connection::{Connection, NoStarts, gone, too_large};
use crate::disk::DiskImage;
use crate::groups::Groups;
use crate::hand_over;
use crate::launcher::Launcher;
use crate::listing::list;
use crate::ports::{self, V4, V6};
use crate::pour::{Place, pour};
use crate::process::NativeProcess;
use crate::report;
use crate::watch::NativeWatcher;
use cofferdam_backend::{
    BackendError, Entry, EntryKind, FileStat, Listener, OomScope, OpenFile, Process, ProcessId, ProcessSpec,
    Reader, Result, Sandbox, SandboxSpec, SharedFiles, Stats, Stdio, Stream, Watcher, async_trait,
};
use cofferdam_core::{Control, Disk, GuestPath, IsolationMode, IsolationReport, Limits, ResourceUsage};
use cofferdam_linux::ControlSet;
use cofferdam_linux::Stage;
use cofferdam_linux::cgroup::{CgroupLimits, Entry as GroupEntry};
use cofferdam_linux::protocol::{self, GroupKind};
use cofferdam_linux::slots::Slot;
use std::io::{self, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// Held while a file of a sandbox is changed.
pub(crate) type Changing = OwnedRwLockReadGuard<()>;

/// A sandbox of this machine.
pub(crate) struct NativeSandbox {
    pub(crate) spec: SandboxSpec,
    pub(crate) number: u32,
    slot: Slot,
    pub(crate) connection: Arc<Connection>,
    pub(crate) launcher: Launcher,
    pub(crate) groups: Arc<Groups>,
    /// What the launcher proved and what its group enforces; init adds to it.
    pub(crate) proven: ControlSet,
    is_destroyed: tokio::sync::Mutex<bool>,
    /// While it is paused, or on the way there.
    pub(crate) paused: tokio::sync::Mutex<Option<NoStarts>>,
    /// Whoever changes a file for the host has this; whoever has all of it knows that nobody does.
    pub(crate) changes: Arc<RwLock<()>>,
    /// Its disk, until it is destroyed.
    disk: Mutex<Option<Arc<DiskImage>>>,
    /// The limits in force; none while they are not known, after a change that failed half-way.
    limits: Mutex<Option<CgroupLimits>>,
    /// Whether the launcher looks after it, and so removes its group.
    pub(crate) is_made: bool,
}

/// Refuses what this sandbox cannot start, before init hears of it.
pub(crate) fn check_start(sandbox: &SandboxSpec, process: &ProcessSpec) -> Result<()> {
    if matches!(process.stdio, Stdio::Terminal { .. }) && !sandbox.terminal {
        let what = "add a terminal to a sandbox that was made without";
        return Err(BackendError::Unsupported { backend: "native", what });
    }
    if process.argv.first().is_none_or(String::is_empty) {
        return Err(cofferdam_core::InvalidValue::new("command", "", "name a program to run").into());
    }
    Ok(())
}

impl std::fmt::Debug for NativeSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeSandbox")
            .field("id", &self.spec.id)
            .field("slot", &self.slot.number)
            .finish_non_exhaustive()
    }
}

impl Drop for NativeSandbox {
    fn drop(&mut self) {
        if !*self.is_destroyed.get_mut() {
            self.launcher.destroy_quietly(self.number);
        }
        if !self.is_made {
            let _ = self.groups.cgroups.remove(&self.group());
        }
    }
}

/// Flags of a file that is opened for the host.
pub(crate) const READ: i32 = libc::O_RDONLY;
pub(crate) const WRITE: i32 = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;

/// Has init open a path.
pub(crate) async fn open(
    connection: &Connection,
    path: &GuestPath,
    flags: i32,
    mode: u32,
    make_parents: bool,
) -> Result<OwnedFd> {
    let request = connection.next();
    let mut buffer = vec![0; path.as_str().len() + 64];
    let message = protocol::encode_open(&mut buffer, request, flags, mode, make_parents, path.relative());
    let (errno, fd) = connection.ask(request, message.map_err(too_large)?).await?;
    fd.filter(|_| errno == 0).ok_or_else(|| report::file_error(path, errno))
}

impl NativeSandbox {
    pub(crate) fn new(
        spec: SandboxSpec,
        number: u32,
        slot: Slot,
        connection: Arc<Connection>,
        launcher: Launcher,
        groups: Arc<Groups>,
        disk: Option<DiskImage>,
    ) -> Self {
        let own = slot.first_id();
        let disk = disk.map(|image| Arc::new(image.belongs_to(own)));
        Self {
            spec,
            number,
            slot,
            connection,
            launcher,
            groups,
            proven: ControlSet::EMPTY,
            is_destroyed: tokio::sync::Mutex::new(false),
            paused: tokio::sync::Mutex::default(),
            changes: Arc::default(),
            disk: Mutex::new(disk),
            limits: Mutex::new(None),
            is_made: false,
        }
    }

    /// Makes the group that its processes join, and hands it to init.
    pub(crate) fn make_group(&mut self, leave_out: ControlSet, fail_at: Option<Stage>) -> Result<()> {
        let limits = CgroupLimits { fail_at, ..self.cgroup_limits(&self.spec.limits, leave_out) };
        let made = self.groups.cgroups.create(&self.group(), &limits);
        let group =
            made.map_err(|(stage, errno)| report::create_error(stage, errno.0, &self.groups.layout))?;
        self.proven = group.proven;
        self.limits = Mutex::new(Some(limits));
        if self.spec.isolation == IsolationMode::Strict {
            report::check_group_limits(group.proven)?;
        }
        let kind = match &group.entry {
            GroupEntry::Tasks(_) => GroupKind::Tasks,
            GroupEntry::Folder(_) => GroupKind::Folder,
            GroupEntry::Nowhere => return Ok(()),
        };
        let mut fds = group.entry.raw();
        fds.extend(group.oom.as_ref().map(AsRawFd::as_raw_fd));
        let mut buffer = [0; 16];
        let message = protocol::encode_group(&mut buffer, kind, group.oom.is_some()).map_err(too_large)?;
        self.connection.send(message, &fds)
    }

    fn cgroup_limits(&self, limits: &Limits, leave_out: ControlSet) -> CgroupLimits {
        CgroupLimits {
            memory_bytes: limits.memory_bytes,
            pids: limits.pids,
            cpu_millis: limits.cpus.millis(),
            oom_group: self.spec.oom_scope == OomScope::Sandbox,
            files_on_disk: matches!(limits.disk, Disk::OnDisk { .. }),
            pausable: self.spec.pausable,
            leave_out,
            fail_at: None,
        }
    }

    pub(crate) fn disk(&self) -> Option<Arc<DiskImage>> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// For as long as something is changed in it.
    async fn changing(&self) -> Changing {
        Arc::clone(&self.changes).read_owned().await
    }

    fn group(&self) -> String {
        self.slot.name()
    }

    async fn open(&self, path: &GuestPath, flags: i32, mode: u32, make_parents: bool) -> Result<OwnedFd> {
        open(&self.connection, path, flags, mode, make_parents).await
    }

    /// Opens a path and refuses anything but a plain file: what waits behind a FIFO or a device is the guest's.
    async fn open_plain(
        &self,
        path: &GuestPath,
        flags: i32,
        mode: u32,
        make_parents: bool,
    ) -> Result<std::fs::File> {
        let file = std::fs::File::from(self.open(path, flags, mode, make_parents).await?);
        let is_plain = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_plain { Ok(file) } else { Err(report::not_plain(path)) }
    }

    /// Where its files are.
    fn place(&self) -> Place {
        match self.spec.limits.disk {
            Disk::Memory { .. } => Place::Memory,
            Disk::OnDisk { .. } => Place::Disk,
        }
    }

    /// By init: without root, the host may not change what is the sandbox user's.
    async fn ask_set_mode(&self, path: &GuestPath, mode: u32) -> Result<()> {
        let request = self.connection.next();
        let mut buffer = vec![0; path.as_str().len() + 64];
        let message = protocol::encode_set_mode(&mut buffer, request, mode, path.relative());
        match self.connection.ask(request, message.map_err(too_large)?).await? {
            (0, _) => Ok(()),
            (errno, _) => Err(report::file_error(path, errno)),
        }
    }

    async fn socket(&self, family: i32) -> Result<OwnedFd> {
        let request = self.connection.next();
        let mut buffer = [0; 64];
        let message = protocol::encode_socket(&mut buffer, request, family).map_err(too_large)?;
        let (errno, fd) = self.connection.ask(request, message).await?;
        fd.filter(|_| errno == 0)
            .ok_or_else(|| BackendError::failed("making a socket", io::Error::from_raw_os_error(errno)))
    }
}

#[async_trait]
impl Sandbox for NativeSandbox {
    async fn gone(&self) -> String {
        self.connection.is_over().await;
        match gone() {
            BackendError::Gone { cause } => cause,
            other => other.to_string(),
        }
    }

    async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>> {
        check_start(&self.spec, &spec)?;
        let turn = self.connection.start_turn().await;
        let pending = Connection::begin_start(&self.connection, turn, spec)?;
        Ok(Box::new(pending.finish().await?))
    }

    fn attach(&self, id: ProcessId) -> Result<Box<dyn Process>> {
        let waiting = self.connection.waiting();
        if waiting.is_closed {
            return Err(gone());
        }
        match waiting.processes.get(&id.0).cloned() {
            Some(state) => Ok(Box::new(NativeProcess { state, connection: Arc::clone(&self.connection) })),
            None => Err(BackendError::NotFound { path: format!("process {}", id.0) }),
        }
    }

    async fn read_file(&self, path: &GuestPath) -> Result<Reader> {
        let file = self.open_plain(path, READ, 0, false).await?;
        Ok(Box::new(tokio::fs::File::from_std(file)))
    }

    async fn read_file_from(&self, path: &GuestPath, first: u64) -> Result<Reader> {
        let mut file = self.open_plain(path, READ, 0, false).await?;
        let sought = file.seek(io::SeekFrom::Start(first));
        sought.map_err(|e| BackendError::failed(format!("reading {path}"), e))?;
        Ok(Box::new(tokio::fs::File::from_std(file)))
    }

    async fn write_file(&self, path: &GuestPath, mode: u32, content: Reader) -> Result<u64> {
        let changing = self.changing().await;
        let file = self.open_plain(path, WRITE, mode & 0o777, true).await?;
        let poured = pour(content, file, self.place(), changing).await;
        let (written, _) = poured.map_err(|e| BackendError::failed(format!("writing {path}"), e))?;
        Ok(written)
    }

    async fn make_folder(&self, path: &GuestPath) -> Result<()> {
        let _changing = self.changing().await;
        let request = self.connection.next();
        let mut buffer = vec![0; path.as_str().len() + 64];
        let message =
            protocol::encode_make_folder(&mut buffer, request, path.relative()).map_err(too_large)?;
        match self.connection.ask(request, message).await? {
            (0, _) => Ok(()),
            (errno, _) => Err(report::file_error(path, errno)),
        }
    }

    async fn list_files(&self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>> {
        let listed = list(&self.connection, path, limit, false).await?;
        Ok(listed.into_iter().map(|listed| listed.entry).collect())
    }

    async fn stat(&self, path: &GuestPath) -> Result<FileStat> {
        let file = std::fs::File::from(self.open(path, libc::O_PATH, 0, false).await?);
        let metadata = file.metadata().map_err(|e| BackendError::failed(format!("looking at {path}"), e))?;
        Ok(stat_of(&metadata))
    }

    async fn open_file(&self, path: &GuestPath) -> Result<(FileStat, Reader)> {
        let file = self.open_plain(path, READ, 0, false).await?;
        let metadata = file.metadata().map_err(|e| BackendError::failed(format!("looking at {path}"), e))?;
        Ok((stat_of(&metadata), Box::new(tokio::fs::File::from_std(file))))
    }

    async fn open_files(&self, folder: &GuestPath, names: Vec<String>) -> Result<Vec<OpenFile>> {
        hand_over::open_files(&self.connection, folder, names).await
    }

    async fn take_files(&self, folder: &GuestPath, files: Vec<OpenFile>) -> Result<u64> {
        hand_over::take_files(&self.connection, folder, files, self.changing().await).await
    }

    async fn share_files(&self) -> Result<SharedFiles> {
        self.share().await
    }

    async fn restore_file(
        &self,
        path: &GuestPath,
        mode: u32,
        modified_ms: i64,
        content: Reader,
    ) -> Result<u64> {
        let changing = self.changing().await;
        let file = self.open_plain(path, WRITE, mode & 0o777, true).await?;
        let poured = pour(content, file, self.place(), changing).await;
        let (written, file) = poured.map_err(|e| BackendError::failed(format!("writing {path}"), e))?;
        set_modified(&file, modified_ms);
        Ok(written)
    }

    async fn restore_folder(&self, path: &GuestPath, mode: u32, modified_ms: i64) -> Result<()> {
        let _changing = self.changing().await;
        // Before its mode, which may be one that lets nobody in.
        let folder = std::fs::File::from(self.open(path, READ | libc::O_DIRECTORY, 0, false).await?);
        // The sticky bit is kept; set-id bits are not.
        self.ask_set_mode(path, mode & 0o1777).await?;
        set_modified(&folder, modified_ms);
        Ok(())
    }

    async fn remove(&self, path: &GuestPath, kind: EntryKind) -> Result<()> {
        let _changing = self.changing().await;
        let request = self.connection.next();
        let mut buffer = vec![0; path.as_str().len() + 64];
        let is_folder = kind == EntryKind::Folder;
        let message = protocol::encode_remove(&mut buffer, request, is_folder, path.relative());
        match self.connection.ask(request, message.map_err(too_large)?).await? {
            (0, _) => Ok(()),
            (errno, _) => Err(report::file_error(path, errno)),
        }
    }

    async fn rename(&self, from: &GuestPath, to: &GuestPath) -> Result<()> {
        let _changing = self.changing().await;
        let request = self.connection.next();
        let mut buffer = vec![0; from.as_str().len() + to.as_str().len() + 64];
        let message = protocol::encode_rename(&mut buffer, request, from.relative(), to.relative());
        match self.connection.ask(request, message.map_err(too_large)?).await? {
            (0, _) => Ok(()),
            (errno, _) => Err(report::file_error(from, errno)),
        }
    }

    async fn set_mode(&self, path: &GuestPath, mode: u32) -> Result<()> {
        let _changing = self.changing().await;
        self.ask_set_mode(path, mode & 0o777).await
    }

    async fn make_link(&self, path: &GuestPath, target: &[u8]) -> Result<()> {
        let _changing = self.changing().await;
        let request = self.connection.next();
        let mut buffer = vec![0; path.as_str().len() + target.len() + 64];
        let message = protocol::encode_link(&mut buffer, request, path.relative(), target);
        match self.connection.ask(request, message.map_err(too_large)?).await? {
            (0, _) => Ok(()),
            (errno, _) => Err(report::file_error(path, errno)),
        }
    }

    async fn read_link(&self, path: &GuestPath) -> Result<Vec<u8>> {
        let link = self.open(path, libc::O_PATH, 0, false).await?;
        // The link itself was opened, so nothing is looked up here.
        match rustix::fs::readlinkat(&link, c"", Vec::new()) {
            Ok(target) => Ok(target.into_bytes()),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => {
                Err(BackendError::NotPermitted { path: path.to_string(), reason: "not a link".to_owned() })
            }
            Err(errno) => Err(report::file_error(path, errno.raw_os_error())),
        }
    }

    async fn watch(&self, path: &GuestPath) -> Result<Box<dyn Watcher>> {
        Ok(Box::new(NativeWatcher::start(&self.connection, path).await?))
    }

    async fn connect(&self, port: u16) -> Result<Box<dyn Stream>> {
        match ports::connect(self.socket(ports::family(V4)).await?, V4, port).await {
            Ok(stream) => Ok(stream),
            Err(first) => {
                let socket = self.socket(ports::family(V6)).await?;
                ports::connect(socket, V6, port).await.map_err(|_| first)
            }
        }
    }

    async fn listen(&self, port: u16) -> Result<Box<dyn Listener>> {
        ports::listen(self.socket(ports::family(V4)).await?, port)
    }

    async fn stats(&self) -> Result<Stats> {
        if *self.is_destroyed.lock().await {
            return Err(gone());
        }
        let usage = self.groups.layout.usage(&self.group());
        let files = self.connection.files();
        Ok(Stats {
            usage: ResourceUsage {
                cpu_percent: None,
                cpu_time_ms: usage.cpu_time_us.map(|us| us / 1000),
                memory_bytes: usage.memory_bytes,
                memory_peak_bytes: usage.memory_peak_bytes,
                pids_peak: usage.pids_peak,
                io_bytes: usage.io_bytes,
            },
            // Where init was quicker than the kernel, there is an event and no kill.
            oom_kills: usage.oom_kills.map(|kills| kills.max(self.connection.waiting().out_of_memory)),
            memory_limit_hits: usage.memory_limit_hits,
            pids_limit_hits: usage.pids_limit_hits,
            cpu_throttled: usage.cpu_throttled,
            disk_free_bytes: files.map(|f| f.blocks_available * f.block_bytes as u64),
            disk_free_inodes: files.map(|f| f.inodes_free),
        })
    }

    async fn isolation(&self) -> Result<IsolationReport> {
        if !self.connection.waiting().proven.has(Control::NoNewPrivs) {
            // No process has proven its walls yet, so one is made for that.
            self.connection.probe(self.connection.start_turn().await).await?;
        }
        let proven = self.proven.union(self.connection.waiting().proven);
        Ok(report::isolation(&self.spec, proven, &self.groups.layout))
    }

    async fn change_limits(&self, limits: &Limits) -> Result<()> {
        if self.connection.waiting().is_closed {
            return Err(gone());
        }
        limits.validate()?;
        let mut in_force = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = Some(self.cgroup_limits(limits, ControlSet::EMPTY));
        // A sandbox of a pool mostly has its request's limits already.
        if wanted != *in_force
            && let Some(limits) = &wanted
        {
            *in_force = None;
            let changed = self.groups.layout.change_limits(&self.group(), limits);
            changed.map_err(|e| BackendError::failed("changing the limits", e))?;
            *in_force = wanted;
        }
        Ok(())
    }

    async fn pause(&self) -> Result<()> {
        self.check_pausable()?;
        if self.paused.lock().await.is_some() {
            return Ok(());
        }
        let late =
            || io::Error::new(io::ErrorKind::TimedOut, "a process is being started in it all the time");
        let no_starts = tokio::time::timeout(START_PATIENCE, self.connection.no_starts()).await;
        let no_starts = no_starts.map_err(|_| BackendError::failed("pausing", late()))??;
        let mut paused = self.paused.lock().await;
        // It may have ended while this waited.
        self.check_pausable()?;
        *paused = Some(no_starts);
        self.freeze(true).await
    }

    async fn resume(&self) -> Result<()> {
        self.check_pausable()?;
        let mut paused = self.paused.lock().await;
        self.freeze(false).await?;
        *paused = None;
        Ok(())
    }

    async fn destroy(&self) -> Result<()> {
        let mut is_destroyed = self.is_destroyed.lock().await;
        if *is_destroyed {
            return Ok(());
        }
        // Nobody freezes it while the launcher ends it, and whoever waits for its end of a pause hears of this one.
        let mut paused = self.paused.lock().await;
        self.connection.release_files();
        *self.disk.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let answer = self.launcher.destroy(self.number)?;
        let errno = answer.await.map_err(|_| self.launcher.gone())?;
        *is_destroyed = true;
        self.connection.close();
        *paused = None;
        match errno {
            0 => Ok(()),
            _ => Err(report::set_aside(self.slot.number, errno)),
        }
    }
}

/// A start takes milliseconds, and a busy machine's a second. One that takes longer may have been stopped by the guest.
const START_PATIENCE: Duration = Duration::from_secs(10);

impl NativeSandbox {
    fn check_pausable(&self) -> Result<()> {
        if self.connection.waiting().is_closed {
            return Err(gone());
        }
        match self.spec.pausable {
            true => Ok(()),
            false => Err(BackendError::Unsupported {
                backend: "native",
                what: "pause a sandbox that was not made for it",
            }),
        }
    }

    async fn freeze(&self, frozen: bool) -> Result<()> {
        let (groups, group) = (Arc::clone(&self.groups), self.group());
        let step = if frozen { "pausing" } else { "resuming" };
        match tokio::task::spawn_blocking(move || groups.layout.freeze(&group, frozen)).await {
            Ok(done) => done.map_err(|e| BackendError::failed(step, e)),
            Err(error) => Err(BackendError::failed(step, io::Error::other(error))),
        }
    }
}

pub(crate) fn stat_of(metadata: &std::fs::Metadata) -> FileStat {
    let kind = match metadata.mode() & libc::S_IFMT {
        libc::S_IFREG => EntryKind::File,
        libc::S_IFDIR => EntryKind::Folder,
        libc::S_IFLNK => EntryKind::Link,
        _ => EntryKind::Other,
    };
    let modified_ms = metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000;
    FileStat { kind, size_bytes: metadata.size(), mode: metadata.mode() & 0o7777, modified_ms }
}

/// As well as it goes: a host that is not root may not, and the file is right all the same.
pub(crate) fn set_modified(file: &std::fs::File, modified_ms: i64) {
    if let Ok(since) = u64::try_from(modified_ms) {
        let _ = file.set_modified(std::time::UNIX_EPOCH + Duration::from_millis(since));
    }
}
