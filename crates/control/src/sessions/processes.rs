//! `process.start`, and what is asked of a process that runs. They are their worker's: nothing of what they write is
//! kept in the store.

use super::context_restart::UNREACHABLE;
use crate::session_worker::{Placed, ProcessTold, SessionFailure};
use crate::worker::Worker;
use crate::{Control, ControlError, Result};
use cofferdam_api::{Command, ProcessRequest, ProcessView, TerminalSize};
use cofferdam_core::{GuestPath, InvalidValue};
use cofferdam_policy::Permit;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any session; what a program of another language can write down.
const MAX_TIMEOUT_MS: u64 = i64::MAX as u64;

const MAX_SIGNAL: i32 = 64;
const MAX_SIZE: u16 = 1000;

/// How long one look for a process's end waits, and the pause where the store was away.
const LOOK: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

/// After this number nothing is written: whoever asks from here on waits for the end.
const NO_OUTPUT: u64 = i64::MAX as u64;

impl Control {
    pub async fn start_process(
        &self,
        permit: &Permit,
        session: &str,
        request: ProcessRequest,
    ) -> Result<ProcessView> {
        check(&request)?;
        let details = json!({"terminal": request.terminal.is_some()});
        let record = self.use_session(permit, session, "process.started", details).await?;
        let (worker, id) = self.reach(&record).await?;
        let at = Placed { id, generation: record.generation };
        let started = worker.sessions().ok_or(UNREACHABLE)?.start_process(&at, request).await;
        let started = started.map_err(refused)?;
        self.spawn_end_note(permit, session, started.number);
        Ok(started)
    }

    pub async fn list_processes(&self, permit: &Permit, session: &str) -> Result<Vec<ProcessView>> {
        let (worker, at) = self.placed(permit, session).await?;
        worker.sessions().ok_or(UNREACHABLE)?.list_processes(&at).await.map_err(refused)
    }

    /// What a process wrote after a number; where there is nothing, what comes within a time.
    pub async fn follow_process(
        &self,
        permit: &Permit,
        session: &str,
        number: u64,
        after: u64,
        time: Duration,
    ) -> Result<ProcessTold> {
        let (worker, at) = self.placed(permit, session).await?;
        let sessions = worker.sessions().ok_or(UNREACHABLE)?;
        sessions.process_output(&at, number, after, time).await.map_err(refused)
    }

    /// A process, once it has ended or a time has passed.
    pub async fn wait_process(
        &self,
        permit: &Permit,
        session: &str,
        number: u64,
        time: Duration,
    ) -> Result<ProcessView> {
        Ok(self.follow_process(permit, session, number, NO_OUTPUT, time).await?.process)
    }

    /// Notes that somebody is connected to a process.
    pub async fn attach_process(
        &self,
        permit: &Permit,
        session: &str,
        number: u64,
        by_ticket: bool,
    ) -> Result<()> {
        let details = json!({"process": number, "by_ticket": by_ticket});
        self.use_session(permit, session, "process.attached", details).await.map(drop)
    }

    /// Notes that a session is in use, for its idle time-out; this is in no audit.
    pub async fn touch_session(&self, permit: &Permit, session: &str) -> Result<()> {
        let (tenant, id) = (permit.tenant().to_owned(), session.to_owned());
        Ok(self.parts.store.use_session(tenant, id, crate::now_ms(), None).await.map(drop)?)
    }

    pub async fn write_process(
        &self,
        permit: &Permit,
        session: &str,
        number: u64,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<()> {
        let (worker, at) = self.placed(permit, session).await?;
        let sessions = worker.sessions().ok_or(UNREACHABLE)?;
        sessions.write_process(&at, number, bytes, is_last).await.map_err(refused)
    }

    pub async fn signal_process(
        &self,
        permit: &Permit,
        session: &str,
        number: u64,
        signal: i32,
    ) -> Result<()> {
        if !(1..=MAX_SIGNAL).contains(&signal) {
            return Err(InvalidValue::new("signal", signal.to_string(), "it must be from 1 to 64").into());
        }
        let details = json!({"process": number, "signal": signal});
        let record = self.use_session(permit, session, "process.signaled", details).await?;
        let (worker, id) = self.reach(&record).await?;
        let at = Placed { id, generation: record.generation };
        worker.sessions().ok_or(UNREACHABLE)?.signal_process(&at, number, signal).await.map_err(refused)
    }

    pub async fn resize_process(
        &self,
        permit: &Permit,
        session: &str,
        number: u64,
        size: TerminalSize,
    ) -> Result<()> {
        check_size(size)?;
        let (worker, at) = self.placed(permit, session).await?;
        let resized = worker.sessions().ok_or(UNREACHABLE)?.resize_process(&at, number, size).await;
        resized.map_err(|failure| match failure.code.as_str() {
            // The size was looked at; what is left to be wrong is the process.
            "invalid" => ControlError::Conflict { text: "the process has no terminal".to_owned() },
            _ => refused(failure),
        })
    }

    /// Notes how a process ends. One that ends with its session is in the note of that.
    fn spawn_end_note(&self, permit: &Permit, session: &str, number: u64) {
        let (control, permit, session) = (self.clone(), permit.clone(), session.to_owned());
        tokio::spawn(async move {
            let outcome = loop {
                let look = control.wait_process(&permit, &session, number, LOOK);
                let seen = tokio::select! {
                    seen = look => seen,
                    () = control.stopped() => return,
                };
                match seen {
                    Ok(process) => {
                        if let Some(outcome) = process.outcome {
                            break outcome;
                        }
                    }
                    Err(ControlError::Store(_)) => tokio::time::sleep(PAUSE).await,
                    Err(_) => return,
                }
            };
            let details = json!({"process": number, "outcome": outcome});
            let event = control.event(&permit, "process.ended", &session, details);
            // A store that is away has told of it elsewhere.
            let _ = control.parts.store.note(permit.tenant().to_owned(), event).await;
        });
    }

    /// Where a session is that is ready.
    pub(super) async fn placed(&self, permit: &Permit, session: &str) -> Result<(Arc<dyn Worker>, Placed)> {
        let record = self.get_session(permit, session).await?;
        if record.state != cofferdam_core::SessionState::Ready {
            return Err(ControlError::SessionState { state: record.state, cause: record.cause });
        }
        let (worker, id) = self.reach(&record).await?;
        Ok((worker, Placed { id, generation: record.generation }))
    }
}

/// A process, as it stands, if there is one of that number.
pub(super) async fn known_process(worker: &dyn Worker, at: &Placed, number: u64) -> Result<ProcessView> {
    let sessions = worker.sessions().ok_or(UNREACHABLE)?;
    let told = sessions.process_output(at, number, NO_OUTPUT, Duration::ZERO).await.map_err(refused)?;
    Ok(told.process)
}

fn check(request: &ProcessRequest) -> Result<()> {
    let wrong = |field, fix| Err(InvalidValue::new(field, "", fix).into());
    match &request.command {
        None => return wrong("command", "name a program to run"),
        Some(Command::Argv(argv)) if argv.first().is_none_or(String::is_empty) => {
            return wrong("command", "name a program to run");
        }
        Some(Command::Argv(argv)) if argv.iter().any(|word| word.contains('\0')) => {
            return wrong("command", "an argument must not contain NUL");
        }
        Some(Command::Shell(line)) if line.contains('\0') => {
            return wrong("command", "an argument must not contain NUL");
        }
        Some(_) => {}
    }
    if let Some(time) = request.timeout_ms.filter(|time| !(1..=MAX_TIMEOUT_MS).contains(time)) {
        let fix = format!("it must be from 1 to {MAX_TIMEOUT_MS}");
        return Err(InvalidValue::new("timeout_ms", time.to_string(), fix).into());
    }
    if let Some(path) = &request.workdir {
        GuestPath::parse("workdir", path)?;
    }
    request.terminal.map_or(Ok(()), check_size)
}

fn check_size(size: TerminalSize) -> Result<()> {
    let fits = |count: u16| (1..=MAX_SIZE).contains(&count);
    match fits(size.rows) && fits(size.columns) {
        true => Ok(()),
        false => {
            let value = format!("{} by {}", size.rows, size.columns);
            Err(InvalidValue::new("terminal", value, "rows and columns must be from 1 to 1000").into())
        }
    }
}

fn refused(failure: SessionFailure) -> ControlError {
    let SessionFailure { code, message } = failure;
    match code.as_str() {
        "not_found" => ControlError::NotFound { what: "process" },
        "input_closed" | "input_full" => ControlError::Input { text: message },
        "invalid" | "not_startable" | "not_permitted" => InvalidValue::new("command", "", message).into(),
        "unsupported" => ControlError::Unsupported { field: "terminal", why: message.into() },
        "session_gone" | "session_stale" => UNREACHABLE,
        _ => ControlError::Unavailable(message),
    }
}
