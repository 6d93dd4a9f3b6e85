//! `cofferdam audit export`: from the data folder, for whoever owns it, or from the service.

use crate::args::AuditExportArgs;
use crate::commands::remote::failure::failure;
use crate::commands::remote::{block_on, connect};
use crate::exit::Failure;
use cofferdam_control::{FIRST_TENANT, chain_start, now_ms, sign_head};
use cofferdam_proof::{Envelope, ExportHeader, Head, write_line};
use cofferdam_store::{Location, Store};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// So many entries at a time, and never a whole chain in memory.
const BATCH: i64 = 1000;

pub(super) fn export(args: &AuditExportArgs) -> Result<ExitCode, Failure> {
    let Some(data) = &args.data else { return from_service(args) };
    block_on(async {
        let store = Store::open(&location(args, data)?).await?;
        let done = write(args, data, &store).await;
        store.close().await;
        done.map(|()| ExitCode::SUCCESS)
    })
}

/// The tenant is that of the key. The head first, as below.
fn from_service(args: &AuditExportArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    block_on(async {
        let up_to_seq = match &args.head {
            None => None,
            Some(path) => {
                let document = client.audit_head().await.map_err(failure)?;
                let text = serde_json::to_string(&document)?;
                let envelope =
                    Envelope::parse(text.as_bytes()).map_err(|error| Failure::new(error.to_string()))?;
                let (head, _) =
                    Head::open(&envelope, None).map_err(|error| Failure::new(error.to_string()))?;
                write_head(path, &envelope)?;
                Some(head.0.seq)
            }
        };
        let mut export = client.audit_export(up_to_seq).await.map_err(failure)?;
        let mut out = output(args)?;
        while let Some(bytes) = export.next().await.map_err(failure)? {
            out.write_all(&bytes)?;
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    })
}

fn write_head(path: &Path, envelope: &Envelope) -> Result<(), Failure> {
    let written = std::fs::write(path, envelope.to_json() + "\n");
    written.map_err(|error| Failure::new(format!("--head: {}: {error}", path.display())))
}

fn output(args: &AuditExportArgs) -> Result<BufWriter<Box<dyn Write>>, Failure> {
    Ok(BufWriter::new(match &args.out {
        Some(path) => {
            let file = File::create(path);
            Box::new(file.map_err(|error| Failure::new(format!("--out: {}: {error}", path.display())))?)
        }
        None => Box::new(std::io::stdout()),
    }))
}

fn location(args: &AuditExportArgs, data: &Path) -> Result<Location, Failure> {
    if let Some(address) = &args.database {
        return Ok(Location::Postgres(address.clone()));
    }
    let path = data.join("cofferdam.db");
    match path.is_file() {
        true => Ok(Location::Sqlite(path)),
        // Opening it would make one.
        false => Err(Failure::new(format!("--data: {} is not there", path.display()))),
    }
}

async fn write(args: &AuditExportArgs, data: &Path, store: &Store) -> Result<(), Failure> {
    let name = args.tenant.as_deref().unwrap_or(FIRST_TENANT);
    let missing = || Failure::new(format!("--tenant: there is no tenant called {name:?}"));
    let tenant = store.find_tenant(name).await?.ok_or_else(missing)?;
    // The head first, and then no entry beyond it: a chain grows meanwhile.
    let head = store.audit_head(&tenant).await?;
    if let Some(path) = &args.head {
        write_head(path, &sign_head(&data.join("signing"), &tenant, &head, now_ms())?)?;
    }
    let mut out = output(args)?;
    let (checkpoint, mut after) = chain_start(store, &tenant).await?;
    out.write_all(write_line(&ExportHeader::new(&tenant, checkpoint)).as_bytes())?;
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
