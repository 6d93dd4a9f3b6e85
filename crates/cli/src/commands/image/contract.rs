//! The contract of a profile, tried in a sandbox on an image.

use crate::exit::job_failure;
use crate::host::state;
use cofferdam_backend::{Backend, Image};
use cofferdam_core::{CapturedOutput, JobResult, Outcome};
use cofferdam_images::{
    CHECK_ZIP, CheckRow, CheckState, Lease, Profile, STDERR_MARK, check_script, read_answer,
};
use cofferdam_worker::{
    ArtifactsWanted, Discard, FileIn, JobError, JobSpec, Work, cancellation, draw_job_id,
};
use std::io::Cursor;
use std::time::Duration;

/// Compilers that begin with nothing, and virtual environments, are among the checks.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Any code but those that a shell gives itself.
const CODE: i32 = 7;

/// Every row of the contract, by running it.
pub(in crate::commands) async fn contract(
    backend: &dyn Backend,
    lease: &Lease,
    profile: &Profile,
) -> Result<Vec<CheckRow>, JobError> {
    let tools = match run(backend, lease, &check_script(profile)).await {
        Ok(result) => result,
        // Without a shell nothing else can be tried; the sandbox itself stood.
        Err(error @ JobError::Start(_)) => {
            let why = job_failure(&error).message;
            let row = |name: &str| CheckRow::new(name, CheckState::Missing, why.clone());
            return Ok(profile.checks.iter().map(|check| row(&check.name)).collect());
        }
        Err(error) => return Err(error),
    };
    let (stdout, stderr) = (lossy(&tools.stdout), lossy(&tools.stderr));
    let mut rows = read_answer(profile, &stdout);
    let coded = run(backend, lease, &format!("exit {CODE}")).await?;
    let row = |name: &str, is_so: bool, why: &str| match is_so {
        true => CheckRow::new(name, CheckState::Ok, ""),
        false => CheckRow::new(name, CheckState::Failed, why),
    };
    rows.push(row(
        "exit codes",
        coded.outcome == Outcome::Exited { code: CODE },
        "its shell does not pass them on",
    ));
    let streams = stderr.contains(STDERR_MARK) && !stdout.contains(STDERR_MARK);
    rows.push(row("stdout and stderr", streams, "they are not told apart"));
    // That it ran is the proof: there was a loopback and nothing else, no port, and no secret in the environment.
    let ended = matches!(tools.outcome, Outcome::Exited { code: 0 });
    rows.push(row("without a network", ended, "the checks did not come to their end"));
    Ok(rows)
}

fn lossy(output: &CapturedOutput) -> String {
    String::from_utf8_lossy(&output.bytes).into_owned()
}

async fn run(backend: &dyn Backend, lease: &Lease, script: &str) -> Result<JobResult, JobError> {
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let mut spec = JobSpec::new(draw_job_id().map_err(JobError::Id)?, Work::Command { argv });
    spec.image = Image::Layers(lease.layers.clone());
    spec.env = lease.image.config.config.variables();
    spec.limits.timeout = TIMEOUT;
    spec.artifacts = ArtifactsWanted::No;
    spec.workspace_root = state::folder("workspaces");
    let path = spec.workdir.join("check.zip")?;
    spec.files = vec![FileIn { path, mode: 0o644, content: Box::new(Cursor::new(CHECK_ZIP.to_vec())) }];
    let (_canceller, cancellation) = cancellation();
    cofferdam_worker::run(backend, spec, &mut Discard, cancellation).await
}
