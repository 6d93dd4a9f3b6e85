//! Sessions: sandboxes that stay, and the steps that run in them.
//!
//! A step is a program, or code for an interpreter that stays as well. Steps of one context run one after the other,
//! those of different contexts at the same time. What has ended is forgotten here: records are somebody else's.

mod ahead;
mod archive;
mod code;
mod command;
mod context;
mod error;
mod files;
mod keep;
mod live;
mod pipe;
mod process;
mod pump;
pub mod request;
mod saved;
mod search;
mod settle;
mod share;
mod spec;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use archive::unpack_project;
pub use archive::{ArchiveFormat, Unpacked};
pub use error::SessionError;
pub use files::Listed;
pub use keep::{SECRET_MODE, check_secrets};
pub use process::{ProcessNews, ProcessOrder, ProcessPiece, ProcessState};
use saved::MAX_COPYING;
pub use saved::Saved;
pub use search::{Match, Matches, Search};
pub use spec::{SessionPlace, SessionSpec, Shown, StepEnd, StepOutput, StepSpec, StepWork};
pub use watch::{FileChange, WatchNews};

use crate::Cancellation;
use crate::ids::draw_sandbox_id;
use crate::pool::{Held, Pool, Taken};
use crate::runtime::PYTHON_KERNEL;
use cofferdam_backend::{BackendError, SandboxSpec};
use cofferdam_core::{SandboxId, SessionId};
use cofferdam_kernels::KernelLanguage;
use live::Live;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The sessions of this worker.
#[derive(Debug)]
pub struct Sessions {
    pool: Arc<Pool>,
    live: Mutex<HashMap<SessionId, Arc<Live>>>,
    /// What takes a thread, or the processor for long, has its turn here.
    heavy: Arc<Semaphore>,
    /// Files that are open to be copied have theirs here.
    copying: Arc<Semaphore>,
}

/// Archives on their way in and searches, of all sessions together. Each may hold a thread, and those (512 of them) are
/// shared with everything that reads or writes a file.
const MAX_HEAVY: usize = 128;

impl Sessions {
    pub fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            live: Mutex::default(),
            heavy: Arc::new(Semaphore::new(MAX_HEAVY)),
            copying: Arc::new(Semaphore::new(MAX_COPYING)),
        }
    }

    fn heavy(&self) -> Result<OwnedSemaphorePermit, SessionError> {
        Arc::clone(&self.heavy).try_acquire_owned().map_err(|_| SessionError::Busy)
    }

    fn live(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has so many sandboxes kept ready for sessions of a kind.
    pub fn keep_ready(&self, spec: &SessionSpec, count: usize) {
        if let Ok(id) = draw_sandbox_id() {
            self.pool.keep_ready(&sandbox_spec(id, spec), Some(&PYTHON_KERNEL), count);
        }
    }

    /// Makes a session's sandbox. Asked again under the same generation, it is the same one.
    pub async fn start(&self, spec: SessionSpec) -> Result<SandboxId, SessionError> {
        spec.limits.validate()?;
        if let Some(live) = self.live().get(&spec.id)
            && live.generation() == spec.generation
        {
            return Ok(live.sandbox_id().clone());
        }
        let id = draw_sandbox_id().map_err(SessionError::Id)?;
        let taken = self.make(id, &spec).await.map_err(SessionError::Create)?;
        let (name, sandbox_id) = (spec.id.clone(), taken.id.clone());
        let live = Arc::new(Live::new(spec, taken));
        live.not_for_long();
        live.watch_over();
        let before = self.live().insert(name, live);
        if let Some(before) = before {
            before.end().await;
        }
        Ok(sandbox_id)
    }

    /// The pool that the session's sandbox comes from, and what it is made of.
    fn pool_of<'s>(&'s self, session: &'s SessionSpec) -> (&'s Pool, Held) {
        match &session.place {
            Some(place) => (&place.pool, place.held.clone()),
            None => (&self.pool, None),
        }
    }

    async fn make(&self, id: SandboxId, session: &SessionSpec) -> Result<Taken, BackendError> {
        let (pool, held) = self.pool_of(session);
        pool.take_with_interpreter(sandbox_spec(id, session), &PYTHON_KERNEL, &session.env, held).await
    }

    /// Runs a step to its end.
    pub async fn step(
        &self,
        id: &SessionId,
        generation: i64,
        step: StepSpec,
        output: &mut dyn StepOutput,
        cancel: Cancellation,
    ) -> Result<StepEnd, SessionError> {
        let live = self.find(id, generation)?;
        match live.step(step, output, cancel).await {
            // What a sandbox that goes says of itself depends on what it was asked; that it is gone says more.
            Err(error) => Err(live.gone_soon().await.map_or(error, |cause| SessionError::Lost { cause })),
            end => end,
        }
    }

    /// The sessions whose sandboxes went without anybody having asked for that, each with its placement and why. They are
    /// here until they are terminated.
    pub fn lost(&self) -> Vec<(SessionId, i64, String)> {
        let live = self.live();
        let lost = live.iter().filter_map(|(id, live)| Some((id.clone(), live.generation(), live.gone()?)));
        lost.collect()
    }

    /// Ends the interpreter of a context and the step that it runs.
    pub async fn restart_context(
        &self,
        id: &SessionId,
        generation: i64,
        language: KernelLanguage,
        context: &str,
    ) -> Result<(), SessionError> {
        self.find(id, generation)?.restart(language, context).await
    }

    /// Ends a session and everything in it. One that is not here has ended.
    pub async fn terminate(&self, id: &SessionId, generation: i64) {
        let ended = {
            let mut live = self.live();
            match live.get(id) {
                Some(found) if found.generation() <= generation => live.remove(id),
                _ => None,
            }
        };
        if let Some(live) = ended {
            live.end().await;
        }
    }

    /// The session, if it is here and whoever asks means this placement of it.
    fn find(&self, id: &SessionId, generation: i64) -> Result<Arc<Live>, SessionError> {
        let live = self.live();
        let found = live.get(id).ok_or(SessionError::Unknown)?;
        if found.generation() != generation {
            return Err(SessionError::Stale);
        }
        match found.gone() {
            Some(cause) => Err(SessionError::Lost { cause }),
            None => Ok(Arc::clone(found)),
        }
    }

    pub fn count(&self) -> usize {
        self.live().len()
    }
}

/// The sandbox that a session needs: what runs out of memory in it ends alone.
fn sandbox_spec(id: SandboxId, session: &SessionSpec) -> SandboxSpec {
    SandboxSpec {
        id,
        image: session.image.clone(),
        limits: session.limits.clone(),
        network: session.network,
        isolation: session.isolation,
        oom_scope: cofferdam_backend::OomScope::Process,
        writable_root: false,
        terminal: true,
        pausable: true,
        workspace_root: session.workspace_root.clone(),
        mounts: Vec::new(),
        files: None,
    }
}
