//! What the roles share: their data folder, their addresses, what they offer, and how they stop.

use crate::args::{CapacityArgs, TlsArgs};
use crate::exit::Failure;
use cofferdam_control::{Capacity, Node, Offer, ServiceTokens, draw_name};
use cofferdam_core::{ByteSize, Cpus};
use cofferdam_http::Tls;
use cofferdam_store::Location;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How long what runs may go on when a role is told to stop.
pub(super) const DRAIN: Duration = Duration::from_secs(30);

/// Most jobs wait for something most of the time, if only for their interpreter.
const SLOTS_PER_PROCESSOR: u64 = 4;

/// A data folder that is this process's alone.
#[derive(Debug)]
pub(super) struct DataFolder {
    path: PathBuf,
    _lock: File,
}

impl DataFolder {
    /// Makes it where it is not there, and takes it. The database holds code and output: it is its owner's alone.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::new(format!("--data: {} {what}", path.display()));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| wrong(format!("cannot be made: {error}")))?;
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.join("lock"));
        let lock = lock.map_err(|error| wrong(format!("cannot be locked: {error}")))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(wrong("is in use by another server; stop that, or use another folder".to_owned()))
            }
            Err(TryLockError::Error(error)) => Err(wrong(format!("cannot be locked: {error}"))),
        }
    }

    /// The name under which this folder's processes are known, one after the other.
    pub(super) fn node(&self, location: &Location) -> Result<Node, Failure> {
        let path = self.path.join("node");
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        let name = match known.trim() {
            "" => {
                let name = draw_name()?;
                write_secret(&path, &name)?;
                name
            }
            known => known.to_owned(),
        };
        Ok(Node { name, is_alone: matches!(location, Location::Sqlite(_)) })
    }

    /// The service tokens in the file that is named, or in this folder, where one is made.
    pub(super) fn service_tokens(&self, named: Option<&Path>) -> Result<ServiceTokens, Failure> {
        let own = self.path.join("service.token");
        let path = named.unwrap_or(&own);
        if named.is_none() && !path.exists() {
            write_secret(path, &ServiceTokens::draw()?)?;
        }
        read_tokens(path)
    }
}

/// Writes a file for its owner: all of it or none.
fn write_secret(path: &Path, text: &str) -> Result<(), Failure> {
    let wrong = |error| Failure::new(format!("{} cannot be made: {error}", path.display()));
    let draft = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft).map_err(wrong)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(wrong)?;
    std::fs::rename(&draft, path).map_err(wrong)
}

/// Reads service tokens. A file that others can read has none that is still secret.
pub(super) fn read_tokens(path: &Path) -> Result<ServiceTokens, Failure> {
    let wrong = |what: String| Failure::new(format!("--service-token-file: {}: {what}", path.display()));
    let file = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    let mode = file.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(wrong(format!(
            "its mode is {mode:o}, so others can use it; set it to 600 and change the token"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    ServiceTokens::parse(&text).map_err(wrong)
}

/// An address to listen on. Without TLS it must be on loopback.
pub(super) fn parse_address(text: &str, has_tls: bool) -> Result<SocketAddr, Failure> {
    let address: SocketAddr = text.parse().map_err(|_| {
        Failure::new(format!("--listen: {text:?} is not an address and a port, such as 127.0.0.1:8080"))
    })?;
    if address.ip().is_loopback() || has_tls {
        return Ok(address);
    }
    let why = "without TLS only loopback is served; put a proxy with TLS before it";
    Err(Failure::new(format!("--listen: {text:?}: {why}")))
}

pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| Failure::new(format!("cannot listen on {address}: {error}")))
}

/// What a listener shows, where it has something to show.
pub(super) fn tls(args: &TlsArgs) -> Result<Option<Tls>, Failure> {
    match (&args.tls_cert, &args.tls_key) {
        (None, None) => Ok(None),
        (Some(certificates), Some(key)) => Ok(Some(Tls::open(certificates, key)?)),
        _ => Err(Failure::new("--tls-cert and --tls-key: give both, or neither")),
    }
}

pub(super) fn read_pem(option: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::new(format!("{option}: {}: {error}", path.display())))
}

/// What a worker offers, as its flags ask for it.
pub(super) fn worker_offer(args: &CapacityArgs, labels: &[String]) -> Result<Offer, Failure> {
    let CapacityArgs { slots, cpus, memory } = args;
    let slots = slots.as_deref().map(|text| {
        let wrong = || Failure::new(format!("--slots: {text:?} is not a whole number, such as 16"));
        text.parse::<u64>().map_err(|_| wrong())
    });
    let cpus = cpus.as_deref().map(|text| Cpus::parse("--cpus", text)).transpose()?;
    let memory = memory.as_deref().map(|text| ByteSize::parse("--memory", text)).transpose()?;
    offer(slots.transpose()?, cpus, memory.map(|size| size.0), labels)
}

/// What a worker offers, as asked for or as the machine has it.
pub(super) fn offer(
    slots: Option<u64>,
    cpus: Option<Cpus>,
    memory_bytes: Option<u64>,
    labels: &[String],
) -> Result<Offer, Failure> {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let slots = slots.unwrap_or(processors * SLOTS_PER_PROCESSOR);
    if slots == 0 {
        return Err(Failure::new("--slots: 0 would run nothing; it must be at least 1"));
    }
    let cpus_millis = match cpus {
        Some(cpus) => cpus.millis().into(),
        None => slots.saturating_mul(Cpus::ONE.millis().into()),
    };
    let memory_bytes = match memory_bytes {
        Some(bytes) => bytes,
        None => machine_memory()? / 4 * 3,
    };
    let labels = labels.iter().map(|text| {
        let wrong = || Failure::new(format!("--label: {text:?} is not NAME=VALUE"));
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        Ok((name.to_owned(), value.to_owned()))
    });
    Ok(Offer {
        labels: labels.collect::<Result<_, Failure>>()?,
        backends: vec!["native".to_owned()],
        images: None,
        capacity: Capacity { slots, cpus_millis, memory_bytes },
    })
}

fn machine_memory() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| Failure::new("/proc/meminfo does not tell the machine's memory"))
}

/// Waits for the word to stop. It is heard from the call on, whenever it is waited for.
pub(super) fn stopped() -> Result<impl Future<Output = ()>, Failure> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
