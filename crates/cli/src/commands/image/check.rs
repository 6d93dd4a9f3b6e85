//! `cofferdam image check`: the contract, tried in a sandbox, and a search for credentials.

use super::super::MakeBackend;
use super::super::remote::table::table;
use super::super::remote::{print, print_json};
use super::contract::contract;
use super::store;
use crate::args::ImageCheckArgs;
use crate::backends::Choice;
use crate::exit::{Failure, job_failure};
use crate::host::colour::Colours;
use cofferdam_images::{BASE_PROFILE, CheckRow, CheckState, Finding, ImageRef, Profile, scan};
use serde::Serialize;
use std::process::ExitCode;

/// Something is missing.
const FAILED: u8 = 1;

#[derive(Serialize)]
struct Answer<'a> {
    image: String,
    profile: &'a str,
    passed: bool,
    checks: &'a [CheckRow],
    credentials: &'a [Finding],
}

pub(super) fn check(args: &ImageCheckArgs, backend: MakeBackend) -> Result<ExitCode, Failure> {
    let profile = Profile::by_name("--profile", args.profile.as_deref().unwrap_or(BASE_PROFILE))?;
    let lease = store()?.open(&ImageRef::parse("image", &args.image)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checks = runtime.block_on(async {
        let tried = contract(&*backend(Choice::Native)?, &lease, &profile).await;
        tried.map_err(|error| job_failure(&error))
    })?;
    let credentials = scan(&lease)?;
    let passed = credentials.is_empty() && checks.iter().all(|row| row.state == CheckState::Ok);
    if args.json {
        let (image, profile) = (lease.image.id.to_string(), profile.name.as_str());
        print_json(&Answer { image, profile, passed, checks: &checks, credentials: &credentials })?;
    } else {
        print(&text(&checks, &credentials))?;
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn text(checks: &[CheckRow], credentials: &[Finding]) -> String {
    let word = |state: CheckState| match state {
        CheckState::Ok => "ok",
        CheckState::Missing => "missing",
        CheckState::Failed => "failed",
    };
    let mut rows: Vec<Vec<String>> = checks
        .iter()
        .map(|row| vec![word(row.state).to_owned(), row.name.clone(), row.detail.clone()])
        .collect();
    for Finding { place, layer, what } in credentials {
        let layer = layer.map(|number| format!(", in layer {number}")).unwrap_or_default();
        rows.push(vec!["failed".to_owned(), "credentials".to_owned(), format!("{what}: {place}{layer}")]);
    }
    if credentials.is_empty() {
        rows.push(vec![
            "ok".to_owned(),
            "credentials".to_owned(),
            "none found in files, environment and history".to_owned(),
        ]);
    }
    table(&["STATE", "CHECK", "DETAIL"], &rows, Colours::for_stdout(), |colours, cell| match cell {
        "ok" => colours.green(cell),
        "missing" | "failed" => colours.red(cell),
        _ => cell.to_owned(),
    })
}
