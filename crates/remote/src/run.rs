//! A run on a worker elsewhere, from its beginning to its end.

use crate::artifacts::Transfers;
use crate::backoff::Backoff;
use crate::call::{ANSWER, CallError, Peer};
use crate::create::create;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{RunEnd as WireEnd, RunEvent, RunLease, RunTerminate};
use cofferdam_control::{OutputSink, RunEnd, RunOrder, RunSignals, Stream, Worker};
use cofferdam_core::{JobId, JobResult};
use reqwest::{Method, Response};
use std::convert::Infallible;
use std::time::Instant;
use tokio::sync::watch;

/// More than any line of a well-behaved worker: a piece of output in base64, or a result.
const MAX_LINE_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(crate) struct HttpWorker {
    pub(crate) id: String,
    pub(crate) peer: Peer,
    /// Whether its address may be used at all.
    pub(crate) is_allowed: bool,
}

#[async_trait]
impl Worker for HttpWorker {
    async fn run(&self, run: RunOrder, output: &mut dyn OutputSink, signals: RunSignals) -> RunEnd {
        if !self.is_allowed {
            let why = format!("{} is not on loopback and has no TLS", self.peer.url);
            return RunEnd::Unstarted { why };
        }
        if !run.is_begun
            && let Err(end) = create(&self.id, &self.peer, &run).await
        {
            return end;
        }
        tokio::select! {
            end = self.follow(&run, output) => end,
            never = self.pass_on(&run, signals) => match never {},
        }
    }

    async fn forget(&self, id: &JobId, attempt: i64, fence: i64) {
        let path = format!("/runs/{id}?attempt={attempt}&fence={fence}");
        // What is not forgotten now is forgotten with its lease.
        let _ = self.peer.call(Method::DELETE, &path, None::<&()>).await;
    }
}

/// Where a follower is, and how it ended.
enum Followed {
    End(RunEnd),
    /// The connection broke.
    Cut(String),
}

impl HttpWorker {
    /// Follows the output to the end. A connection that breaks is made again, and goes on after the last event.
    async fn follow(&self, run: &RunOrder, output: &mut dyn OutputSink) -> RunEnd {
        let (mut seen, mut last) = (0, Instant::now());
        let mut transfers = Transfers::new(&self.peer, run, output.artifacts());
        let mut backoff = Backoff::default();
        loop {
            let before = seen;
            let why = match self.follow_once(run, &mut seen, &mut last, output, &mut transfers).await {
                Followed::End(end) => return end,
                Followed::Cut(why) => why,
            };
            if seen > before {
                backoff = Backoff::default();
            }
            // By then the worker has ended it, for nobody has renewed its lease there.
            if last.elapsed() > run.lease * 2 {
                return RunEnd::Lost { why };
            }
            backoff.pause().await;
        }
    }

    async fn follow_once(
        &self,
        run: &RunOrder,
        seen: &mut u64,
        last: &mut Instant,
        output: &mut dyn OutputSink,
        transfers: &mut Transfers,
    ) -> Followed {
        let path =
            format!("/runs/{}/output?attempt={}&fence={}&after={seen}", run.id, run.attempt, run.fence);
        let opened = self.peer.open(Method::GET, &path, None::<&()>).await;
        self.peer.note(&opened);
        let mut lines = match opened {
            Ok(answer) => Lines { answer, rest: Vec::new() },
            Err(CallError::Refused { status: 404 | 409, message }) => {
                return Followed::End(RunEnd::Lost { why: message });
            }
            Err(error) => return Followed::Cut(error.to_string()),
        };
        loop {
            let event = match tokio::time::timeout(2 * run.lease.min(ANSWER), lines.next()).await {
                Ok(Ok(Some(event))) => event,
                Ok(Ok(None)) => return Followed::Cut("the worker has ended the connection".to_owned()),
                Ok(Err(why)) => return Followed::Cut(why),
                Err(_) => return Followed::Cut("the worker says nothing any more".to_owned()),
            };
            *last = Instant::now();
            let wrong = || Followed::Cut("the worker sent something else than the next event".to_owned());
            // Once, and in order: anything else is not our worker's.
            match number_of(&event) {
                None => continue,
                Some(seq) if seq == *seen + 1 => *seen = seq,
                Some(_) => return wrong(),
            }
            let (stream, base64) = match event {
                RunEvent::Idle => continue,
                RunEvent::End { end, .. } => return Followed::End(read(end)),
                RunEvent::Started { .. } => {
                    output.started();
                    continue;
                }
                RunEvent::Input { number, artifact, .. } => {
                    transfers.bring(number, artifact);
                    continue;
                }
                RunEvent::Output { number, path, .. } => {
                    transfers.fetch(number, path);
                    continue;
                }
                RunEvent::Stdout { base64, .. } => (Stream::Stdout, base64),
                RunEvent::Stderr { base64, .. } => (Stream::Stderr, base64),
            };
            match STANDARD.decode(base64) {
                Ok(bytes) => output.push(stream, &bytes),
                Err(_) => return wrong(),
            }
            output.ready().await;
        }
    }

    /// Passes on that the lease was renewed, and that the run is to be ended.
    async fn pass_on(&self, run: &RunOrder, signals: RunSignals) -> Infallible {
        let RunSignals { cancelled, renewed } = signals;
        tokio::select! {
            never = self.pass_on_renewals(run, renewed) => never,
            never = self.pass_on_end(run, cancelled) => never,
        }
    }

    async fn pass_on_renewals(&self, run: &RunOrder, mut renewed: watch::Receiver<u64>) -> Infallible {
        let path = format!("/runs/{}/lease", run.id);
        let lease_ms = run.lease.as_millis() as u64;
        let lease = RunLease { attempt: run.attempt, fence: run.fence, lease_ms };
        while renewed.changed().await.is_ok() {
            let mut backoff = Backoff::default();
            // Until the next renewal, which takes its place.
            while let Err(CallError::Unreached(..) | CallError::Unanswered(..)) =
                self.peer.call(Method::POST, &path, Some(&lease)).await
            {
                if renewed.has_changed().unwrap_or(true) {
                    break;
                }
                backoff.pause().await;
            }
        }
        std::future::pending().await
    }

    async fn pass_on_end(
        &self,
        run: &RunOrder,
        mut cancelled: watch::Receiver<Option<String>>,
    ) -> Infallible {
        let by = cancelled.wait_for(Option::is_some).await.map(|by| by.clone().unwrap_or_default());
        if let Ok(by) = by {
            let path = format!("/runs/{}/terminate", run.id);
            let wanted = RunTerminate { attempt: run.attempt, fence: run.fence, by };
            let mut backoff = Backoff::default();
            while let Err(CallError::Unreached(..) | CallError::Unanswered(..)) =
                self.peer.call(Method::POST, &path, Some(&wanted)).await
            {
                backoff.pause().await;
            }
        }
        std::future::pending().await
    }
}

fn number_of(event: &RunEvent) -> Option<u64> {
    match event {
        RunEvent::Idle => None,
        RunEvent::Stdout { seq, .. }
        | RunEvent::Stderr { seq, .. }
        | RunEvent::Started { seq }
        | RunEvent::Input { seq, .. }
        | RunEvent::Output { seq, .. }
        | RunEvent::End { seq, .. } => Some(*seq),
    }
}

fn read(end: WireEnd) -> RunEnd {
    match end {
        WireEnd::Errored { code, message } => RunEnd::Errored { code: code.into(), message },
        WireEnd::Result { result } => match serde_json::from_value::<JobResult>(result) {
            Ok(mut result) => {
                // Which artifacts are kept is known where they are kept.
                for artifact in &mut result.artifacts {
                    (artifact.id, artifact.sha256) = (None, None);
                }
                RunEnd::Result(Box::new(result))
            }
            Err(error) => {
                let message = format!("the worker's result cannot be read: {error}");
                RunEnd::Errored { code: "unreadable".into(), message }
            }
        },
    }
}

/// The lines of an answer.
struct Lines {
    answer: Response,
    rest: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> Result<Option<RunEvent>, String> {
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=at).collect();
                return serde_json::from_slice(&line).map(Some).map_err(|error| error.to_string());
            }
            if self.rest.len() > MAX_LINE_BYTES {
                return Err("the worker sent a line that has no end".to_owned());
            }
            match self.answer.chunk().await {
                Ok(Some(bytes)) => self.rest.extend_from_slice(&bytes),
                Ok(None) => return Ok(None),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}
