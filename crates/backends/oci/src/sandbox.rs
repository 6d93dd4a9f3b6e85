//! One container as a sandbox: the helper does what is done inside, the runtime and the cgroup what is done to it.

use crate::backend::{blocking, container_name, group_name, kill_group};
use crate::config::{HELPER_PIDS, pids};
use crate::place::Place;
use crate::runtime::{Kind, Runtime};
use cofferdam_backend::{BackendError, OomScope, Result, SandboxSpec, Stats, async_trait};
use cofferdam_core::{IsolationReport, Limits};
use cofferdam_guest::host::{Connection, Container};
use cofferdam_guest::protocol::Counted;
use cofferdam_guest::report::{self, Asked};
use cofferdam_linux::ControlSet;
use cofferdam_linux::cgroup::{CgroupLimits, Layout};
use cofferdam_linux::slots::Slot;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct OciSandbox {
    folder: PathBuf,
    runtime: Runtime,
    spec: SandboxSpec,
    layout: Arc<Layout>,
    connection: Arc<Connection>,
    /// What is left to take away, and the range of ids that is held until then.
    left: Mutex<Option<(Place, Option<Slot>)>>,
}

/// How often the count of out-of-memory kills is looked at.
const MEMORY_EVERY: Duration = Duration::from_millis(200);

/// Ends every process when the kernel has killed one for want of memory; the group is not seen from inside.
async fn end_on_oom(
    layout: Arc<Layout>,
    group: String,
    end_all: impl Fn() + Send,
    mut gone: watch::Receiver<bool>,
) {
    while timeout(MEMORY_EVERY, gone.wait_for(|gone| *gone)).await.is_err() {
        if layout.usage(&group).oom_kills > Some(0) {
            return end_all();
        }
    }
}

/// Ends a container and removes everything of it.
pub(crate) async fn take_away(
    runtime: Runtime,
    folder: PathBuf,
    layout: Arc<Layout>,
    id: String,
    place: Place,
) -> Result<()> {
    blocking("removing the container", move || remove(&runtime, &folder, &layout, &id, &place)).await
}

fn remove(runtime: &Runtime, folder: &Path, layout: &Layout, id: &str, place: &Place) -> std::io::Result<()> {
    kill_group(layout, id);
    let (state, name) = (folder.join("state"), container_name(id));
    match runtime.kind {
        // It looks for the end of its kernel in steps of a second and more. Everything is dead; what it remembers of
        // that may go later.
        Kind::Gvisor => runtime.begin_delete(&state, &name)?,
        Kind::Namespaces => match runtime.delete(&state, &name) {
            // Nothing there is what was asked for.
            Err(error) if !error.to_string().contains("does not exist") => return Err(error),
            _ => {}
        },
    }
    place.remove()
}

impl OciSandbox {
    pub(crate) fn new(
        folder: PathBuf,
        runtime: Runtime,
        spec: SandboxSpec,
        place: Place,
        slot: Option<Slot>,
        layout: Arc<Layout>,
        connection: Connection,
    ) -> Self {
        let left = Mutex::new(Some((place, slot)));
        if spec.oom_scope == OomScope::Sandbox {
            let group = group_name(spec.id.as_str());
            tokio::spawn(end_on_oom(Arc::clone(&layout), group, connection.ender(), connection.gone()));
        }
        Self { folder, runtime, spec, layout, connection: Arc::new(connection), left }
    }

    fn group(&self) -> String {
        group_name(self.spec.id.as_str())
    }
}

impl Drop for OciSandbox {
    fn drop(&mut self) {
        self.connection.end("it was dropped");
        let Some((place, slot)) = self.left.get_mut().take() else { return };
        // At once, and not on a thread: whoever drops it may be about to end this process.
        let id = self.spec.id.to_string();
        let removed = remove(&self.runtime, &self.folder, &self.layout, &id, &place);
        if let (Err(_), Some(slot)) = (removed, slot) {
            let _ = slot.set_aside("a container could not be removed");
        }
    }
}

#[async_trait]
impl Container for OciSandbox {
    fn backend(&self) -> &'static str {
        "oci"
    }

    fn maker(&self) -> &'static str {
        "the runtime"
    }

    fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    fn has_own_kernel(&self) -> bool {
        self.runtime.kind == Kind::Gvisor
    }

    async fn look(&self) -> Result<IsolationReport> {
        // The host's side is read while the answer is on its way.
        let on_the_host = async {
            tokio::task::yield_now().await;
            self.layout.usage(&self.group())
        };
        let (facts, usage) = tokio::join!(self.connection.look(), on_the_host);
        let mut facts = facts?;
        // The one filesystem behind both is looked at where it was made: gVisor shows sizes of its own.
        if let Some((place, _)) = &*self.left.lock().await {
            let files = place.room();
            (facts.workspace, facts.tmp, facts.shares_disk) = (files, files, true);
        }
        // Its group is there with counters of its own: the runtime has made it with what it was told.
        let has_group = usage.memory_bytes.is_some();
        let asked = Asked {
            backend: "oci",
            mode: self.spec.isolation,
            by: "the runtime",
            memory: has_group,
            swap_off: has_group,
            pids: has_group && self.runtime.kind == Kind::Namespaces,
            cpus: usage.cpu_throttled.is_some(),
            devices: self.runtime.kind == Kind::Namespaces,
            disk_bytes: self.spec.limits.disk.bytes(),
            writable_root: self.spec.writable_root,
            own_ids: self.runtime.kind == Kind::Namespaces,
            own_kernel: self.runtime.kind == Kind::Gvisor,
        };
        Ok(report::isolation(&facts, &asked))
    }

    async fn stats(&self) -> Result<Stats> {
        // All of it is read on the host, where nothing inside can touch it.
        // What it used is known until it is destroyed: an out-of-memory kill may have taken the helper with it.
        let files = match &*self.left.lock().await {
            Some((place, _)) => place.free(),
            None => return Err(BackendError::Gone { cause: "it was destroyed".to_owned() }),
        };
        let usage = self.layout.usage(&self.group());
        if usage.memory_bytes.is_none() {
            self.connection.is_there()?;
        }
        let is_of_processes = self.runtime.kind == Kind::Namespaces;
        let counted = Counted {
            cpu_time_us: usage.cpu_time_us,
            memory_bytes: usage.memory_bytes,
            memory_peak_bytes: usage.memory_peak_bytes,
            // Behind gVisor the group counts threads of its kernel.
            pids_peak: usage.pids_peak.filter(|_| is_of_processes),
            oom_kills: usage.oom_kills,
            memory_limit_hits: usage.memory_limit_hits,
            pids_limit_hits: usage.pids_limit_hits.filter(|_| is_of_processes),
            cpu_throttled: usage.cpu_throttled,
            disk_free_bytes: files.map(|(bytes, _)| bytes),
            disk_free_inodes: files.map(|(_, inodes)| inodes),
        };
        Ok(report::stats(&counted, u64::from(HELPER_PIDS)))
    }

    async fn change_limits(&self, limits: &Limits) -> Result<()> {
        let limits = CgroupLimits {
            memory_bytes: limits.memory_bytes,
            pids: pids(self.runtime.kind, limits),
            cpu_millis: limits.cpus.millis(),
            oom_group: false,
            files_on_disk: false,
            pausable: true,
            leave_out: ControlSet::EMPTY,
            fail_at: None,
        };
        let (layout, group) = (Arc::clone(&self.layout), self.group());
        blocking("changing the limits", move || layout.change_limits(&group, &limits)).await
    }

    async fn destroy(&self) -> Result<()> {
        // Held until it is done, so that whoever asks at the same time waits for it, too.
        let mut left = self.left.lock().await;
        self.connection.end("it was destroyed");
        let Some((place, slot)) = left.take() else { return Ok(()) };
        let folder = place.folder.clone();
        let (runtime, layout) = (self.runtime.clone(), Arc::clone(&self.layout));
        let id = self.spec.id.to_string();
        let taken = take_away(runtime, self.folder.clone(), layout, id, place).await;
        if taken.is_err() {
            // Its ids are not given to another one while anything of it may be left.
            if let Some(slot) = &slot {
                let _ = slot.set_aside("a container could not be removed");
            }
            *left = Some((Place { folder }, slot));
        }
        taken
    }
}
