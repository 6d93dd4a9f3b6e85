//! `cofferdam image check`: the contract, tried in a sandbox, and a search for credentials.

use super::super::MakeBackend;
use super::super::remote::table::table;
use super::super::remote::{print, print_json};
use super::store;
use crate::args::ImageCheckArgs;
use crate::backends::Choice;
use crate::exit::{Failure, job_failure};
use crate::host::colour::Colours;
use crate::host::state;
use cofferdam_backend::{Backend, Image};
use cofferdam_core::{CapturedOutput, JobResult, Outcome};
use cofferdam_images::{
    BASE_PROFILE, CHECK_ZIP, CheckRow, CheckState, Finding, ImageRef, Lease, Profile, STDERR_MARK,
    check_script, read_answer, scan,
};
use cofferdam_worker::{
    ArtifactsWanted, Discard, FileIn, JobError, JobSpec, Work, cancellation, draw_job_id,
};
use serde::Serialize;
use std::io::Cursor;
use std::process::ExitCode;
use std::time::Duration;

/// Something is missing.
const FAILED: u8 = 1;

/// A compiler and a virtual environment are among the checks.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Any code but those that a shell gives itself.
const CODE: i32 = 7;

#[derive(Serialize)]
struct Answer<'a> {
    image: String,
    profile: &'a str,
    passed: bool,
    checks: &'a [CheckRow],
    credentials: &'a [Finding],
}

pub(super) fn check(args: &ImageCheckArgs, backend: MakeBackend) -> Result<ExitCode, Failure> {
    let profile = Profile::by_name("--profile", args.profile.as_deref().unwrap_or(BASE_PROFILE))?;
    let lease = store()?.open(&ImageRef::parse("image", &args.image)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checks = runtime.block_on(async { contract(&*backend(Choice::Native)?, &lease, &profile).await })?;
    let credentials = scan(&lease)?;
    let passed = credentials.is_empty() && checks.iter().all(|row| row.state == CheckState::Ok);
    if args.json {
        let (image, profile) = (lease.image.id.to_string(), profile.name.as_str());
        print_json(&Answer { image, profile, passed, checks: &checks, credentials: &credentials })?;
    } else {
        print(&text(&checks, &credentials))?;
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Every row of the contract, by running it.
async fn contract(backend: &dyn Backend, lease: &Lease, profile: &Profile) -> Result<Vec<CheckRow>, Failure> {
    let tools = match run(backend, lease, &check_script(profile)).await {
        Ok(result) => result,
        // Without a shell nothing else can be tried; the sandbox itself stood.
        Err(error @ JobError::Start(_)) => {
            let why = job_failure(&error).message;
            let row = |name: &str| CheckRow::new(name, CheckState::Missing, why.clone());
            return Ok(profile.checks.iter().map(|check| row(&check.name)).collect());
        }
        Err(error) => return Err(job_failure(&error)),
    };
    let (stdout, stderr) = (lossy(&tools.stdout), lossy(&tools.stderr));
    let mut rows = read_answer(profile, &stdout);
    let coded = run(backend, lease, &format!("exit {CODE}")).await.map_err(|error| job_failure(&error))?;
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

fn text(checks: &[CheckRow], credentials: &[Finding]) -> String {
    let word = |state: CheckState| match state {
        CheckState::Ok => "ok",
        CheckState::Missing => "missing",
        CheckState::Failed => "failed",
    };
    let mut rows: Vec<Vec<String>> = checks
        .iter()
        .map(|row| vec![word(row.state).to_owned(), row.name.clone(), row.detail.clone()])
        .collect();
    for Finding { place, layer, what } in credentials {
        let layer = layer.map(|number| format!(", in layer {number}")).unwrap_or_default();
        rows.push(vec!["failed".to_owned(), "credentials".to_owned(), format!("{what}: {place}{layer}")]);
    }
    if credentials.is_empty() {
        rows.push(vec![
            "ok".to_owned(),
            "credentials".to_owned(),
            "none found in files, environment and history".to_owned(),
        ]);
    }
    table(&["STATE", "CHECK", "DETAIL"], &rows, Colours::for_stdout(), |colours, cell| match cell {
        "ok" => colours.green(cell),
        "missing" | "failed" => colours.red(cell),
        _ => cell.to_owned(),
    })
}
