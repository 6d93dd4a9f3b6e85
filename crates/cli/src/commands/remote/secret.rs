//! `cofferdam secret`: values that sessions are given as files.

use super::failure::failure;
use super::table::{by_state, table};
use super::{block_on, connect, print, print_json};
use crate::args::{RemoteOnlyArgs, SecretArgs, SecretCommand};
use crate::exit::{Failure, say};
use crate::host::colour::Colours;
use cofferdam_api::{Secret, SecretPut};
use serde_json::json;
use std::io::Read;
use std::process::ExitCode;

/// More than a secret may have, so that too much is seen as that.
const MOST: u64 = (64 << 10) + 1;

pub(in crate::commands) fn secret(command: SecretCommand) -> Result<ExitCode, Failure> {
    match command {
        SecretCommand::Set(args) => set(&args),
        SecretCommand::List(args) => list(&args),
        SecretCommand::Delete(args) => delete(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// From stdin, because a command line is seen by others.
fn set(args: &SecretArgs) -> Result<(), Failure> {
    let mut value = String::new();
    let read = std::io::stdin().lock().take(MOST).read_to_string(&mut value);
    read.map_err(|error| Failure::new(format!("the secret cannot be read from stdin: {error}")))?;
    let client = connect(&args.remote)?;
    let request = SecretPut { value };
    let secret = block_on(async { client.secret_put(&args.name, &request).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&secret),
        false => print(&format!("{}\n", secret.name)),
    }
}

fn list(args: &RemoteOnlyArgs) -> Result<(), Failure> {
    let client = connect(&args.remote)?;
    let list = block_on(async { client.secret_list(None).await.map_err(failure) })?;
    if args.remote.json {
        return print_json(&list);
    }
    let row = |secret: &Secret| {
        let Secret { name, changed_by, changed_at, .. } = secret;
        vec![name.clone(), changed_at.clone(), changed_by.clone()]
    };
    let rows: Vec<_> = list.secrets.iter().map(row).collect();
    print(&table(&["NAME", "CHANGED", "BY"], &rows, Colours::for_stdout(), by_state))?;
    if list.next_cursor.is_some() {
        say("there are more, over GET /v1/secrets");
    }
    Ok(())
}

fn delete(args: &SecretArgs) -> Result<(), Failure> {
    let client = connect(&args.remote)?;
    block_on(async { client.secret_delete(&args.name).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&json!({"name": args.name, "deleted": true})),
        false => print(&format!("{}\n", args.name)),
    }
}
