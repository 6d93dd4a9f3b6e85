//! `cofferdam session exec`: one step, whose output becomes ours.

use super::super::failure::failure;
use super::super::{block_on, connect, print_json};
use crate::args::SessionExecArgs;
use crate::exit::{Failure, outcome_code, say};
use cofferdam_api::{Command, Step, StepRequest, StepResult};
use std::io::Write;
use std::process::ExitCode;

pub(super) fn exec(args: &SessionExecArgs) -> Result<ExitCode, Failure> {
    let request = request(args)?;
    let client = connect(&args.remote)?;
    let step = block_on(async { client.step_run(&args.id, &request).await.map_err(failure) })?;
    if args.remote.json {
        print_json(&step)?;
    } else if let Some(result) = &step.result {
        show(result)?;
    }
    Ok(ExitCode::from(code(&step, args.remote.json)))
}

fn request(args: &SessionExecArgs) -> Result<StepRequest, Failure> {
    let (language, code, command) = match (&args.code, args.command.as_slice()) {
        (Some(code), []) => (Some(args.lang.clone()), Some(code.clone()), None),
        (None, []) => return Err(Failure::new("give -c CODE, or -- and a command")),
        (None, words) => (None, None, Some(Command::Argv(words.to_vec()))),
        (Some(_), _) => return Err(Failure::new("give either -c CODE, or a command")),
    };
    let context = args.context.clone();
    Ok(StepRequest {
        language,
        code,
        command,
        context,
        timeout_ms: args.timeout_ms,
        ..StepRequest::default()
    })
}

/// What it wrote, and what it showed as text.
fn show(result: &StepResult) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(result.stdout.as_bytes())?;
    for shown in &result.results {
        if let Some(text) = shown.data.get("text/plain") {
            writeln!(stdout, "{text}")?;
        }
    }
    stdout.flush()?;
    let mut stderr = std::io::stderr().lock();
    stderr.write_all(result.stderr.as_bytes())?;
    if let Some(error) = &result.error {
        writeln!(stderr, "{}", error.traceback)?;
    }
    Ok(stderr.flush()?)
}

fn code(step: &Step, is_quiet: bool) -> u8 {
    let Some(result) = &step.result else { return crate::exit::OURS };
    if result.kernel_restarted && !is_quiet {
        say("the interpreter is a new one: what was set before is gone");
    }
    if let (false, None, Some(message)) = (is_quiet, result.exit_code, &step.status.message) {
        say(message);
    }
    outcome_code(&result.outcome, None)
}
