//! The worker in the same process: the pool of sandboxes, behind the trait that control knows.

use super::desk::Desk;
use super::elsewhere::{Elsewhere, Place};
use super::local_images::LocalImages;
use super::local_sessions::LocalSessions;
use async_trait::async_trait;
use cofferdam_api::{JobRequest, SandboxRequest};
use cofferdam_backend::{Backend, Reader};
use cofferdam_control::{
    ArtifactDesk, BackendHealth, Checker, Health, ImageWorker, MountProblem, OutputSink, RunEnd, RunOrder,
    RunSignals, SecretFile, SessionWorker, Stream, Worker, WorkerCounts,
};
use cofferdam_core::{InvalidValue, Limits, MountRoot};
use cofferdam_worker::runtime::by_name;
use cofferdam_worker::{
    ArtifactsWanted, FileIn, JobError, JobSpec, LiveOutput, MountRefused, OutputStream, Pool, PoolSettings,
    Runner, SECRET_MODE, Work, cancellation, check_secrets, draw_job_id, draw_sandbox_id, open_mounts,
    request, sandbox_spec,
};
use std::io::Cursor;
use std::sync::Arc;

/// Interpreters kept ready from the start; demand brings more.
const READY: [(&str, usize); 2] = [("python", 4), ("node", 1)];

/// SIGTERM, as at a deadline: what is cancelled may clean up.
const SIGTERM: i32 = 15;

#[derive(Debug)]
pub(super) struct LocalWorker {
    pool: Arc<Pool>,
    sessions: LocalSessions,
    elsewhere: Arc<Elsewhere>,
    images: LocalImages,
}

impl LocalWorker {
    pub(super) fn start(backend: Arc<dyn Backend>, elsewhere: Elsewhere) -> Self {
        let pool = Arc::new(Pool::new(Arc::clone(&backend), PoolSettings::default()));
        if let (Ok(job), Ok(sandbox)) = (draw_job_id(), draw_sandbox_id()) {
            let spec = sandbox_spec(sandbox, &JobSpec::new(job, Work::Command { argv: Vec::new() }));
            for (language, count) in READY {
                pool.keep_ready(&spec, by_name("language", language).ok(), count);
            }
        }
        let elsewhere = Arc::new(elsewhere);
        let sessions = LocalSessions::start(&pool, Arc::clone(&elsewhere));
        let images = LocalImages::new(elsewhere.store().clone(), backend);
        let worker = Self { pool, sessions, elsewhere, images };
        for pool in worker.pools() {
            let pool = Arc::clone(pool);
            tokio::spawn(async move { pool.tend().await });
        }
        worker
    }

    /// The native one first.
    fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        [&self.pool].into_iter().chain(self.elsewhere.pools())
    }
}

/// Passes output on from the one trait to the other.
struct Sink<'s>(&'s mut dyn OutputSink);

#[async_trait]
impl LiveOutput for Sink<'_> {
    fn started(&mut self) {
        self.0.started();
    }

    fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        let stream = match stream {
            OutputStream::Stdout => Stream::Stdout,
            OutputStream::Stderr => Stream::Stderr,
        };
        self.0.push(stream, bytes);
    }

    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

/// Looks at requests without being able to run them.
#[derive(Debug, Default)]
pub(super) struct RequestChecker {
    /// What of this machine jobs may see.
    roots: Vec<MountRoot>,
}

impl RequestChecker {
    pub(super) fn new(roots: Vec<MountRoot>) -> Self {
        Self { roots }
    }
}

impl Checker for RequestChecker {
    fn check(&self, wanted: &JobRequest) -> Result<Limits, InvalidValue> {
        Place::of(wanted)?;
        request::check(wanted)
    }

    fn check_mounts(&self, sandbox: &SandboxRequest) -> Result<(), MountProblem> {
        open_mounts(sandbox, &self.roots).map(drop).map_err(|refused| match refused {
            MountRefused::Outside(error) => MountProblem::Outside(error),
            MountRefused::Unusable(error) => MountProblem::Unusable(error),
        })
    }
}

#[async_trait]
impl Worker for LocalWorker {
    fn sessions(&self) -> Option<&dyn SessionWorker> {
        Some(&self.sessions)
    }

    fn images(&self) -> Option<&dyn ImageWorker> {
        Some(&self.images)
    }

    async fn backends(&self) -> Vec<BackendHealth> {
        let mut all = Vec::new();
        for backend in self.pools().map(|pool| pool.backend()) {
            let problem = backend.health().await.err().map(|error| error.to_string());
            all.push(BackendHealth { name: backend.name().to_owned(), problem });
        }
        all
    }

    async fn health(&self) -> Health {
        match self.pool.backend().health().await {
            Ok(()) => Health::Ready,
            Err(error) => Health::BackendUnhealthy(error.to_string()),
        }
    }

    fn counts(&self) -> WorkerCounts {
        let mut sum = WorkerCounts::default();
        for counts in self.pools().map(|pool| pool.counts()) {
            sum.warm += counts.warm;
            sum.cold += counts.cold;
            sum.waiting += counts.waiting;
        }
        sum
    }

    async fn stop(&self) {
        // Native sandboxes go with this process; a daemon's containers would stay until somebody looks for them.
        for pool in self.elsewhere.pools() {
            if let Err(error) = pool.drain().await {
                tracing::warn!(backend = pool.backend().name(), %error, "what waited could not be removed");
            }
        }
    }

    async fn run(&self, run: RunOrder, output: &mut dyn OutputSink, signals: RunSignals) -> RunEnd {
        if run.is_begun {
            return RunEnd::Lost { why: "the process that ran it is gone".to_owned() };
        }
        let inputs = request::inputs(&run.request);
        let runner_inputs = request::runner_inputs(&run.request);
        let secrets = run.secrets;
        let place = match Place::of(&run.request) {
            Ok(place) => place,
            Err(error) => return RunEnd::Errored { code: "invalid".into(), message: error.to_string() },
        };
        let (mut job, warnings) = match request::job(run.id, run.task_id, run.request) {
            Ok(made) => made,
            Err(error) => return RunEnd::Errored { code: "invalid".into(), message: error.to_string() },
        };
        let mut cancelled = signals.cancelled;
        let desk = output.artifacts();
        let mut opened = open_inputs(&mut job.files, inputs, desk.as_deref()).await;
        if let (Ok(()), Some(runner)) = (&opened, &mut job.runner) {
            opened = open_runner(runner, runner_inputs, desk.as_deref()).await;
        }
        if let Err(message) = opened {
            return RunEnd::Errored { code: "files_refused".into(), message };
        }
        let has_secrets = !secrets.is_empty();
        job.files.extend(secrets.into_iter().map(secret_file));
        if let Some(desk) = desk {
            job.artifacts = ArtifactsWanted::Stored(Box::new(Desk(desk)));
        }
        let (canceller, cancellation) = cancellation();
        let pool = match place {
            Some(place) => match self.elsewhere.place(place, &self.pool, &mut job).await {
                Ok(pool) => pool,
                Err(end) => return end,
            },
            None => Arc::clone(&self.pool),
        };
        if has_secrets && let Err(error) = check_secrets(&**pool.backend()) {
            return RunEnd::Errored { code: "unsupported".into(), message: error.to_string() };
        }
        let mut sink = Sink(output);
        let run = pool.run(job, &mut sink, cancellation);
        let listen = async {
            if let Ok(by) = cancelled.wait_for(Option::is_some).await.map(|by| by.clone()) {
                canceller.cancel(by.unwrap_or_default(), SIGTERM);
            }
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = run => result,
            () = listen => unreachable!("it waits for ever"),
        };
        match result {
            Ok(mut result) => {
                result.warnings.extend(warnings);
                RunEnd::Result(Box::new(result))
            }
            Err(error) => errored(&error),
        }
    }
}

/// Puts the artifacts that a job or a step was given where its files have nothing yet.
pub(super) async fn open_inputs(
    files: &mut [FileIn],
    inputs: Vec<(usize, String)>,
    desk: Option<&dyn ArtifactDesk>,
) -> Result<(), String> {
    for (i, artifact) in inputs {
        files[i].content = open_artifact(&format!("files[{i}]"), &artifact, desk).await?;
    }
    Ok(())
}

async fn open_artifact(
    field: &str,
    artifact: &str,
    desk: Option<&dyn ArtifactDesk>,
) -> Result<Reader, String> {
    let refused = |why: String| format!("{field}: the artifact {artifact} cannot be read: {why}");
    let desk = desk.ok_or_else(|| refused("this server has no artifact store".to_owned()))?;
    desk.open(artifact).await.map_err(|error| refused(error.to_string()))
}

/// The same for the project of a test or a build, and for what is expected of a job.
async fn open_runner(
    runner: &mut Runner,
    (project, expect): (Option<String>, Vec<(usize, String)>),
    desk: Option<&dyn ArtifactDesk>,
) -> Result<(), String> {
    if let Some(artifact) = project {
        runner.project = Some(open_artifact("runner.project", &artifact, desk).await?);
    }
    for (i, artifact) in expect {
        runner.expect[i].content = open_artifact(&format!("expect[{i}]"), &artifact, desk).await?;
    }
    Ok(())
}

/// A secret as a file of the sandbox's, for its own user alone.
fn secret_file(secret: SecretFile) -> FileIn {
    let content = Box::new(Cursor::new(secret.value.as_bytes().to_vec()));
    FileIn { path: secret.path, mode: SECRET_MODE, content }
}

fn errored(error: &JobError) -> RunEnd {
    let code = match error {
        JobError::Invalid(_) => "invalid",
        JobError::MissingRuntime { .. } => "runtime_missing",
        JobError::Start(_) | JobError::Workdir(_) => "not_startable",
        JobError::FileIn { .. } | JobError::Project { .. } => "files_refused",
        JobError::Create(_) | JobError::Id(_) => "sandbox_failed",
    };
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    RunEnd::Errored { code: code.into(), message }
}
