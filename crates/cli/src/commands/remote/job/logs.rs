//! `cofferdam job logs`.

use super::super::{block_on, connect, print_json};
use super::attend::{each, write};
use crate::args::JobLogsArgs;
use crate::exit::Failure;
use crate::host::streams::Streams;
use cofferdam_client::OutputEvent;
use serde_json::{Value, json};
use std::process::ExitCode;

pub(super) fn logs(args: &JobLogsArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let mut output = client.job_output(&args.id, args.after);
    if !args.follow {
        output = output.up_to_now();
    }
    let is_json = args.remote.json;
    let mut streams = Streams::open()?;
    block_on(each(&mut output, |event| match is_json {
        true => print_json(&line(&event)),
        false => write(&mut streams, &event),
    }))?;
    Ok(ExitCode::SUCCESS)
}

/// An event with its number. A line that is whole was seen whole.
fn line(event: &OutputEvent) -> Value {
    let text = |kind: &str, seq: &i64, bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => json!({"seq": seq, "event": kind, "text": text}),
        Err(_) => {
            use base64::Engine;
            let exact = base64::engine::general_purpose::STANDARD.encode(bytes);
            json!({"seq": seq, "event": kind, "text": String::from_utf8_lossy(bytes), "base64": exact})
        }
    };
    match event {
        OutputEvent::Init { seq, id } => json!({"seq": seq, "event": "init", "id": id}),
        OutputEvent::Stdout { seq, bytes } => text("stdout", seq, bytes),
        OutputEvent::Stderr { seq, bytes } => text("stderr", seq, bytes),
        OutputEvent::Truncated { seq, stream } => json!({"seq": seq, "event": "truncated", "stream": stream}),
        OutputEvent::Result { seq, job } => json!({"seq": seq, "event": "result", "job": job}),
        OutputEvent::Complete { seq } => json!({"seq": seq, "event": "complete"}),
    }
}
