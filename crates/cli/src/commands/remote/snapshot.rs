//! `cofferdam snapshot`: files of sessions under names.

use super::failure::failure;
use super::table::{by_state, table};
use super::{block_on, connect, print, print_json};
use crate::args::{RemoteOnlyArgs, SnapshotArgs, SnapshotCommand};
use crate::exit::{Failure, say};
use crate::host::colour::Colours;
use cofferdam_api::Snapshot;
use cofferdam_core::ByteSize;
use serde_json::json;
use std::process::ExitCode;

pub(in crate::commands) fn snapshot(command: SnapshotCommand) -> Result<ExitCode, Failure> {
    match command {
        SnapshotCommand::List(args) => list(&args),
        SnapshotCommand::Delete(args) => delete(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn list(args: &RemoteOnlyArgs) -> Result<(), Failure> {
    let client = connect(&args.remote)?;
    let list = block_on(async { client.snapshot_list(None).await.map_err(failure) })?;
    if args.remote.json {
        return print_json(&list);
    }
    let row = |snapshot: &Snapshot| {
        let Snapshot { id, name, session, size_bytes, created_at, .. } = snapshot;
        let size = ByteSize(*size_bytes).to_string();
        vec![id.clone(), name.clone(), size, created_at.clone(), session.clone()]
    };
    let rows: Vec<_> = list.snapshots.iter().map(row).collect();
    print(&table(&["ID", "NAME", "SIZE", "CREATED", "SESSION"], &rows, Colours::for_stdout(), by_state))?;
    if list.next_cursor.is_some() {
        say("there are more, over GET /v1/snapshots");
    }
    Ok(())
}

fn delete(args: &SnapshotArgs) -> Result<(), Failure> {
    let client = connect(&args.remote)?;
    block_on(async { client.snapshot_delete(&args.name).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&json!({"name": args.name, "deleted": true})),
        false => print(&format!("{}\n", args.name)),
    }
}
