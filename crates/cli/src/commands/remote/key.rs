//! `cofferdam key`: who may use the service.

use super::failure::failure;
use super::table::{by_state, table};
use super::{block_on, connect, print, print_json};
use crate::args::{KeyCommand, KeyCreateArgs, KeyListArgs, KeyRevokeArgs};
use crate::exit::{Failure, say};
use crate::host::colour::Colours;
use cofferdam_api::{Key, KeyRequest};
use serde_json::json;
use std::process::ExitCode;

pub(in crate::commands) fn key(command: KeyCommand) -> Result<ExitCode, Failure> {
    match command {
        KeyCommand::Create(args) => create(args),
        KeyCommand::List(args) => list(&args),
        KeyCommand::Revoke(args) => revoke(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn create(args: KeyCreateArgs) -> Result<(), Failure> {
    let KeyCreateArgs { name, scope, agent, tenant, ttl_seconds, remote } = args;
    let client = connect(&remote)?;
    let request = KeyRequest { name, scopes: scope, agent, tenant, ttl_seconds };
    let key = block_on(async { client.key_create(&request).await.map_err(failure) })?;
    if remote.json {
        return print_json(&key);
    }
    say(&format!("{} was made; its secret is not shown again", key.id));
    print(&format!("{}\n", key.secret))
}

fn list(args: &KeyListArgs) -> Result<(), Failure> {
    let client = connect(&args.remote)?;
    let list = block_on(async { client.key_list().await.map_err(failure) })?;
    if args.remote.json {
        return print_json(&list);
    }
    let rows: Vec<_> = list.keys.iter().map(row).collect();
    print(&table(&["ID", "NAME", "STATE", "CREATED", "SCOPES"], &rows, Colours::for_stdout(), by_state))
}

fn row(key: &Key) -> Vec<String> {
    let state = if key.revoked_at.is_some() { "revoked" } else { "valid" };
    let scopes = key.scopes.join(" ");
    vec![key.id.clone(), key.name.clone(), state.to_owned(), key.created_at.clone(), scopes]
}

fn revoke(args: &KeyRevokeArgs) -> Result<(), Failure> {
    let client = connect(&args.remote)?;
    block_on(async { client.key_delete(&args.id).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&json!({"id": args.id, "revoked": true})),
        false => print(&format!("{}\n", args.id)),
    }
}
