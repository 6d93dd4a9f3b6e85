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
