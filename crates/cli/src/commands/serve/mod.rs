//! `cofferdam serve`: the API, the queue and the sandboxes in one process.

mod artifacts;
mod settings;

pub(super) use artifacts::vault;

use crate::args::{CapacityArgs, ServeArgs, ServiceArgs};
use crate::backends::{Choice, images, turned_on};
use crate::commands::elsewhere::Elsewhere;
use crate::commands::local_worker::{LocalWorker, RequestChecker};
use crate::commands::observing::Observing;
use crate::commands::roles::{self, DataFolder};
use crate::commands::{MakeBackend, certificate, master_key};
use crate::config::{Config, ServeConfig};
use crate::exit::Failure;
use cofferdam_control::{Control, FIRST_TENANT, ServiceTokens, Workers};
use cofferdam_http::Tls;
use cofferdam_store::{Location, Store};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

pub(super) fn serve(args: &ServeArgs, backend: MakeBackend) -> Result<ExitCode, Failure> {
    run("serve", &args.service, Some(&args.capacity), async |serve, _| {
        let mut offer = roles::offer(serve.slots, serve.cpus, serve.memory_bytes, &[])?;
        let backend = backend(Choice::Native)?;
        backend.health().await?;
        let others = turned_on(&serve.backends)?;
        for other in &others {
            other.health().await?;
            offer.backends.push(other.name().to_owned());
        }
        let roots = serve.backends.mounts.all();
        let elsewhere = Elsewhere::new(others, serve.backends.waiting, images()?, roots.clone());
        let worker = Arc::new(LocalWorker::start(backend, elsewhere));
        let local = Some((worker as _, offer));
        Ok((Workers { checker: Arc::new(RequestChecker::new(roots)), local, remote: None }, None))
    })
}

/// Serves the API, with whatever `workers` makes to run the jobs. Workers elsewhere are known by tokens.
pub(super) fn run(
    role: &'static str,
    args: &ServiceArgs,
    capacity: Option<&CapacityArgs>,
    workers: impl AsyncFnOnce(&ServeConfig, &DataFolder) -> Result<(Workers, Option<ServiceTokens>), Failure>,
) -> Result<ExitCode, Failure> {
    let config = settings::read(args, capacity)?;
    let observing = Observing::begin(&config.observe, role)?;
    let served = run_on(config, workers);
    observing.end();
    served
}

fn run_on(
    config: Config,
    workers: impl AsyncFnOnce(&ServeConfig, &DataFolder) -> Result<(Workers, Option<ServiceTokens>), Failure>,
) -> Result<ExitCode, Failure> {
    let Config { serve, control: mut settings, http, tls, jwt, observe } = config;
    // Control decides by it, and the worker opens what it says.
    settings.backends.mounts = serve.backends.mounts.clone();
    settings.jwt =
        jwt.settings().map_err(|clash| Failure::new(format!("jwt.{}: {}", clash.key, clash.fix)))?;
    let Some(data) = &serve.data else {
        return Err(Failure::new("there is no folder for the data: give --data DIR, or data in [serve]"));
    };
    let tls = match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => Some(Tls::open(cert, key)?),
        _ => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = DataFolder::open(data)?;
        let (workers, tokens) = workers(&serve, &folder).await?;
        let location = match &serve.database {
            Some(address) => Location::Postgres(address.clone()),
            None => Location::Sqlite(data.join("cofferdam.db")),
        };
        let store = Store::open(&location).await?;
        first_key(&store, data).await?;
        settings.signing.folder.get_or_insert_with(|| data.join("signing"));
        settings.node = folder.node(&location)?;
        let is_open_to_all = settings.dev_no_auth;
        let master = master_key::open(&store, data).await?;
        let vault = vault(serve.artifacts.as_deref(), data, master)?;
        let control = Control::start_with(store.clone(), workers, settings, Some(vault)).await?;
        let listener = roles::listen(serve.listen).await?;
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut said = format!("listening on {scheme}://{address}");
        if let Some(address) = observe.metrics_listen {
            let listener = roles::listen(address).await?;
            said += &format!("\nmetrics on http://{}/metrics", listener.local_addr()?);
            // It goes with the process.
            let forever = std::future::pending();
            tokio::spawn(cofferdam_http::serve_metrics(listener, control.clone(), forever));
        }
        let stopped = roles::stopped()?;
        println!("{said}");
        if is_open_to_all {
            tracing::warn!("authentication is off (dev_no_auth): whoever reaches {address} may run jobs");
        }
        if let Some(tls) = &tls {
            certificate::keep_fresh(tls.clone());
        }
        let router = match tokens {
            Some(tokens) => cofferdam_http::router_with_workers(control.clone(), tokens),
            None => cofferdam_http::router(control.clone()),
        };
        let stop = async {
            stopped.await;
            control.drain(serve.drain).await;
        };
        cofferdam_http::serve(listener, router, http, tls, stop).await?;
        store.close().await;
        Ok(ExitCode::SUCCESS)
    })
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
