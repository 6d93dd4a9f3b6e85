//! `cofferdam session create`, `show`, `extend` and `delete`.

use super::super::failure::failure;
use super::super::{block_on, connect, print, print_json, secret_uses};
use crate::args::{RemoteArgs, SessionArgs, SessionCreateArgs, SessionExtendArgs};
use crate::exit::Failure;
use cofferdam_api::{LimitsRequest, Session, SessionExtend, SessionRequest};
use cofferdam_core::ByteSize;
use serde_json::json;
use std::process::ExitCode;

pub(super) fn create(args: &SessionCreateArgs) -> Result<ExitCode, Failure> {
    let memory = args.memory.as_deref().map(|text| ByteSize::parse("--memory", text)).transpose()?;
    let request = SessionRequest {
        ttl_seconds: args.ttl_seconds,
        idle_timeout_seconds: args.idle_timeout_seconds,
        env: pairs("--env", &args.env)?,
        metadata: pairs("--metadata", &args.metadata)?,
        limits: LimitsRequest { memory_bytes: memory.map(|size| size.0), ..LimitsRequest::default() },
        backend: args.backend.clone(),
        image: args.image.clone(),
        profile: args.profile.clone(),
        task_id: args.task_id.clone(),
        on_expiry: args.on_expiry.clone(),
        on_drain: args.on_drain.clone(),
        snapshot: args.snapshot.clone(),
        secrets: secret_uses(&args.secret),
        ..SessionRequest::default()
    };
    let client = connect(&args.remote)?;
    let session = block_on(async { client.session_create(&request).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&session),
        // So that a script can take it.
        false => print(&format!("{}\n", session.id)),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn pairs(option: &str, given: &[String]) -> Result<std::collections::BTreeMap<String, String>, Failure> {
    let pair = |text: &String| {
        let wrong = || Failure::new(format!("{option}: {text:?} is not NAME=VALUE"));
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        Ok((name.to_owned(), value.to_owned()))
    };
    given.iter().map(pair).collect()
}

pub(super) fn show(args: &SessionArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let session = block_on(async { client.session_get(&args.id).await.map_err(failure) })?;
    answer(&args.remote, &session)
}

pub(super) fn extend(args: &SessionExtendArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let request = SessionExtend { ttl_seconds: Some(args.ttl_seconds), expires_at: None };
    let session = block_on(async { client.session_extend(&args.id, &request).await.map_err(failure) })?;
    answer(&args.remote, &session)
}

pub(super) fn delete(args: &SessionArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    block_on(async { client.session_delete(&args.id).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&json!({"id": args.id, "deleted": true})),
        false => print(&format!("{}\n", args.id)),
    }?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn answer(remote: &RemoteArgs, session: &Session) -> Result<ExitCode, Failure> {
    let cause = session.status.cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    match remote.json {
        true => print_json(session),
        false => print(&format!(
            "{} {}{cause}, until {}, {} steps\n",
            session.id, session.status.state, session.expires_at, session.steps
        )),
    }?;
    Ok(ExitCode::SUCCESS)
}
