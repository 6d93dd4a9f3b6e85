//! `cofferdam serve`: the API, the queue and the sandboxes in one process.

mod artifacts;
mod certificate;
mod local_worker;
mod observing;
mod request;
mod settings;

use crate::args::ServeArgs;
use crate::backends::Choice;
use crate::commands::MakeBackend;
use crate::config::{Config, ServeConfig};
use crate::exit::Failure;
use cofferdam_control::{Capacity, Control, FIRST_TENANT};
use cofferdam_http::Tls;
use cofferdam_store::{Location, Store};
use local_worker::LocalWorker;
use observing::Observing;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Most jobs wait for something most of the time, if only for their interpreter.
const SLOTS_PER_PROCESSOR: usize = 4;

pub(super) fn serve(args: &ServeArgs, backend: MakeBackend) -> Result<ExitCode, Failure> {
    let config = settings::read(args)?;
    let observing = Observing::begin(&config.observe)?;
    let served = run(config, backend);
    observing.end();
    served
}

fn run(config: Config, backend: MakeBackend) -> Result<ExitCode, Failure> {
    let Config { serve, control: mut settings, http, tls, jwt, observe } = config;
    settings.jwt =
        jwt.settings().map_err(|clash| Failure::new(format!("jwt.{}: {}", clash.key, clash.fix)))?;
    let Some(data) = &serve.data else {
        return Err(Failure::new("there is no folder for the data: give --data DIR, or data in [serve]"));
    };
    let tls = match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => Some(Tls::open(cert, key)?),
        _ => None,
    };
    let capacity = capacity(&serve)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        prepare_folder(data)?;
        let backend = backend(Choice::Native)?;
        backend.health().await?;
        let location = match &serve.database {
            Some(address) => Location::Postgres(address.clone()),
            None => Location::Sqlite(data.join("cofferdam.db")),
        };
        let store = Store::open(&location).await?;
        first_key(&store, data).await?;
        let worker = Arc::new(LocalWorker::start(backend, capacity));
        settings.signing.folder.get_or_insert_with(|| data.join("signing"));
        let is_open_to_all = settings.dev_no_auth;
        let vault = artifacts::vault(serve.artifacts.as_deref(), data)?;
        let control = Control::start_with(store.clone(), worker, settings, Some(vault)).await?;
        let listener = listen(serve.listen).await?;
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut said = format!("listening on {scheme}://{address}");
        if let Some(address) = observe.metrics_listen {
            let listener = listen(address).await?;
            said += &format!("\nmetrics on http://{}/metrics", listener.local_addr()?);
            // It goes with the process.
            let forever = std::future::pending();
            tokio::spawn(cofferdam_http::serve_metrics(listener, control.clone(), forever));
        }
        let told = stopped()?;
        println!("{said}");
        if is_open_to_all {
            tracing::warn!("authentication is off (dev_no_auth): whoever reaches {address} may run jobs");
        }
        if let Some(tls) = &tls {
            certificate::keep_fresh(tls.clone());
        }
        let (stopping, drain) = (control.clone(), serve.drain);
        let stop = async move {
            told.await;
            stopping.drain(drain).await;
        };
        cofferdam_http::serve(listener, control, http, tls, stop).await?;
        store.close().await;
        Ok(ExitCode::SUCCESS)
    })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| Failure::new(format!("cannot listen on {address}: {error}")))
}

fn capacity(serve: &ServeConfig) -> Result<Capacity, Failure> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let slots = serve.slots.unwrap_or(processors * SLOTS_PER_PROCESSOR);
    let memory_bytes = match serve.memory_bytes {
        Some(bytes) => bytes,
        None => machine_memory()? / 4 * 3,
    };
    Ok(Capacity { slots, memory_bytes })
}

fn machine_memory() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| Failure::new("/proc/meminfo does not tell the machine's memory"))
}

/// The database holds code and output: the folder is its owner's alone.
fn prepare_folder(folder: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Failure::new(format!("--data: {} cannot be made: {error}", folder.display())))
}

/// At the first start, a key that may do everything, in a file for its owner.
async fn first_key(store: &Store, folder: &Path) -> Result<(), Failure> {
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
    let key = Control::first_key(store, FIRST_TENANT).await?;
    file.write_all(key.secret.as_bytes())?;
    file.sync_all()?;
    Ok(())
}

/// Waits for the word to stop. It is heard from the call on, whenever it is waited for.
fn stopped() -> Result<impl Future<Output = ()>, Failure> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
