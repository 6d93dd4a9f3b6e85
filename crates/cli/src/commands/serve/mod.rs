//! `cofferdam serve`: the API, the queue and the sandboxes in one process.

mod artifacts;
mod local_worker;
mod request;

use crate::args::ServeArgs;
use crate::commands::MakeBackend;
use crate::exit::Failure;
use cofferdam_control::{Capacity, Control, Settings, SigningSettings};
use cofferdam_core::ByteSize;
use cofferdam_store::{Location, Store};
use local_worker::LocalWorker;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How long what runs may go on when the server is told to stop.
const DRAIN: Duration = Duration::from_secs(30);

/// Most jobs wait for something most of the time, if only for their interpreter.
const SLOTS_PER_PROCESSOR: usize = 4;

pub(super) fn serve(args: &ServeArgs, backend: MakeBackend) -> Result<ExitCode, Failure> {
    let address = parse_address(&args.listen)?;
    let capacity = capacity(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        prepare_folder(&args.data)?;
        let backend = backend()?;
        backend.health().await?;
        let location = match &args.database {
            Some(address) => Location::Postgres(address.clone()),
            None => Location::Sqlite(args.data.join("cofferdam.db")),
        };
        let store = Store::open(&location).await?;
        first_key(&store, &args.data).await?;
        let worker = Arc::new(LocalWorker::start(backend, capacity));
        let signing = SigningSettings { folder: Some(args.data.join("signing")) };
        let settings = Settings { signing, ..Settings::default() };
        let vault = artifacts::vault(args.artifacts.as_deref(), &args.data)?;
        let control = Control::start_with(store.clone(), worker, settings, Some(vault)).await?;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Failure::new(format!("cannot listen on {address}: {error}")))?;
        let address = listener.local_addr()?;
        println!("listening on http://{address}");
        let stopping = control.clone();
        let stop = async move {
            stopped().await;
            stopping.drain(DRAIN).await;
        };
        cofferdam_http::serve(listener, control, stop).await?;
        store.close().await;
        Ok(ExitCode::SUCCESS)
    })
}

fn parse_address(text: &str) -> Result<SocketAddr, Failure> {
    let address: SocketAddr = text.parse().map_err(|_| {
        Failure::new(format!("--listen: {text:?} is not an address and a port, such as 127.0.0.1:8080"))
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    let why = "without TLS only loopback is served; put a proxy with TLS before it";
    Err(Failure::new(format!("--listen: {text:?}: {why}")))
}

fn capacity(args: &ServeArgs) -> Result<Capacity, Failure> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let slots = args.slots.unwrap_or(processors * SLOTS_PER_PROCESSOR);
    if slots == 0 {
        return Err(Failure::new("--slots: 0 would run nothing; it must be at least 1"));
    }
    let memory_bytes = match &args.memory {
        Some(text) => ByteSize::parse("--memory", text)?.0,
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
    let key = Control::first_key(store, "default").await?;
    file.write_all(key.secret.as_bytes())?;
    file.sync_all()?;
    Ok(())
}

async fn stopped() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
