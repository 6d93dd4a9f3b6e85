//! `cofferdam session exec`: one step, whose output becomes ours as it comes.

use super::super::failure::failure;
use super::super::{block_on, connect, print_json};
use super::follow::Shower;
use crate::args::SessionExecArgs;
use crate::exit::{Failure, outcome_code, say};
use crate::host::signals::Signals;
use cofferdam_api::{Command, Step, StepRequest};
use cofferdam_client::{Client, StepEvent};
use std::process::ExitCode;
use std::time::Duration;

pub(super) fn exec(args: &SessionExecArgs) -> Result<ExitCode, Failure> {
    let request = request(args)?;
    let client = connect(&args.remote)?;
    let is_json = args.remote.json;
    let (step, asked) = block_on(async {
        let step = client.step_create(&args.id, &request, Duration::ZERO).await.map_err(failure)?;
        attend(&client, &args.id, step, is_json).await
    })?;
    if is_json {
        print_json(&step)?;
    }
    Ok(ExitCode::from(code(&step, asked, is_json)))
}

/// Follows a step to its end. The first signal interrupts it; whoever asks twice does not want to wait.
async fn attend(
    client: &Client,
    session: &str,
    step: Step,
    is_quiet: bool,
) -> Result<(Step, Option<i32>), Failure> {
    let mut signals = Signals::listen()?;
    let mut output = client.step_output(session, &step.id, None);
    let mut shower = Shower::open()?;
    let (mut asked, mut result) = (None, None);
    loop {
        let event = tokio::select! {
            event = output.next() => event.map_err(failure)?,
            signal = signals.next() => {
                if asked.is_some() {
                    let message = format!("{} was left to itself", step.id);
                    return Err(Failure { code: crate::exit::by_signal(signal), message });
                }
                asked = Some(signal);
                client.step_interrupt(session, &step.id).await.map_err(failure)?;
                continue;
            }
        };
        let Some(event) = event else { break };
        if !is_quiet {
            shower.show(&event)?;
        }
        if let StepEvent::Result { step, .. } = event {
            result = Some(*step);
        }
    }
    let step = match result {
        Some(step) => step,
        None => client.step_get(session, &step.id).await.map_err(failure)?,
    };
    if let (false, Some(error)) = (is_quiet, step.result.as_ref().and_then(|result| result.error.as_ref())) {
        shower.streams.err(format!("{}\n", error.traceback).as_bytes())?;
    }
    Ok((step, asked))
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

fn code(step: &Step, asked: Option<i32>, is_quiet: bool) -> u8 {
    let Some(result) = &step.result else { return crate::exit::OURS };
    if result.kernel_restarted && !is_quiet {
        say("the interpreter is a new one: what was set before is gone");
    }
    if let (false, None, Some(message)) = (is_quiet, result.exit_code, &step.status.message) {
        say(message);
    }
    outcome_code(&result.outcome, asked)
}
