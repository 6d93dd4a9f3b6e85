//! `cofferdam session list`.

use super::super::failure::failure;
use super::super::table::{by_state, table};
use super::super::{block_on, connect, print, print_json};
use crate::args::SessionListArgs;
use crate::exit::{Failure, say};
use crate::host::colour::Colours;
use cofferdam_api::Session;
use cofferdam_client::SessionQuery;
use cofferdam_core::{InvalidValue, SessionState};
use std::process::ExitCode;

pub(super) fn list(args: &SessionListArgs) -> Result<ExitCode, Failure> {
    let state = args.state.as_deref().map(|text| {
        let fix = || format!("it must be one of {}", SessionState::ALL.map(SessionState::as_str).join(", "));
        SessionState::from_name(text).ok_or_else(|| InvalidValue::new("--state", text, fix()))
    });
    let query = SessionQuery {
        state: state.transpose()?,
        task_id: args.task_id.clone(),
        agent: args.agent.clone(),
        limit: Some(args.limit),
        cursor: args.cursor.clone(),
    };
    let client = connect(&args.remote)?;
    let list = block_on(async { client.session_list(&query).await.map_err(failure) })?;
    if args.remote.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = list.sessions.iter().map(row).collect();
    print(&table(&["ID", "STATE", "EXPIRES", "STEPS", "CAUSE"], &rows, Colours::for_stdout(), by_state))?;
    if let Some(cursor) = list.next_cursor {
        say(&format!("there are more: --cursor {cursor}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(session: &Session) -> Vec<String> {
    // Seconds are enough to know when.
    let expires = session.expires_at.get(..19).unwrap_or(&session.expires_at).to_owned();
    let cause = session.status.cause.map(|cause| cause.to_string()).unwrap_or_default();
    vec![session.id.clone(), session.status.state.to_string(), expires, session.steps.to_string(), cause]
}
