//! `cofferdam audit export`: from the data folder, for whoever owns it.

use crate::args::AuditExportArgs;
use crate::exit::Failure;
use cofferdam_control::{now_ms, sign_head};
use cofferdam_proof::{ExportHeader, write_line};
use cofferdam_store::{Location, Store};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

/// So many entries at a time, and never a whole chain in memory.
const BATCH: i64 = 1000;

pub(super) fn export(args: &AuditExportArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Store::open(&location(args)?).await?;
        let done = write(args, &store).await;
        store.close().await;
        done.map(|()| ExitCode::SUCCESS)
    })
}

fn location(args: &AuditExportArgs) -> Result<Location, Failure> {
    if let Some(address) = &args.database {
        return Ok(Location::Postgres(address.clone()));
    }
    let path = args.data.join("cofferdam.db");
    match path.is_file() {
        true => Ok(Location::Sqlite(path)),
        // Opening it would make one.
        false => Err(Failure::new(format!("--data: {} is not there", path.display()))),
    }
}

async fn write(args: &AuditExportArgs, store: &Store) -> Result<(), Failure> {
    let missing = || Failure::new(format!("--tenant: there is no tenant called {:?}", args.tenant));
    let tenant = store.find_tenant(&args.tenant).await?.ok_or_else(missing)?;
    // The head first, and then no entry beyond it: a chain grows meanwhile.
    let head = store.audit_head(&tenant).await?;
    if let Some(path) = &args.head {
        let envelope = sign_head(&args.data.join("signing"), &tenant, &head, now_ms())?;
        let written = std::fs::write(path, envelope.to_json() + "\n");
        written.map_err(|error| Failure::new(format!("--head: {}: {error}", path.display())))?;
    }
    let mut out: BufWriter<Box<dyn Write>> = BufWriter::new(match &args.out {
        Some(path) => {
            let file = File::create(path);
            Box::new(file.map_err(|error| Failure::new(format!("--out: {}: {error}", path.display())))?)
        }
        None => Box::new(std::io::stdout()),
    });
    out.write_all(write_line(&ExportHeader::new(&tenant, None)).as_bytes())?;
    let mut after = 0;
    while after < head.seq {
        let entries = store.audit(&tenant, after, BATCH.min(head.seq - after)).await?;
        let Some(last) = entries.last() else { break };
        after = last.seq;
        for entry in entries.iter().filter(|entry| entry.seq <= head.seq) {
            out.write_all(write_line(entry).as_bytes())?;
        }
    }
    Ok(out.flush()?)
}
