//! `cofferdam worker`: sandboxes, for a control plane in another process.

use super::elsewhere::Elsewhere;
use super::local_worker::{LocalWorker, RequestChecker};
use super::observing::Observing;
use super::{MakeBackend, certificate, roles};
use crate::args::WorkerArgs;
use crate::backends::{Choice, images, offered, turned_on};
use crate::config::ObserveConfig;
use crate::exit::Failure;
use cofferdam_api::{WorkerCapacity, WorkerHeartbeat, WorkerSession};
use cofferdam_backend::Backend;
use cofferdam_control::{Health, MAX_WORKER_IMAGES, Offer, Worker, draw_name};
use cofferdam_http::{HttpSettings, Runs, worker_router, worker_router_without_auth};
use cofferdam_images::Store;
use cofferdam_remote::Registration;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often it is looked whether sandboxes can be made.
const HEALTH_LOOK: Duration = Duration::from_secs(1);

/// How often the other backends are asked how they are: some start a program to find out.
const BACKENDS_LOOK: Duration = Duration::from_secs(10);

/// A daemon that hangs is as good as none.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// As much as control takes of what is wrong.
const MAX_PROBLEM: usize = 512;

pub(super) fn worker(args: &WorkerArgs, backend: MakeBackend) -> Result<ExitCode, Failure> {
    let mut observe = ObserveConfig { otlp: args.log.otlp.clone(), ..ObserveConfig::default() };
    if let Some(form) = &args.log.log_format {
        observe.log_format.clone_from(form);
    }
    if let Some(level) = &args.log.log_level {
        observe.log_level.clone_from(level);
    }
    let observing = Observing::begin(&observe, "worker")?;
    let worked = work(args, backend);
    observing.end();
    worked
}

fn work(args: &WorkerArgs, backend: MakeBackend) -> Result<ExitCode, Failure> {
    if args.dev_no_auth && !roles::parse_address(&args.listen, true)?.ip().is_loopback() {
        let why = "without authentication (--dev-no-auth) only loopback is served; listen on 127.0.0.1:PORT";
        return Err(Failure::new(format!("--listen: {:?}: {why}", args.listen)));
    }
    let tls = roles::tls(&args.tls)?;
    let address = roles::parse_address(&args.listen, tls.is_some())?;
    let mut offer = roles::worker_offer(&args.capacity, &args.label)?;
    let wanted = offered(&args.backends)?;
    let tokens = roles::read_tokens(&args.service_token_file)?;
    let authorities =
        args.control_ca.as_deref().map(|path| roles::read_pem("--control-ca", path)).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let backend = backend(Choice::Native)?;
        backend.health().await?;
        let others = turned_on(&wanted)?;
        for other in &others {
            other.health().await?;
            offer.backends.push(other.name().to_owned());
        }
        let listener = roles::listen(address).await?;
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = args.url.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
        let store = images()?;
        offer.images = Some(digests(&store)?.into_iter().collect());
        let elsewhere = Elsewhere::new(others.clone(), wanted.waiting, store.clone(), Vec::new());
        let worker = Arc::new(LocalWorker::start(backend, elsewhere));
        // New at every start: what ran before is gone, and is not to be looked for here.
        let id = draw_name()?;
        let looked_at = Arc::clone(&worker);
        let stopping = Arc::clone(&worker);
        let runs = Runs::new(id.clone(), worker, Arc::new(RequestChecker::default()), offer.capacity);
        let beat = Arc::new(watch::Sender::new(heartbeat(url, offer)));
        tokio::spawn(tell_problems(looked_at, Arc::clone(&beat)));
        tokio::spawn(offer_healthy(others, Arc::clone(&beat)));
        tokio::spawn(offer_images(store, Arc::clone(&beat)));
        let registration =
            Registration::new(id.clone(), &args.control, &tokens, authorities.as_deref(), beat.subscribe());
        let listed = runs.clone();
        tokio::spawn(registration?.keep(move || listed.sessions(), report(runs.clone())));
        if let Some(tls) = &tls {
            certificate::keep_fresh(tls.clone());
        }
        let stopped = roles::stopped()?;
        println!("worker {id} listening on {scheme}://{address}");
        let router = match args.dev_no_auth {
            true => {
                tracing::warn!(
                    "authentication is off (--dev-no-auth): whoever reaches {address} may run anything"
                );
                worker_router_without_auth(runs.clone(), tokens)
            }
            false => worker_router(runs.clone(), tokens),
        };
        let drained = async move {
            stopped.await;
            runs.stop_taking();
            beat.send_modify(|beat| beat.is_draining = true);
            runs.drain(roles::DRAIN).await;
            stopping.stop().await;
        };
        cofferdam_http::serve(listener, router, HttpSettings::default(), tls, drained).await?;
        Ok(ExitCode::SUCCESS)
    })
}

fn heartbeat(url: String, offer: Offer) -> WorkerHeartbeat {
    let Offer { labels, backends, images, capacity } = offer;
    let capacity = WorkerCapacity {
        slots: capacity.slots,
        cpus_millis: capacity.cpus_millis,
        memory_bytes: capacity.memory_bytes,
    };
    WorkerHeartbeat {
        url,
        labels,
        backends,
        capacity,
        is_draining: false,
        problem: None,
        images: images.map(|images| images.into_iter().collect()),
        sessions: Vec::new(),
    }
}

/// Tells control when sandboxes cannot be made, and when they can again: a worker that cannot is given no work. That the
/// sandbox of a session is gone is told at once, too.
async fn tell_problems(worker: Arc<LocalWorker>, beat: Arc<watch::Sender<WorkerHeartbeat>>) {
    loop {
        tokio::time::sleep(HEALTH_LOOK).await;
        let problem = match worker.health().await {
            Health::BackendUnhealthy(said) => Some(said.chars().take(MAX_PROBLEM).collect::<String>()),
            Health::Ready | Health::NoWorker => None,
        };
        let has_lost = worker.sessions().is_some_and(|sessions| !sessions.lost().is_empty());
        beat.send_if_modified(|beat| {
            let is_news = beat.problem.is_some() != problem.is_some();
            if is_news {
                match &problem {
                    Some(said) => tracing::error!(said, "sandboxes cannot be made"),
                    None => tracing::warn!("sandboxes can be made again"),
                }
                beat.problem = problem;
            }
            is_news || has_lost
        });
    }
}

/// Offers the other backends for as long as they can be used: what asks for one goes to another worker meanwhile.
async fn offer_healthy(others: Vec<Arc<dyn Backend>>, beat: Arc<watch::Sender<WorkerHeartbeat>>) {
    while !others.is_empty() {
        tokio::time::sleep(BACKENDS_LOOK).await;
        for other in &others {
            let problem = match tokio::time::timeout(ANSWERED_WITHIN, other.health()).await {
                Ok(health) => health.err().map(|error| error.to_string()),
                Err(_) => Some("it does not answer".to_owned()),
            };
            beat.send_if_modified(|beat| {
                let was = beat.backends.iter().position(|name| name == other.name());
                match (was, &problem) {
                    (Some(at), Some(why)) => {
                        tracing::error!(backend = other.name(), "a backend is unhealthy: {why}");
                        beat.backends.remove(at);
                    }
                    (None, None) => {
                        tracing::warn!(backend = other.name(), "a backend is healthy again");
                        beat.backends.push(other.name().to_owned());
                    }
                    _ => return false,
                }
                true
            });
        }
    }
}

/// Offers the images that are there, as they come and go.
async fn offer_images(store: Store, beat: Arc<watch::Sender<WorkerHeartbeat>>) {
    let mut was_read = true;
    loop {
        tokio::time::sleep(HEALTH_LOOK).await;
        let looked_in = store.clone();
        let found = match tokio::task::spawn_blocking(move || digests(&looked_in)).await {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match &found {
            Err(why) if was_read => tracing::error!("the image store cannot be read: {why}"),
            _ => {}
        }
        was_read = found.is_ok();
        // What cannot be read can give no image to a sandbox.
        let images = Some(found.unwrap_or_default());
        beat.send_if_modified(|beat| {
            let is_news = beat.images != images;
            if is_news {
                beat.images = images;
            }
            is_news
        });
    }
}

/// As many as control takes, in their order.
fn digests(store: &Store) -> cofferdam_images::Result<Vec<String>> {
    let mut all: Vec<String> = store.ids()?.iter().map(ToString::to_string).collect();
    all.sort_unstable();
    if all.len() > MAX_WORKER_IMAGES {
        tracing::debug!(there = all.len(), "only the first images are offered: {MAX_WORKER_IMAGES}");
        all.truncate(MAX_WORKER_IMAGES);
    }
    Ok(all)
}

/// Says once that nobody hears the worker, and once that somebody does again. What is not the worker's any more ends.
fn report(runs: Runs) -> impl FnMut(Result<Vec<WorkerSession>, String>) + Send {
    let mut was_heard = true;
    move |heard| {
        match &heard {
            Err(why) if was_heard => tracing::warn!("not registered: {why}"),
            Ok(_) if !was_heard => tracing::warn!("registered"),
            _ => {}
        }
        was_heard = heard.is_ok();
        if let Ok(not_yours) = heard
            && !not_yours.is_empty()
        {
            for session in &not_yours {
                let (id, generation) = (&session.id, session.generation);
                tracing::warn!(
                    session = id,
                    generation,
                    "a session that is not this worker's any more is ended"
                );
            }
            let runs = runs.clone();
            tokio::spawn(async move { runs.end_sessions(not_yours).await });
        }
    }
}
