//! `cofferdam job show`, `cancel`, `receipt` and `delete`.

use super::super::failure::failure;
use super::super::table::{by_state, one_line};
use super::super::{block_on, connect, print, print_json};
use crate::args::JobArgs;
use crate::exit::Failure;
use crate::host::colour::Colours;
use cofferdam_api::Job;
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

pub(super) fn show(args: &JobArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let job = block_on(async { client.job_get(&args.id).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&job),
        false => print(&page(&job, Colours::for_stdout())),
    }?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn cancel(args: &JobArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let job = block_on(async { client.job_cancel(&args.id).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&job),
        false => print(&format!("{} {}\n", job.id, job.status.state)),
    }?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn delete(args: &JobArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    block_on(async { client.job_delete(&args.id).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&json!({"id": args.id, "deleted": true})),
        false => print(&format!("{}\n", args.id)),
    }?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn receipt(args: &JobArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    print_json(&block_on(async { client.job_receipt(&args.id).await.map_err(failure) })?)?;
    Ok(ExitCode::SUCCESS)
}

/// The most that is shown of what a job wrote; `job logs` has all of it.
const OUTPUT_LINES: usize = 20;

fn page(job: &Job, colours: Colours) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{} {value}", colours.bold(&format!("{name:<10}")));
    };
    row("id", &job.id);
    row("state", &by_state(colours, job.status.state.as_str()));
    if let Some(message) = &job.status.message {
        row("message", &one_line(message));
    }
    row("task", &one_line(&job.task_id));
    if let Some(agent) = &job.agent {
        row("agent", &one_line(agent));
    }
    row("created", &job.created_at);
    row("changed", &job.status.last_transition_at);
    for (name, value) in &job.metadata {
        row("metadata", &one_line(&format!("{name}={value}")));
    }
    if let Some(result) = &job.result {
        if let Some(code) = result.exit_code {
            row("exit code", &code.to_string());
        }
        row("duration", &format!("{} ms", result.duration_ms));
        if let Some(bytes) = result.resource_usage.memory_peak_bytes {
            row("memory", &format!("{} MiB at its peak", bytes >> 20));
        }
        for hit in &result.limits_hit {
            row("limit hit", &format!("{:?}, {} times", hit.limit, hit.count).to_lowercase());
        }
        for warning in &result.warnings {
            row("warning", &one_line(warning));
        }
        for artifact in &result.artifacts {
            row("artifact", &one_line(&format!("{} ({} bytes)", artifact.path, artifact.size_bytes)));
        }
    }
    for (name, output) in job.result.iter().flat_map(|r| [("stdout", &r.stdout), ("stderr", &r.stderr)]) {
        excerpt(&mut text, name, output, colours);
    }
    text
}

fn excerpt(text: &mut String, name: &str, output: &str, colours: Colours) {
    if output.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", colours.bold(name));
    for line in output.lines().take(OUTPUT_LINES) {
        let _ = writeln!(text, "{}", one_line(line));
    }
    let rest = output.lines().count().saturating_sub(OUTPUT_LINES);
    if rest > 0 {
        let _ = writeln!(text, "… and {rest} more lines: see job logs");
    }
}
