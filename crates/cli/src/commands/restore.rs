//! `cofferdam restore`: a data folder from a backup.

use super::data_folder;
use crate::args::RestoreArgs;
use crate::exit::Failure;
use cofferdam_control::now_ms;
use cofferdam_store::file::{Restored, restore as restore_file};
use cofferdam_store::{Checked, Location, Settled, Store};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn restore(args: &RestoreArgs) -> Result<ExitCode, Failure> {
    let runtime = data_folder::runtime()?;
    match (&args.database, &args.from, &args.data) {
        (Some(address), _, _) => runtime.block_on(settle(address, args.keep_queued)),
        (None, Some(from), Some(data)) => runtime.block_on(unpack(args, from, data)),
        _ => Err(Failure::new("--from FILE and --data DIR are needed; see --help")),
    }
}

async fn unpack(args: &RestoreArgs, from: &Path, data: &Path) -> Result<ExitCode, Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(data);
    made.map_err(|error| Failure::new(format!("--data: {} cannot be made: {error}", data.display())))?;
    let database = data_folder::database(data);
    if database.exists() && !args.replace {
        return Err(Failure::new(format!(
            "--data: {} has a store already; name another folder, or add --replace",
            data.display()
        )));
    }
    let Restored { checked, settled, bytes: _, before, files } =
        restore_file(from, &database, args.replace, args.keep_queued, now_ms()).await?;
    data_folder::write_files(data, &files, args.replace)?;
    println!("{}: {}", data.display(), told(checked, settled));
    if let Some(before) = before {
        println!("the store that was there is {} now", before.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// A database that other tools have restored.
async fn settle(address: &str, keeps_queued: bool) -> Result<ExitCode, Failure> {
    let store = Store::open(&Location::Postgres(address.to_owned())).await?;
    let checked = store.check().await?;
    let settled = store.settle_restored(keeps_queued, now_ms()).await?;
    store.close().await;
    println!("{}", told(checked, settled));
    Ok(ExitCode::SUCCESS)
}

fn told(checked: Checked, settled: Settled) -> String {
    let Checked { jobs, tenants, entries } = checked;
    let Settled { lost, errored } = settled;
    format!("{jobs} jobs, {entries} entries of {tenants} audits checked, {lost} lost, {errored} errored")
}
