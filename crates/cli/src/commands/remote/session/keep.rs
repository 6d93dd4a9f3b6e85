//! `cofferdam session pause`, `resume`, `fork` and `snapshot`.

use super::super::failure::failure;
use super::super::{block_on, connect, print, print_json};
use super::one::answer;
use crate::args::{SessionArgs, SessionForkArgs, SessionPauseArgs, SessionSnapshotArgs};
use crate::exit::{Failure, say};
use cofferdam_api::{PauseKind, Session, SessionFork, SessionPause, SnapshotRequest};
use cofferdam_core::InvalidValue;
use std::process::ExitCode;

pub(super) fn pause(args: &SessionPauseArgs) -> Result<ExitCode, Failure> {
    let mode = match args.mode.as_str() {
        "freeze" => PauseKind::Freeze,
        "archive" => PauseKind::Archive,
        other => return Err(InvalidValue::new("--mode", other, "it must be freeze or archive").into()),
    };
    let client = connect(&args.remote)?;
    let request = SessionPause { mode };
    let session = block_on(async { client.session_pause(&args.id, &request).await.map_err(failure) })?;
    tell(&session, args.remote.json);
    answer(&args.remote, &session)
}

pub(super) fn resume(args: &SessionArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let session = block_on(async { client.session_resume(&args.id).await.map_err(failure) })?;
    tell(&session, args.remote.json);
    answer(&args.remote, &session)
}

/// What is kept, and what not, for people.
fn tell(session: &Session, is_quiet: bool) {
    if let (false, Some(pause)) = (is_quiet, &session.pause) {
        say(&kept(&pause.kept, &pause.not_kept));
    }
}

fn kept(kept: &[String], not_kept: &[String]) -> String {
    match not_kept.is_empty() {
        true => format!("kept: {}", kept.join(", ")),
        false => format!("kept: {}; not kept: {}", kept.join(", "), not_kept.join(", ")),
    }
}

pub(super) fn fork(args: &SessionForkArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let request = SessionFork { count: args.count };
    let forks = block_on(async { client.session_fork(&args.id, &request).await.map_err(failure) })?;
    if args.remote.json {
        print_json(&forks)?;
        return Ok(ExitCode::SUCCESS);
    }
    say(&kept(&forks.kept, &forks.not_kept));
    let ids: String = forks.sessions.iter().map(|session| format!("{}\n", session.id)).collect();
    print(&ids)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn snapshot(args: &SessionSnapshotArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let request = SnapshotRequest { name: args.name.clone() };
    let snapshot = block_on(async { client.snapshot_create(&args.id, &request).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&snapshot),
        false => print(&format!("{}\n", snapshot.id)),
    }?;
    Ok(ExitCode::SUCCESS)
}
