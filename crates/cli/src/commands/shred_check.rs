//! `cofferdam session shred-check`: looks for what a deleted session has left, on the machine of the service.
//!
//! A copy of its key is known by the master key, which alone opens it. So every byte of every file is looked at, and no
//! record is believed.

use super::{data_folder, master_key, serve};
use crate::args::ShredCheckArgs;
use crate::exit::Failure;
use cofferdam_artifacts::{MasterKey, archive_about, find_wrapped_key, steps_about};
use cofferdam_core::SessionId;
use cofferdam_store::{Location, Store};
use serde_json::json;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

/// As much of a file as is looked at together.
const PIECE: usize = 4 << 20;

/// Longer than a wrapped key, so that none is cut in two.
const OVERLAP: usize = 1024;

/// What was looked at, and what was found.
#[derive(Debug, Default)]
struct Found {
    files: u64,
    bytes: u64,
    left: Vec<String>,
}

pub(super) fn shred_check(args: &ShredCheckArgs) -> Result<ExitCode, Failure> {
    let id = SessionId::parse("ID", &args.id)?;
    let master = master_key::read(&args.data)?;
    let mut found = Found::default();
    scan(&args.data, &master, id.as_str(), &mut found)?;
    data_folder::runtime()?.block_on(async {
        let vault = serve::vault(args.artifacts.as_deref(), &args.data, master)?;
        let mut listed = vault.list();
        while let Some(object) = listed.recv().await {
            let object = object.map_err(|error| Failure::new(format!("artifacts: {error}")))?;
            if object.id == id.as_str() {
                found.left.push(format!("artifacts: {}/{}/{}", object.tenant, object.id, object.attempt));
            }
        }
        if let Some(address) = &args.database {
            let store = Store::open(&Location::Postgres(address.clone())).await?;
            let keys = store.archive_keys(id.as_str()).await?;
            store.close().await;
            if keys > 0 {
                found.left.push(format!("database: {keys} keys of it are there"));
            }
        }
        Ok::<_, Failure>(())
    })?;
    found.left.sort();
    found.left.dedup();
    report(args, &found)
}

fn report(args: &ShredCheckArgs, found: &Found) -> Result<ExitCode, Failure> {
    let Found { files, bytes, left } = found;
    if args.json {
        let report = json!({"id": args.id, "files": files, "bytes": bytes, "left": left});
        println!("{}", serde_json::to_string(&report)?);
    } else {
        for what in left {
            println!("left: {what}");
        }
        let verdict = if left.is_empty() { "nothing of it is left" } else { "something of it is left" };
        println!("{}: {verdict}, in {files} files of {bytes} bytes", args.id);
    }
    Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Looks at every file below a folder. One that goes meanwhile is gone.
fn scan(folder: &Path, master: &MasterKey, id: &str, found: &mut Found) -> Result<(), Failure> {
    let failed = |path: &Path, error| Failure::new(format!("{}: {error}", path.display()));
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry?.path();
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        if data.is_dir() {
            scan(&path, master, id, found)?;
        } else if data.is_file() {
            match File::open(&path) {
                Ok(file) => look(file, &path, master, id, found).map_err(|error| failed(&path, error))?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
    }
    Ok(())
}

fn look(mut file: File, path: &Path, master: &MasterKey, id: &str, found: &mut Found) -> std::io::Result<()> {
    found.files += 1;
    let mut looked_for = vec![("files", archive_about(id)), ("steps", steps_about(id))];
    let mut bytes = Vec::new();
    loop {
        // What lies across two pieces is in both.
        let kept = bytes.len().min(OVERLAP);
        bytes.drain(..bytes.len() - kept);
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        found.bytes += read as u64;
        looked_for.retain(|(what, about)| {
            let is_there = find_wrapped_key(master, about, &bytes).is_some();
            if is_there {
                found.left.push(format!("{}: a key of its {what}", path.display()));
            }
            !is_there
        });
        if looked_for.is_empty() {
            return Ok(());
        }
    }
}
