//! Jobs, served from the shelves.

use super::Pool;
use super::shelf::Kind;
use crate::ids::draw_sandbox_id;
use crate::job::{self, Cancellation, JobError, JobSpec, Work, sandbox_spec};
use crate::output::LiveOutput;
use crate::runtime::Runtime;
use crate::task_env::workspace;
use cofferdam_core::JobResult;

impl Pool {
    /// Runs a job: code in an interpreter that waits for it, where there is one, anything else in a sandbox that
    /// waits; and what the pool does not have, as [`crate::run`] does. The result is the same.
    pub async fn run(
        &self,
        spec: JobSpec,
        live: &mut dyn LiveOutput,
        cancel: Cancellation,
    ) -> Result<JobResult, JobError> {
        spec.limits.validate()?;
        let id = draw_sandbox_id().map_err(JobError::Id)?;
        let kind = Kind { spec: sandbox_spec(id, &spec), runtime: runtime_ahead(&spec) };
        match self.take_warm(&kind).await {
            None => job::run(&*self.backend, spec, live, cancel).await,
            Some(waiting) => match waiting.interpreter {
                None => job::run_in(waiting.sandbox, spec, live, cancel).await,
                Some(interpreter) => {
                    job::run_ahead(waiting.sandbox, Box::new(interpreter), spec, live, cancel).await
                }
            },
        }
    }
}

/// The runtime whose interpreter can have started before this job was known.
fn runtime_ahead(spec: &JobSpec) -> Option<&'static Runtime> {
    let Work::Code { runtime, code } = &spec.work else { return None };
    let ahead = runtime.ahead?;
    // Under a limit that the interpreter nearly fills by itself, it is to start under that limit.
    let has_room = spec.limits.memory_bytes >= 2 * ahead.idle_bytes;
    let is_plain = spec.terminal.is_none() && spec.workdir == workspace();
    (has_room && is_plain && ahead.takes(code, &spec.env)).then_some(runtime)
}
