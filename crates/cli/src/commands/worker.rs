//! `cofferdam worker`: sandboxes, for a control plane in another process.

use super::elsewhere::Elsewhere;
use super::local_worker::{LocalWorker, RequestChecker};
use super::observing::Observing;
use super::{MakeBackend, certificate, roles};
use crate::args::WorkerArgs;
use crate::backends::Choice;
use crate::config::ObserveConfig;
use crate::exit::Failure;
use cofferdam_api::{WorkerCapacity, WorkerHeartbeat, WorkerSession};
use cofferdam_control::{Health, Offer, Worker, draw_name};
use cofferdam_http::{HttpSettings, Runs, worker_router, worker_router_without_auth};
use cofferdam_remote::Registration;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often it is looked whether sandboxes can be made.
const HEALTH_LOOK: Duration = Duration::from_secs(1);

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
    let offer = roles::worker_offer(&args.capacity, &args.label)?;
    let tokens = roles::read_tokens(&args.service_token_file)?;
    let authorities =
        args.control_ca.as_deref().map(|path| roles::read_pem("--control-ca", path)).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let backend = backend(Choice::Native)?;
        backend.health().await?;
        let listener = roles::listen(address).await?;
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = args.url.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
        let worker = Arc::new(LocalWorker::start(backend, Elsewhere::default()));
        // New at every start: what ran before is gone, and is not to be looked for here.
        let id = draw_name()?;
        let looked_at = Arc::clone(&worker);
        let runs = Runs::new(id.clone(), worker, Arc::new(RequestChecker::default()), offer.capacity);
        let beat = Arc::new(watch::Sender::new(heartbeat(url, offer)));
        tokio::spawn(tell_problems(looked_at, Arc::clone(&beat)));
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
        };
        cofferdam_http::serve(listener, router, HttpSettings::default(), tls, drained).await?;
        Ok(ExitCode::SUCCESS)
    })
}

fn heartbeat(url: String, offer: Offer) -> WorkerHeartbeat {
    let Offer { labels, backends, capacity } = offer;
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
        sessions: Vec::new(),
    }
}

/// Tells control when sandboxes cannot be made, and when they can again: a worker that cannot is given no work.
async fn tell_problems(worker: Arc<LocalWorker>, beat: Arc<watch::Sender<WorkerHeartbeat>>) {
    loop {
        tokio::time::sleep(HEALTH_LOOK).await;
        let problem = match worker.health().await {
            Health::BackendUnhealthy(said) => Some(said.chars().take(MAX_PROBLEM).collect::<String>()),
            Health::Ready | Health::NoWorker => None,
        };
        beat.send_if_modified(|beat| {
            let is_news = beat.problem.is_some() != problem.is_some();
            if is_news {
                match &problem {
                    Some(said) => tracing::error!(said, "sandboxes cannot be made"),
                    None => tracing::warn!("sandboxes can be made again"),
                }
                beat.problem = problem;
            }
            is_news
        });
    }
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
