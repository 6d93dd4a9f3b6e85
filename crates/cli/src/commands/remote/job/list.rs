//! `cofferdam job list`.

use super::super::failure::failure;
use super::super::table::{by_state, table};
use super::super::{block_on, connect, print, print_json};
use crate::args::JobListArgs;
use crate::exit::{Failure, say};
use crate::host::colour::Colours;
use cofferdam_api::Job;
use cofferdam_client::JobQuery;
use cofferdam_core::{InvalidValue, JobState};
use std::process::ExitCode;

pub(super) fn list(args: &JobListArgs) -> Result<ExitCode, Failure> {
    let state = args.state.as_deref().map(|text| {
        let fix = || format!("it must be one of {}", JobState::ALL.map(JobState::as_str).join(", "));
        JobState::from_name(text).ok_or_else(|| InvalidValue::new("--state", text, fix()))
    });
    let query = JobQuery {
        state: state.transpose()?,
        task_id: args.task_id.clone(),
        limit: Some(args.limit),
        cursor: args.cursor.clone(),
    };
    let client = connect(&args.remote)?;
    let list = block_on(async { client.job_list(&query).await.map_err(failure) })?;
    if args.remote.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = list.jobs.iter().map(row).collect();
    print(&table(&["ID", "STATE", "CREATED", "TASK", "MESSAGE"], &rows, Colours::for_stdout(), by_state))?;
    if let Some(cursor) = list.next_cursor {
        say(&format!("there are more: --cursor {cursor}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The longest task that is shown whole; a job's own id is one.
const TASK_WIDTH: usize = 20;

fn row(job: &Job) -> Vec<String> {
    let task = if job.task_id == job.id { "-" } else { &job.task_id };
    let task = match task.char_indices().nth(TASK_WIDTH) {
        Some((end, _)) => format!("{}…", &task[..end]),
        None => task.to_owned(),
    };
    // Seconds are enough to recognise a job by.
    let created = job.created_at.get(..19).unwrap_or(&job.created_at).to_owned();
    let message = job.status.message.clone().unwrap_or_default();
    vec![job.id.clone(), job.status.state.to_string(), created, task, message]
}
