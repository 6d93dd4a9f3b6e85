//! `cofferdam tenant`: who has how much of a service.

use super::failure::failure;
use super::table::{by_state, one_line, table};
use super::{block_on, connect, print, print_json};
use crate::args::{QuotaArgs, TenantArgs, TenantCommand, TenantCreateArgs, TenantListArgs, TenantSetArgs};
use crate::exit::{Failure, say};
use crate::host::colour::Colours;
use cofferdam_api::{QuotasRequest, Tenant, TenantPatch, TenantRequest};
use cofferdam_core::{ByteSize, InvalidValue};
use serde_json::json;
use std::process::ExitCode;

pub(in crate::commands) fn tenant(command: TenantCommand) -> Result<ExitCode, Failure> {
    match command {
        TenantCommand::Create(args) => create(args),
        TenantCommand::List(args) => list(&args),
        TenantCommand::Show(args) => show(&args),
        TenantCommand::Set(args) => set(&args),
        TenantCommand::Rm(args) => remove(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn quotas(args: &QuotaArgs) -> Result<QuotasRequest, InvalidValue> {
    let QuotaArgs { max_running, max_queued, requests_per_second, burst, artifact_bytes } = args;
    let bytes = artifact_bytes.as_deref().map(|text| ByteSize::parse("--artifact-bytes", text));
    Ok(QuotasRequest {
        max_running: *max_running,
        max_queued: *max_queued,
        requests_per_second: *requests_per_second,
        burst: *burst,
        artifact_bytes: bytes.transpose()?.map(|size| size.0),
    })
}

fn create(args: TenantCreateArgs) -> Result<(), Failure> {
    let TenantCreateArgs { name, quotas: asked, remote } = args;
    let request = TenantRequest { name, quotas: quotas(&asked)? };
    let client = connect(&remote)?;
    let tenant = block_on(async { client.tenant_create(&request).await.map_err(failure) })?;
    match remote.json {
        true => print_json(&tenant),
        false => print(&format!("{}\n", tenant.id)),
    }
}

fn list(args: &TenantListArgs) -> Result<(), Failure> {
    let client = connect(&args.remote)?;
    let list =
        block_on(async { client.tenant_list(args.limit, args.cursor.as_deref()).await.map_err(failure) })?;
    if args.remote.json {
        return print_json(&list);
    }
    let rows: Vec<_> = list.tenants.iter().map(row).collect();
    print(&table(&["ID", "CREATED", "RUNNING", "QUEUED", "NAME"], &rows, Colours::for_stdout(), by_state))?;
    if let Some(cursor) = list.next_cursor {
        say(&format!("there are more: --cursor {cursor}"));
    }
    Ok(())
}

fn row(tenant: &Tenant) -> Vec<String> {
    let created = tenant.created_at.get(..19).unwrap_or(&tenant.created_at).to_owned();
    let most = |number: u64| format!("at most {number}");
    let (running, queued) = (most(tenant.quotas.max_running), most(tenant.quotas.max_queued));
    vec![tenant.id.clone(), created, running, queued, tenant.name.clone()]
}

fn show(args: &TenantArgs) -> Result<(), Failure> {
    let client = connect(&args.remote)?;
    let tenant = block_on(async { client.tenant_get(&args.id).await.map_err(failure) })?;
    shown(&tenant, args.remote.json)
}

fn set(args: &TenantSetArgs) -> Result<(), Failure> {
    let patch = TenantPatch { quotas: quotas(&args.quotas)? };
    let client = connect(&args.remote)?;
    let tenant = block_on(async { client.tenant_update(&args.id, &patch).await.map_err(failure) })?;
    shown(&tenant, args.remote.json)
}

fn shown(tenant: &Tenant, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return print_json(tenant);
    }
    let Tenant { id, name, created_at, quotas } = tenant;
    let rows = [
        ("id", id.clone()),
        ("name", one_line(name)),
        ("created", created_at.clone()),
        ("max running", quotas.max_running.to_string()),
        ("max queued", quotas.max_queued.to_string()),
        ("requests", format!("{} in a second, {} at once", quotas.requests_per_second, quotas.burst)),
        ("artifacts", format!("{} bytes", quotas.artifact_bytes)),
    ];
    let colours = Colours::for_stdout();
    let lines = rows.map(|(name, value)| format!("{} {value}\n", colours.bold(&format!("{name:<12}"))));
    print(&lines.concat())
}

fn remove(args: &TenantArgs) -> Result<(), Failure> {
    let client = connect(&args.remote)?;
    block_on(async { client.tenant_delete(&args.id).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&json!({"id": args.id, "deleted": true})),
        false => print(&format!("{}\n", args.id)),
    }
}
