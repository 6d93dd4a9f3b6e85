//! `cofferdam serve`: the API, the queue and the sandboxes in one process.

mod local_worker;
mod observing;
mod request;

use crate::args::ServeArgs;
use crate::commands::MakeBackend;
use crate::exit::Failure;
use cofferdam_control::{Capacity, Control, Settings, SigningSettings, WebhookSettings};
use cofferdam_core::ByteSize;
use cofferdam_store::{Location, Store};
use cofferdam_webhook::Network;
use local_worker::LocalWorker;
use observing::Observing;
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
    let address = parse_address("--listen", &args.listen)?;
    let metrics = args.observe.metrics_listen.as_deref();
    let metrics = metrics.map(|text| parse_address("--metrics-listen", text)).transpose()?;
    let capacity = capacity(args)?;
    let signing = SigningSettings { folder: Some(args.data.join("signing")) };
    let settings = Settings { webhooks: webhooks(args)?, signing, ..Settings::default() };
    let observing = Observing::begin(&args.observe)?;
    let served = run(args, backend, address, metrics, capacity, settings);
    observing.end();
    served
}

fn run(
    args: &ServeArgs,
    backend: MakeBackend,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    capacity: Capacity,
    settings: Settings,
) -> Result<ExitCode, Failure> {
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
        let control = Control::start(store.clone(), worker, settings).await?;
        let listener = listen(address).await?;
        let mut said = format!("listening on http://{}", listener.local_addr()?);
        if let Some(address) = metrics {
            let listener = listen(address).await?;
            said += &format!("\nmetrics on http://{}/metrics", listener.local_addr()?);
            // It goes with the process.
            let forever = std::future::pending();
            tokio::spawn(cofferdam_http::serve_metrics(listener, control.clone(), forever));
        }
        println!("{said}");
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

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| Failure::new(format!("cannot listen on {address}: {error}")))
}

fn webhooks(args: &ServeArgs) -> Result<WebhookSettings, Failure> {
    let allowed = args.webhook_allow.iter().map(|text| {
        let fix = "write an address or a network, such as 127.0.0.1 or 10.1.0.0/16";
        Network::parse(text)
            .ok_or_else(|| Failure::new(format!("--webhook-allow: {text:?} is not valid: {fix}")))
    });
    let allowed = allowed.collect::<Result<_, _>>()?;
    Ok(WebhookSettings { allowed, plain_http: args.webhook_http, ..WebhookSettings::default() })
}

fn parse_address(option: &str, text: &str) -> Result<SocketAddr, Failure> {
    let address: SocketAddr = text.parse().map_err(|_| {
        Failure::new(format!("{option}: {text:?} is not an address and a port, such as 127.0.0.1:8080"))
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    let why = "without TLS only loopback is served; put a proxy with TLS before it";
    Err(Failure::new(format!("{option}: {text:?}: {why}")))
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
