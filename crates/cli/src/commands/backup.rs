//! `cofferdam backup`: a server's data in one file.

use super::data_folder;
use crate::args::BackupArgs;
use crate::exit::Failure;
use cofferdam_core::ByteSize;
use cofferdam_store::file::{Backup, back_up};
use std::process::ExitCode;

pub(super) fn backup(args: &BackupArgs) -> Result<ExitCode, Failure> {
    if args.database.is_some() {
        return Err(Failure::new(
            "--database: a PostgreSQL database is backed up with its own tools: \
             pg_dump --format=custom --file=FILE URL; keep the keys in the data folder, too",
        ));
    }
    let small = data_folder::read_files(&args.data)?;
    let database = data_folder::database(&args.data);
    let made = data_folder::runtime()?.block_on(back_up(&database, &args.to, &small.files))?;
    // The key and what is sealed under it are of one moment, or the copy is worthless.
    if data_folder::read_files(&args.data)?.master_key() != small.master_key() {
        let _ = std::fs::remove_file(&args.to);
        return Err(Failure::new(
            "the master key was changed meanwhile, so nothing was written; run it again",
        ));
    }
    let Backup { checked, bytes } = made;
    println!(
        "{}: {}, {} jobs, {} entries of {} audits checked, {} files",
        args.to.display(),
        ByteSize(bytes),
        checked.jobs,
        checked.entries,
        checked.tenants,
        small.files.len()
    );
    for name in small.left_out {
        println!("not in it: {name}");
    }
    Ok(ExitCode::SUCCESS)
}
