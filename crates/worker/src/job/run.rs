//! The stages of a job, from a spec to a result.

use super::cancel::{Cancellation, Request};
use super::error::JobError;
use super::prepare::{PreparedJob, prepare};
use super::spec::{ArtifactsWanted, FileIn, JobSpec, Work, sandbox_spec};
use super::streams::{Kept, Streams};
use super::supervise::{Cause, Ending, follow_size, supervise};
use super::verdict;
use crate::artifacts::{Collected, collect};
use crate::ids::draw_sandbox_id;
use crate::output::LiveOutput;
use crate::runner::Gathered;
use crate::runtime::{ahead, present_in};
use cofferdam_backend::{Backend, BackendError, ExitStatus, Process, Sandbox, Stats};
use cofferdam_core::{InvalidValue, IsolationReport, JobResult};
use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

const SIGKILL: i32 = 9;

/// Whether a job could be prepared: what can be refused without making a sandbox is refused here.
pub fn check(spec: JobSpec) -> Result<(), InvalidValue> {
    prepare(spec).map(drop)
}

/// Runs a job in a sandbox of its own. When it returns, that sandbox is gone or going; so it is when it is dropped.
pub async fn run(
    backend: &dyn Backend,
    spec: JobSpec,
    live: &mut dyn LiveOutput,
    cancel: Cancellation,
) -> Result<JobResult, JobError> {
    run_keeping(backend, spec, live, cancel).await.map(|(result, _)| result)
}

/// The same, but the sandbox is handed back, if one was made: for a caller that ends now, and its backend with it.
/// Dropping it ends it.
pub async fn run_keeping(
    backend: &dyn Backend,
    spec: JobSpec,
    live: &mut dyn LiveOutput,
    mut cancel: Cancellation,
) -> Result<(JobResult, Option<Arc<dyn Sandbox>>), JobError> {
    let id = draw_sandbox_id().map_err(JobError::Id)?;
    let sandbox = sandbox_spec(id.clone(), &spec);
    let job = prepare(spec)?;
    let began = Instant::now();
    // Dropping what makes a sandbox ends it as well, so a request that comes meanwhile is heard at once.
    let made = async {
        if !job.files.is_empty() || job.runner.is_some() {
            return Ok((backend.create(sandbox).await?, None));
        }
        // Nothing has to be in place before the process, so both are asked for at once.
        let (sandbox, started) = backend.create_and_start(sandbox, job.process.clone()).await?;
        Ok((sandbox, Some(started)))
    };
    let made = tokio::select! {
        biased;
        made = made => made.map_err(JobError::Create),
        Request { by, .. } = cancel.requested() => return Ok((cancelled_unmade(job, by), None)),
    };
    let (sandbox, started) = made?;
    let sandbox: Arc<dyn Sandbox> = Arc::from(sandbox);
    let container_id = sandbox.container_id();
    let result = match started {
        None => execute(&sandbox, None, job, live, cancel).await?,
        Some(started) => {
            let process = explain(&*sandbox, started, &job).await?;
            attend(&*sandbox, &*process, job, began, live, cancel).await
        }
    };
    Ok((JobResult { sandbox_id: Some(id), container_id, ..result }, Some(sandbox)))
}

/// Runs a job in a sandbox that was made for it, by the same [`sandbox_spec`], and destroys that.
pub async fn run_in(
    sandbox: Box<dyn Sandbox>,
    spec: JobSpec,
    live: &mut dyn LiveOutput,
    cancel: Cancellation,
) -> Result<JobResult, JobError> {
    let job = prepare(spec)?;
    execute(&Arc::from(sandbox), None, job, live, cancel).await
}

/// Runs a job's code in an interpreter that has started in a sandbox made for such jobs, and destroys that.
pub(crate) async fn run_ahead(
    sandbox: Box<dyn Sandbox>,
    interpreter: Box<dyn Process>,
    spec: JobSpec,
    live: &mut dyn LiveOutput,
    cancel: Cancellation,
) -> Result<JobResult, JobError> {
    let (code, args) = match &spec.work {
        Work::Code { code, .. } => (code.clone(), spec.args.clone()),
        Work::Command { .. } | Work::File { .. } | Work::Tool => {
            unreachable!("an interpreter is only taken for code")
        }
    };
    let mut job = prepare(spec)?;
    let message = ahead::message(&code, &args, &job.process.env, job.stdin.is_some());
    // What the interpreter waits for comes first, what the program reads after it.
    let message = Cursor::new(message);
    job.stdin = Some(match job.stdin.take() {
        Some(stdin) => Box::new(message.chain(stdin)),
        None => Box::new(message),
    });
    execute(&Arc::from(sandbox), Some(interpreter), job, live, cancel).await
}

async fn execute(
    sandbox: &Arc<dyn Sandbox>,
    interpreter: Option<Box<dyn Process>>,
    mut job: PreparedJob,
    live: &mut dyn LiveOutput,
    mut cancel: Cancellation,
) -> Result<JobResult, JobError> {
    let staged = tokio::select! {
        biased;
        staged = stage(sandbox, &mut job) => staged,
        Request { by, .. } = cancel.requested() => return Ok(cancelled_early(&**sandbox, job, by).await),
    };
    let sandbox = &**sandbox;
    let began = Instant::now();
    let started = match (staged, interpreter) {
        (Ok(()), Some(interpreter)) => Ok(interpreter),
        (Ok(()), None) => explain(sandbox, sandbox.start(job.process.clone()).await, &job).await,
        (Err(error), _) => Err(error),
    };
    match started {
        Ok(process) => Ok(attend(sandbox, &*process, job, began, live, cancel).await),
        Err(error) => {
            // What went wrong first is what the caller can act on; dropping the sandbox destroys it, too.
            let _ = sandbox.destroy().await;
            Err(error)
        }
    }
}

/// Puts everything into its place: the project, then the files, then the command of the tool that both are for.
async fn stage(sandbox: &Arc<dyn Sandbox>, job: &mut PreparedJob) -> Result<(), JobError> {
    if let Some(runner) = &mut job.runner {
        Box::pin(runner.unpack(sandbox)).await?;
    }
    for FileIn { path, mode, content } in std::mem::take(&mut job.files) {
        let written = sandbox.write_file(&path, mode, content).await;
        written.map_err(|source| JobError::FileIn { path: path.to_string(), source })?;
    }
    if let Some(runner) = job.runner.take() {
        // On the heap: few jobs have one, and every job would carry its state.
        let settled = Box::pin(runner.settle(&**sandbox, &mut job.process.argv)).await?;
        job.settled = Some(Box::new(settled));
    }
    Ok(())
}

/// Says of a process that did not start what the caller can do about it.
async fn explain(
    sandbox: &dyn Sandbox,
    started: Result<Box<dyn Process>, BackendError>,
    job: &PreparedJob,
) -> Result<Box<dyn Process>, JobError> {
    let workdir = job.process.cwd.to_string();
    match (started, job.runtime) {
        (Err(BackendError::NotFound { path }), Some(runtime)) if names(&path, runtime.program) => {
            let present = present_in(sandbox).await;
            Err(JobError::MissingRuntime { language: runtime.name, program: runtime.program, present })
        }
        (Err(error), _) if is_about(&error, &workdir) && job.process.argv.first() != Some(&workdir) => {
            Err(JobError::Workdir(error))
        }
        (started, _) => started.map_err(JobError::Start),
    }
}

/// Whether what could not be found or used is this path.
fn is_about(error: &BackendError, wanted: &str) -> bool {
    match error {
        BackendError::NotFound { path } | BackendError::NotPermitted { path, .. } => path == wanted,
        _ => false,
    }
}

/// Whether a path, or a bare name, is that of a program.
fn names(path: &str, program: &str) -> bool {
    path.rsplit('/').next() == Some(program)
}

/// Follows a process to its end, takes what is worth keeping, and tears everything down.
async fn attend(
    sandbox: &dyn Sandbox,
    process: &dyn Process,
    mut job: PreparedJob,
    began: Instant,
    live: &mut dyn LiveOutput,
    mut cancel: Cancellation,
) -> JobResult {
    live.started();
    let mut streams = Streams::take(process, job.stdin.take(), job.terminal.is_some(), began);
    let deadline = began + job.limits.timeout;
    let ending = {
        let beside = async {
            tokio::join!(streams.forward(live), follow_size(process, job.terminal.as_mut()));
        };
        tokio::select! {
            biased;
            ending = supervise(process, deadline, job.limits.grace, &mut cancel) => ending,
            () = beside => unreachable!("bytes are forwarded for as long as they are asked for"),
        }
    };
    let duration = began.elapsed();
    if ending.status.is_none() {
        // Its grace is over. Everything goes with the sandbox; this keeps it from filling its artifacts.
        let _ = process.signal(SIGKILL).await;
    }
    let evidence = gather(sandbox, &mut job, &ending, &mut cancel).await;
    // Whoever still holds a stream goes with the sandbox. Where both are at their end, nothing has to be waited
    // for: dropping the sandbox ends what runs on, and its removal is nobody's time.
    if !streams.at_end(live).await {
        remove(sandbox, &ending, &mut job.warnings).await;
    }
    let kept = streams.drain(live).await;
    let (settled, gathered) = (job.settled.take(), evidence.gathered);
    let evidence = Evidence { gathered: Gathered::default(), ..evidence };
    let mut result = conclude(job, ending, evidence, kept, duration);
    if let Some(settled) = settled {
        let report = settled.report(gathered, &result.stdout, &result.stderr, &result.outcome);
        result.report = Some(Box::new(Box::pin(report).await));
    }
    result
}

/// Ends the sandbox. Of one that was lost, the outcome says so: that it cannot be asked to end is no other news.
async fn remove(sandbox: &dyn Sandbox, ending: &Ending, warnings: &mut Vec<String>) {
    let was_lost = matches!(ending.status, Some(Ok(ExitStatus::Lost)));
    match sandbox.destroy().await {
        Ok(()) => {}
        Err(BackendError::Gone { .. }) if was_lost => {}
        Err(error) => warnings.push(format!("the sandbox was not removed cleanly: {error}")),
    }
}

/// What can only be learnt while the sandbox stands.
struct Evidence {
    stats: Stats,
    artifacts: Collected,
    isolation: IsolationReport,
    /// What the report of a tool is made of.
    gathered: Gathered,
}

impl Evidence {
    /// Of a job whose process never started.
    fn none(isolation: IsolationReport) -> Self {
        let (stats, artifacts, gathered) = (Stats::default(), Collected::default(), Gathered::default());
        Self { stats, artifacts, isolation, gathered }
    }
}

async fn gather(
    sandbox: &dyn Sandbox,
    job: &mut PreparedJob,
    ending: &Ending,
    cancel: &mut Cancellation,
) -> Evidence {
    // A process that succeeded was not taken by an out-of-memory kill, which spares nobody, nor held up by a limit.
    let is_plain = matches!(ending.status, Some(Ok(ExitStatus::Exited(0))));
    let stats = if is_plain && !job.details { Ok(Stats::default()) } else { sandbox.stats().await };
    let stats = stats.unwrap_or_else(|error| {
        job.warnings.push(format!("what the job used is not known: {error}"));
        Stats::default()
    });
    let mut wanted = std::mem::replace(&mut job.artifacts, ArtifactsWanted::No);
    if ending.forced {
        wanted = ArtifactsWanted::No;
    }
    let artifacts = tokio::select! {
        biased;
        collected = collect(sandbox, wanted, job.limits.disk.bytes()) => collected,
        Request { by, .. } = cancel.requested() => {
            job.warnings.push(format!("the artifacts were not all taken: cancelled by {by}"));
            Collected::default()
        }
    };
    let gathered = match &job.settled {
        Some(settled) => Box::pin(settled.gather(sandbox, ending.forced)).await,
        None => Gathered::default(),
    };
    let isolation = prove(sandbox, job).await;
    Evidence { stats, artifacts, isolation, gathered }
}

/// The sandbox's isolation report; one without a proof where it cannot be asked any more.
async fn prove(sandbox: &dyn Sandbox, job: &PreparedJob) -> IsolationReport {
    if !job.details {
        return IsolationReport { backend: String::new(), mode: job.isolation, controls: Vec::new() };
    }
    match sandbox.isolation().await {
        Ok(report) => report,
        Err(error) => IsolationReport::unproven(job.isolation, &error.to_string()),
    }
}

fn conclude(
    job: PreparedJob,
    ending: Ending,
    evidence: Evidence,
    kept: Kept,
    duration: Duration,
) -> JobResult {
    let Evidence { stats, artifacts, isolation, gathered: _ } = evidence;
    let mut warnings = job.warnings;
    warnings.extend(kept.stdin_error.map(|error| format!("the input was not all passed on: {error}")));
    warnings.extend(kept.lost.as_ref().map(|error| format!("some output is missing: {error}")));
    JobResult {
        // Whoever made the sandbox knows its id.
        sandbox_id: None,
        container_id: None,
        outcome: verdict::outcome(&ending, &stats, kept.lost),
        limits_hit: verdict::limits_hit(&stats, &kept.dropped_at),
        stdout: kept.stdout,
        stderr: kept.stderr,
        duration_ms: duration.as_millis() as u64,
        resource_usage: verdict::usage(stats, duration),
        artifacts: artifacts.taken,
        artifacts_skipped: artifacts.skipped,
        isolation,
        network_policy_applied: job.network,
        warnings,
        report: None,
    }
}

/// The result of a job that was cancelled before its process started.
async fn cancelled_early(sandbox: &dyn Sandbox, mut job: PreparedJob, by: String) -> JobResult {
    let isolation = prove(sandbox, &job).await;
    let ending = Ending { cause: Cause::Cancelled { by }, status: None, forced: true };
    remove(sandbox, &ending, &mut job.warnings).await;
    let evidence = Evidence::none(isolation);
    conclude(job, ending, evidence, Kept::default(), Duration::ZERO)
}

/// The result of a job that was cancelled before it had a sandbox.
fn cancelled_unmade(job: PreparedJob, by: String) -> JobResult {
    let isolation = IsolationReport::unproven(job.isolation, "no sandbox was made");
    let ending = Ending { cause: Cause::Cancelled { by }, status: None, forced: true };
    let evidence = Evidence::none(isolation);
    conclude(job, ending, evidence, Kept::default(), Duration::ZERO)
}
