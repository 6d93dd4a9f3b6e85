//! `cofferdam master-key`, and where the service has its master key from: a file of its data folder, or the environment.
//!
//! Everything that is sealed changes its key in one transaction, which also notes the fingerprint of the new one. So
//! the store alone says which key counts, and the files follow it: see [`KeyFiles`].

use super::data_folder;
use super::roles::DataFolder;
use crate::args::{MasterKeyCommand, MasterKeyRotateArgs};
use crate::exit::{Failure, say};
use cofferdam_artifacts::{ArtifactError, KeyFiles, MasterKey};
use cofferdam_control::{check_master_key, rewrap_master_key};
use cofferdam_store::{Location, Store};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

const VARIABLE: &str = "COFFERDAM_MASTER_KEY";
const NEW_VARIABLE: &str = "COFFERDAM_NEW_MASTER_KEY";

pub(super) fn master_key(command: &MasterKeyCommand) -> Result<ExitCode, Failure> {
    match command {
        MasterKeyCommand::Rotate(args) => data_folder::runtime()?.block_on(rotate(args)),
    }
}

/// The key that a store is under, for a server that starts. What a rotation has left undone is done first.
pub(super) async fn open(store: &Store, data: &Path) -> Result<MasterKey, Failure> {
    let key = match from_environment(VARIABLE)? {
        Some(key) => key,
        None => {
            let files = KeyFiles::new(data);
            files.settle(store.master_key().await?.as_deref()).map_err(failed)?;
            MasterKey::open_or_make(&files.current()).map_err(failed)?
        }
    };
    check_master_key(store, &key).await?;
    Ok(key)
}

/// The key, for a command that changes nothing.
pub(super) fn read(data: &Path) -> Result<MasterKey, Failure> {
    if let Some(key) = from_environment(VARIABLE)? {
        return Ok(key);
    }
    let files = KeyFiles::new(data);
    let path = files.current();
    if !path.is_file() {
        let why = "is not there; --data names the data folder of the service";
        return Err(Failure::new(format!("{} {why}", path.display())));
    }
    if files.are_unsettled() {
        let fix = "start the server, or run cofferdam master-key rotate, which finish it";
        return Err(Failure::new(format!("{}: it is being changed; {fix}", path.display())));
    }
    MasterKey::open_or_make(&path).map_err(failed)
}

/// A key in the environment. What is wrong with it is said without showing it.
fn from_environment(name: &str) -> Result<Option<MasterKey>, Failure> {
    let Some(text) = std::env::var_os(name) else { return Ok(None) };
    let text = text.into_string().unwrap_or_default();
    let key = MasterKey::parse(&text);
    key.map(Some).ok_or_else(|| {
        let fix = "make one with: openssl rand -hex 32";
        Failure::new(format!("{name}: it is not 64 hexadecimal digits; {fix}"))
    })
}

fn failed(error: ArtifactError) -> Failure {
    Failure::new(format!("master key: {error}"))
}

async fn rotate(args: &MasterKeyRotateArgs) -> Result<ExitCode, Failure> {
    let database = data_folder::database(&args.data);
    if !args.data.is_dir() || (args.database.is_none() && !database.is_file()) {
        let why = "has no store; --data names the data folder of the service";
        return Err(Failure::new(format!("--data: {} {why}", args.data.display())));
    }
    let (kept, named) = (from_environment(VARIABLE)?, from_environment(NEW_VARIABLE)?);
    if kept.is_some() && named.is_none() {
        let why = format!("{VARIABLE} is set, so the new key is wanted in {NEW_VARIABLE}, which is not");
        return Err(Failure::new(why));
    }
    // For as long as this takes, no server starts here.
    let _folder = DataFolder::open(&args.data)?;
    let location = args.database.clone().map_or(Location::Sqlite(database), Location::Postgres);
    let store = Store::open(&location).await?;
    let files = KeyFiles::new(&args.data);
    let noted = store.master_key().await?;
    let is_file = kept.is_none();
    if let Some(new) = &named
        && noted.as_deref() == Some(new.fingerprint())
    {
        // It was done before, and died before it could say so.
        if is_file {
            files.destroy_current().map_err(failed)?;
        }
        store.close().await;
        return report(args, None, new, 0, true);
    }
    let before = match kept {
        Some(key) => key,
        None => {
            files.settle(noted.as_deref()).map_err(failed)?;
            read(&args.data)?
        }
    };
    check_master_key(&store, &before).await?;
    let (next, is_named) = match named {
        Some(key) => (key, true),
        None => (files.draw_next().map_err(failed)?, false),
    };
    let done = rewrap_master_key(&store, &before, &next, |done| {
        if !args.json {
            say(&format!("{} rewrapped", done.count));
        }
    });
    let done = done.await?;
    store.close().await;
    if is_file && is_named {
        files.destroy_current().map_err(failed)?;
    } else if is_file {
        files.settle(Some(next.fingerprint())).map_err(failed)?;
    }
    report(args, Some(&before), &next, done.count, is_named)
}

fn report(
    args: &MasterKeyRotateArgs,
    before: Option<&MasterKey>,
    next: &MasterKey,
    count: u64,
    is_named: bool,
) -> Result<ExitCode, Failure> {
    let (before, next) = (before.map(MasterKey::fingerprint), next.fingerprint());
    if args.json {
        println!("{}", json!({"before": before, "current": next, "rewrapped": count}));
        return Ok(ExitCode::SUCCESS);
    }
    match before {
        Some(before) => {
            println!("{next} is the master key now, in the place of {before}: {count} keys and secrets")
        }
        None => println!("{next} is the master key already"),
    }
    if is_named {
        println!("start the server with it in {VARIABLE}, and destroy the old one wherever it is kept");
    }
    println!("signed addresses that were given out before are not valid any more");
    Ok(ExitCode::SUCCESS)
}
