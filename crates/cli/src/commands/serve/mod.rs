//! `cofferdam serve`: the API, the queue and the sandboxes in one process.

use crate::args::ServeArgs;
use crate::commands::MakeBackend;
use crate::commands::local_worker::{LocalWorker, RequestChecker};
use crate::commands::roles;
use crate::exit::Failure;
use cofferdam_control::{Control, Settings, SigningSettings, Workers};
use cofferdam_store::{Location, Store};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

pub(super) fn serve(args: &ServeArgs, backend: MakeBackend) -> Result<ExitCode, Failure> {
    let address = roles::parse_address(&args.listen, false)?;
    let offer = roles::offer(&args.capacity, &[])?;
    let lease = roles::lease(args.lease.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = roles::DataFolder::open(&args.data)?;
        let backend = backend()?;
        backend.health().await?;
        let location = location(&args.data, args.database.as_deref());
        let store = Store::open(&location).await?;
        first_key(&store, &args.data).await?;
        let worker = Arc::new(LocalWorker::start(backend));
        let workers =
            Workers { checker: Arc::new(RequestChecker), local: Some((worker, offer)), remote: None };
        let signing = SigningSettings { folder: Some(args.data.join("signing")) };
        let settings = Settings { lease, node: folder.node(&location)?, signing };
        let control = Control::start(store.clone(), workers, settings).await?;
        let listener = roles::listen(address).await?;
        println!("listening on http://{}", listener.local_addr()?);
        let router = cofferdam_http::router(control.clone());
        cofferdam_http::serve(listener, router, drained(control)).await?;
        store.close().await;
        Ok(ExitCode::SUCCESS)
    })
}

/// Where the records are.
pub(super) fn location(data: &Path, database: Option<&str>) -> Location {
    match database {
        Some(address) => Location::Postgres(address.to_owned()),
        None => Location::Sqlite(data.join("cofferdam.db")),
    }
}

/// Waits for the word to stop, and then for what runs.
pub(super) async fn drained(control: Control) {
    roles::stopped().await;
    control.drain(roles::DRAIN).await;
}

/// At the first start, a key that may do everything, in a file for its owner.
pub(super) async fn first_key(store: &Store, folder: &Path) -> Result<(), Failure> {
    let path = folder.join("admin.key");
    // Made before the key, so that no key is made that nobody can have.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists && std::fs::metadata(&path)?.len() > 0 => {
            return Ok(());
        }
        // A start that was killed between the two left it empty.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            OpenOptions::new().write(true).open(&path)?
        }
        Err(error) => return Err(Failure::new(format!("{} cannot be made: {error}", path.display()))),
    };
    let key = Control::first_key(store, "default").await?;
    file.write_all(key.secret.as_bytes())?;
    file.sync_all()?;
    Ok(())
}
