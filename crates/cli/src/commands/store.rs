//! `cofferdam store`: the file of a store.

use super::data_folder;
use crate::args::{CompactArgs, StoreArgs, StoreCommand};
use crate::exit::Failure;
use cofferdam_core::ByteSize;
use cofferdam_store::file::{Compacted, compact};
use std::process::ExitCode;

pub(super) fn store(args: &StoreArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        StoreCommand::Compact(args) => compact_file(args),
    }
}

fn compact_file(args: &CompactArgs) -> Result<ExitCode, Failure> {
    let path = data_folder::database(&args.data);
    let Compacted { bytes_before, bytes_after } = data_folder::runtime()?.block_on(compact(&path))?;
    println!("{}: {} before, {} now", path.display(), ByteSize(bytes_before), ByteSize(bytes_after));
    Ok(ExitCode::SUCCESS)
}
