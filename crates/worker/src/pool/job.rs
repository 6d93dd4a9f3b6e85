//! Jobs, served from the shelves.

use super::Pool;
use super::waiting::Waiting;
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
        // Until the end of this, whatever becomes of the shelf.
        let held = spec.held.clone();
        let kind = self.kind(sandbox_spec(id, &spec), runtime_ahead(&spec), held);
        match self.take_warm(&kind).await {
            None => job::run(&*self.backend, spec, live, cancel).await,
            Some(waiting) => {
                let result = run_warm(waiting, spec, live, cancel).await;
                self.answered(&kind);
                result
            }
        }
    }
}

async fn run_warm(
    waiting: Waiting,
    spec: JobSpec,
    live: &mut dyn LiveOutput,
    cancel: Cancellation,
) -> Result<JobResult, JobError> {
    let Waiting { id, sandbox, interpreter, .. } = waiting;
    let container_id = sandbox.container_id();
    let result = match interpreter {
        None => job::run_in(sandbox, spec, live, cancel).await?,
        Some(interpreter) => {
            let used = interpreter.cpu_time_ms;
            let result = job::run_ahead(sandbox, interpreter, spec, live, cancel).await?;
            without_start(result, used)
        }
    };
    Ok(JobResult { sandbox_id: Some(id), container_id, ..result })
}

/// What the job itself used, without what its interpreter had used before.
fn without_start(mut result: JobResult, used: Option<u64>) -> JobResult {
    let usage = &mut result.resource_usage;
    if let (Some(total), Some(used)) = (usage.cpu_time_ms, used) {
        let own = total.saturating_sub(used);
        usage.cpu_time_ms = Some(own);
        let share = own as f64 * 100.0 / result.duration_ms.max(1) as f64;
        usage.cpu_percent = usage.cpu_percent.map(|_| (share * 10.0).round() / 10.0);
    }
    result
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
