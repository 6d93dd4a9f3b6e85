//! Follows a job to its end, shows what it writes as it comes, and cancels it when we are told to end.

use super::super::failure::failure;
use super::super::progress::Waiting;
use crate::exit::{Failure, say};
use crate::host::signals::Signals;
use crate::host::streams::Streams;
use cofferdam_api::Job;
use cofferdam_client::{Client, Output, OutputEvent};

/// How a job ended, and the signal by which we were told to end it.
pub(super) struct Attended {
    pub(super) job: Job,
    pub(super) asked: Option<i32>,
}

/// Where output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    Live,
    /// Nowhere, but that it runs is shown.
    Waiting,
    Nothing,
}

pub(super) async fn attend(client: &Client, id: &str, show: Show) -> Result<Attended, Failure> {
    let mut signals = Signals::listen()?;
    let mut output = client.job_output(id, None);
    let mut streams = Streams::open()?;
    let waiting = Waiting::new(show == Show::Nothing);
    waiting.say(format!("{id} runs"));
    let (mut asked, mut result) = (None, None);
    loop {
        let event = tokio::select! {
            event = output.next() => event.map_err(failure)?,
            signal = signals.next() => {
                // Whoever asks twice does not want to wait.
                if asked.is_some() {
                    return Err(Failure { code: crate::exit::by_signal(signal), message: format!("{id} was left to itself") });
                }
                asked = Some(signal);
                waiting.say(format!("{id} is being cancelled"));
                client.job_cancel(id).await.map_err(failure)?;
                continue;
            }
            () = waiting.begin() => continue,
        };
        match event {
            Some(OutputEvent::Result { job, .. }) => result = Some(*job),
            Some(event) if show == Show::Live => waiting.aside(|| write(&mut streams, &event))?,
            Some(_) => {}
            None => break,
        }
    }
    waiting.end();
    let job = match result {
        Some(job) => job,
        None => client.job_get(id).await.map_err(failure)?,
    };
    Ok(Attended { job, asked })
}

/// Shows an event the way a program would have written it.
pub(super) fn write(streams: &mut Streams, event: &OutputEvent) -> Result<(), Failure> {
    match event {
        OutputEvent::Stdout { bytes, .. } => streams.out(bytes),
        OutputEvent::Stderr { bytes, .. } => streams.err(bytes),
        OutputEvent::Truncated { stream, .. } => {
            say(&format!("{stream} was more than is kept; the rest of it was dropped"));
            Ok(())
        }
        OutputEvent::Init { .. } | OutputEvent::Result { .. } | OutputEvent::Complete { .. } => Ok(()),
    }
}

/// Every event until the end, or until what there is now.
pub(super) async fn each(
    output: &mut Output,
    mut take: impl FnMut(OutputEvent) -> Result<(), Failure>,
) -> Result<(), Failure> {
    while let Some(event) = output.next().await.map_err(failure)? {
        take(event)?;
    }
    Ok(())
}
