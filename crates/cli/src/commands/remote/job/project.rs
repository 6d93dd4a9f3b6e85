//! `cofferdam job test` and `cofferdam job build`: a folder goes there, and a report comes back.

use super::super::failure::failure;
use super::super::progress::Transfer;
use super::super::{block_on, connect, print, print_json};
use super::attend::{Attended, Show, attend};
use super::inputs;
use super::project_page::page;
use super::request::{limits, milliseconds};
use crate::args::JobProjectArgs;
use crate::commands::run::read_variable;
use crate::exit::{Failure, OURS, say};
use crate::host::colour::Colours;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{Command, InlineFile, JobRequest, RunnerRequest};
use cofferdam_client::Client;
use cofferdam_core::{JobKind, JobState, Verdict};
use cofferdam_images::FolderTar;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// More than this is mostly what a build leaves behind, and no project.
const MAX_PROJECT_BYTES: u64 = 2 << 30;

/// As much as the service compares of a file.
const MAX_EXPECTED_BYTES: u64 = 1 << 20;

const PIECE_BYTES: usize = 256 << 10;

/// A verdict other than that it passed.
const NOT_PASSED: u8 = 1;

pub(super) fn run(args: &JobProjectArgs, kind: JobKind) -> Result<ExitCode, Failure> {
    let mut request = request(args, kind)?;
    let client = connect(&args.remote)?;
    let is_json = args.remote.json;
    let archive = pack(&args.dir)?;
    block_on(async {
        let project = upload(&client, &archive, &args.dir, is_json).await?;
        drop(archive);
        if let Some(runner) = &mut request.runner {
            runner.project = Some(project.clone());
        }
        let attended = follow(&client, &request, args).await;
        // It was for this job alone, however that ended.
        inputs::remove(&client, &[project]).await;
        let Attended { job, .. } = attended?;
        if is_json {
            print_json(&job)?;
        } else {
            print(&page(&job, Colours::for_stdout()))?;
        }
        Ok(end(&job))
    })
}

async fn follow(client: &Client, request: &JobRequest, args: &JobProjectArgs) -> Result<Attended, Failure> {
    let job = client.job_create(request, Duration::ZERO).await.map_err(failure)?;
    let show = match (args.remote.json, args.verbose) {
        (true, _) => Show::Nothing,
        (false, true) => Show::Live,
        (false, false) => Show::Waiting,
    };
    attend(client, &job.id, show).await
}

/// 0 or 1 by the verdict; that there is none is no verdict.
fn end(job: &cofferdam_api::Job) -> ExitCode {
    let report = job.result.as_ref().and_then(|result| result.report.as_ref());
    match report {
        Some(report) if report.verdict == Verdict::Passed && job.status.state == JobState::Succeeded => {
            ExitCode::SUCCESS
        }
        Some(_) => ExitCode::from(NOT_PASSED),
        None => {
            let message = job.status.message.as_deref().unwrap_or("it has no message");
            say(&format!("{} is {} and has no report: {message}", job.id, job.status.state));
            ExitCode::from(OURS)
        }
    }
}

fn request(args: &JobProjectArgs, kind: JobKind) -> Result<JobRequest, Failure> {
    let timeout = args.timeout.as_deref().map(|text| milliseconds("--timeout", text)).transpose()?;
    let command = (!args.command.is_empty()).then(|| Command::Argv(args.command.clone()));
    Ok(JobRequest {
        kind,
        runner: Some(RunnerRequest { tool: args.tool.clone(), project: None, report: args.report.clone() }),
        expect: args.expect.iter().map(|text| expected(text)).collect::<Result<_, _>>()?,
        command,
        env: args.env.iter().map(|text| read_variable("--env", text)).collect::<Result<_, _>>()?,
        limits: limits(&args.as_job_run())?,
        timeout_ms: timeout,
        image: args.image.clone(),
        task_id: args.task_id.clone(),
        ..JobRequest::default()
    })
}

fn expected(text: &str) -> Result<InlineFile, Failure> {
    let (path, file) = text
        .split_once('=')
        .filter(|(path, file)| !path.is_empty() && !file.is_empty())
        .ok_or_else(|| Failure::new(format!("--expect {text}: write PATH=FILE")))?;
    let failed = |error: io::Error| Failure::new(format!("--expect {file}: {error}"));
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|file| file.take(MAX_EXPECTED_BYTES + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_EXPECTED_BYTES {
        let most = MAX_EXPECTED_BYTES >> 20;
        return Err(Failure::new(format!("--expect {file}: a file that is compared may have {most} MiB")));
    }
    let content_base64 = Some(STANDARD.encode(bytes));
    Ok(InlineFile { path: path.to_owned(), content: None, content_base64, artifact: None })
}

/// A file that goes with its owner.
struct Archive {
    path: PathBuf,
    size_bytes: u64,
}

impl Drop for Archive {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The folder as an archive of known size, which is what an upload needs.
fn pack(dir: &Path) -> Result<Archive, Failure> {
    let shown = dir.display();
    if !dir.is_dir() {
        return Err(Failure::new(format!("{shown}: it is not a folder; name that of the project")));
    }
    let mut source = FolderTar::open(dir).map_err(|error| Failure::new(error.to_string()))?;
    let path = std::env::temp_dir().join(format!("cofferdam-project-{}.tar", std::process::id()));
    let failed = |error: io::Error| Failure::new(format!("{}: {error}", path.display()));
    let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.map_err(failed)?;
    let mut archive = Archive { path: path.clone(), size_bytes: 0 };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let n = source.read(&mut piece).map_err(|error| Failure::new(format!("{shown}: {error}")))?;
        if n == 0 {
            return Ok(archive);
        }
        archive.size_bytes += n as u64;
        if archive.size_bytes > MAX_PROJECT_BYTES {
            let most = MAX_PROJECT_BYTES >> 30;
            let fix = "leave out what a build can make again";
            return Err(Failure::new(format!("{shown}: it has more than {most} GiB; {fix}")));
        }
        file.write_all(&piece[..n]).map_err(failed)?;
    }
}

async fn upload(client: &Client, archive: &Archive, dir: &Path, is_quiet: bool) -> Result<String, Failure> {
    let transfer = Transfer::new(&dir.display().to_string(), archive.size_bytes, is_quiet);
    let sent = client.artifact_upload(&archive.path, transfer.counter()).await;
    transfer.end();
    sent.map(|artifact| artifact.id).map_err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_before_anything_is_sent() {
        assert!(expected("out.txt").is_err() && expected("=x").is_err() && expected("x=/nowhere").is_err());
        let file = pack(Path::new("/etc/passwd")).err().expect("no folder").message;
        assert!(file.contains("/etc/passwd: it is not a folder"), "{file}");
    }
}
