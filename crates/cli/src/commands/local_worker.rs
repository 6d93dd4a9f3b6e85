//! The worker in the same process: the pool of sandboxes, behind the trait that control knows.

use super::local_sessions::LocalSessions;
use async_trait::async_trait;
use cofferdam_api::JobRequest;
use cofferdam_backend::Backend;
use cofferdam_control::{Checker, OutputSink, RunEnd, RunOrder, RunSignals, SessionWorker, Stream, Worker};
use cofferdam_core::{InvalidValue, Limits};
use cofferdam_worker::runtime::by_name;
use cofferdam_worker::{
    JobError, JobSpec, LiveOutput, OutputStream, Pool, PoolSettings, Work, cancellation, draw_job_id,
    draw_sandbox_id, request, sandbox_spec,
};
use std::sync::Arc;

/// Interpreters kept ready from the start; demand brings more.
const READY: [(&str, usize); 2] = [("python", 4), ("node", 1)];

/// SIGTERM, as at a deadline: what is cancelled may clean up.
const SIGTERM: i32 = 15;

#[derive(Debug)]
pub(super) struct LocalWorker {
    pool: Arc<Pool>,
    sessions: LocalSessions,
}

impl LocalWorker {
    pub(super) fn start(backend: Arc<dyn Backend>) -> Self {
        let pool = Arc::new(Pool::new(backend, PoolSettings::default()));
        if let (Ok(job), Ok(sandbox)) = (draw_job_id(), draw_sandbox_id()) {
            let spec = sandbox_spec(sandbox, &JobSpec::new(job, Work::Command { argv: Vec::new() }));
            for (language, count) in READY {
                pool.keep_ready(&spec, by_name("language", language).ok(), count);
            }
        }
        let sessions = LocalSessions::start(&pool);
        let tended = Arc::clone(&pool);
        tokio::spawn(async move { tended.tend().await });
        Self { pool, sessions }
    }
}

/// Passes output on from the one trait to the other.
struct Sink<'s>(&'s mut dyn OutputSink);

#[async_trait]
impl LiveOutput for Sink<'_> {
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
#[derive(Debug)]
pub(super) struct RequestChecker;

impl Checker for RequestChecker {
    fn check(&self, wanted: &JobRequest) -> Result<Limits, InvalidValue> {
        request::check(wanted)
    }
}

#[async_trait]
impl Worker for LocalWorker {
    fn sessions(&self) -> Option<&dyn SessionWorker> {
        Some(&self.sessions)
    }

    async fn run(&self, run: RunOrder, output: &mut dyn OutputSink, signals: RunSignals) -> RunEnd {
        if run.is_begun {
            return RunEnd::Lost { why: "the process that ran it is gone".to_owned() };
        }
        let (job, warnings) = match request::job(run.id, run.task_id, run.request) {
            Ok(made) => made,
            Err(error) => return RunEnd::Errored { code: "invalid".into(), message: error.to_string() },
        };
        let mut cancelled = signals.cancelled;
        let (canceller, cancellation) = cancellation();
        let mut sink = Sink(output);
        let run = self.pool.run(job, &mut sink, cancellation);
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

fn errored(error: &JobError) -> RunEnd {
    let code = match error {
        JobError::Invalid(_) => "invalid",
        JobError::MissingRuntime { .. } => "runtime_missing",
        JobError::Start(_) | JobError::Workdir(_) => "not_startable",
        JobError::FileIn { .. } => "files_refused",
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
