//! `cofferdam job run`: as `cofferdam run`, somewhere else.

use super::super::failure::failure;
use super::super::{block_on, connect, print, print_json};
use super::attend::{Attended, Show, attend};
use super::inputs;
use super::request::request;
use crate::args::JobRunArgs;
use crate::exit::{Failure, outcome_code, say};
use cofferdam_core::Outcome;
use std::process::ExitCode;
use std::time::Duration;

pub(super) fn run(args: &JobRunArgs) -> Result<ExitCode, Failure> {
    let mut request = request(args)?;
    let client = connect(&args.remote)?;
    let is_json = args.remote.json;
    block_on(async {
        let inputs = inputs::upload(&client, args, &mut request).await?;
        let job = client.job_create(&request, Duration::ZERO).await.map_err(failure)?;
        if args.detach {
            match is_json {
                true => print_json(&job),
                false => print(&format!("{}\n", job.id)),
            }?;
            return Ok(ExitCode::SUCCESS);
        }
        let show = if is_json { Show::Nothing } else { Show::Live };
        let attended = attend(&client, &job.id, show).await?;
        inputs::remove(&client, &inputs).await;
        if is_json {
            print_json(&attended.job)?;
        }
        Ok(end(&attended))
    })
}

/// Says how it ended, where its exit code does not, and leaves with that code.
fn end(attended: &Attended) -> ExitCode {
    let Attended { job, asked } = attended;
    let Some(result) = &job.result else {
        say(&format!("{} is {} and has no result", job.id, job.status.state));
        return ExitCode::from(crate::exit::OURS);
    };
    result.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    if !matches!(result.outcome, Outcome::Exited { .. } | Outcome::Signaled { .. }) {
        let message = job.status.message.as_deref().unwrap_or("it has no message");
        say(&format!("{}: {}: {message}", job.id, job.status.state));
    }
    ExitCode::from(outcome_code(&result.outcome, *asked))
}
