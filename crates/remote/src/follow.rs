//! Following a run on a worker elsewhere: a job's, or a step's. What it writes comes once and in order, however often
//! the connection breaks.

use crate::artifacts::Transfers;
use crate::backoff::Backoff;
use crate::call::{ANSWER, CallError, Peer};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{RichResult, RunEnd as WireEnd, RunEvent, RunLease, RunTerminate};
use cofferdam_control::{OutputSink, Stream};
use reqwest::{Method, Response};
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// More than any line of a well-behaved worker: a piece of output in base64, something that a step shows, or a result.
const MAX_LINE_BYTES: usize = 20 << 20;

/// A run, and the claim under which it is followed.
#[derive(Debug)]
pub(crate) struct Followed<'p> {
    pub(crate) peer: &'p Peer,
    pub(crate) id: String,
    pub(crate) attempt: i64,
    pub(crate) fence: i64,
    pub(crate) lease: Duration,
}

/// Who is told what a run says.
#[async_trait]
pub(crate) trait Told: Send {
    fn output(&mut self) -> &mut dyn OutputSink;

    /// The turn of a step has come.
    async fn begun(&mut self) {}

    fn show(&mut self, _: RichResult) {}
}

#[derive(Debug)]
pub(crate) enum FollowEnd {
    End(WireEnd),
    /// The worker does not know it under this claim, and nothing was heard of it.
    Unknown(String),
    /// Nobody knows how far it came.
    Lost(String),
}

/// Whether a worker has begun a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    Yes,
    /// It was not begun, and will not be.
    Never,
    Unknown,
}

/// Where a follower is, and how it ended.
enum Once {
    End(FollowEnd),
    /// The connection broke.
    Cut(String),
}

impl Followed<'_> {
    /// Follows the output to the end. A connection that breaks is made again, and goes on after the last event.
    pub(crate) async fn follow(&self, told: &mut dyn Told) -> FollowEnd {
        let (mut seen, mut last) = (0, Instant::now());
        let desk = told.output().artifacts();
        let mut transfers = Transfers::new(self.peer, (&self.id, self.attempt, self.fence), desk);
        let mut backoff = Backoff::default();
        loop {
            let before = seen;
            let why = match self.follow_once(&mut seen, &mut last, told, &mut transfers).await {
                Once::End(end) => return end,
                Once::Cut(why) => why,
            };
            if seen > before {
                backoff = Backoff::default();
            }
            // By then the worker has ended it, for nobody has renewed its lease there.
            if last.elapsed() > self.lease * 2 {
                return FollowEnd::Lost(why);
            }
            backoff.pause().await;
        }
    }

    async fn follow_once(
        &self,
        seen: &mut u64,
        last: &mut Instant,
        told: &mut dyn Told,
        transfers: &mut Transfers,
    ) -> Once {
        let Self { id, attempt, fence, .. } = self;
        let path = format!("/runs/{id}/output?attempt={attempt}&fence={fence}&after={seen}");
        let opened = self.peer.open(Method::GET, &path, None::<&()>).await;
        self.peer.note(&opened);
        let mut lines = match opened {
            Ok(answer) => Lines { answer, rest: Vec::new(), looked: 0 },
            Err(CallError::Refused { status: 404 | 409, message, .. }) => {
                return Once::End(match *seen {
                    0 => FollowEnd::Unknown(message),
                    _ => FollowEnd::Lost(message),
                });
            }
            Err(error) => return Once::Cut(error.to_string()),
        };
        loop {
            let event = match tokio::time::timeout(2 * self.lease.min(ANSWER), lines.next()).await {
                Ok(Ok(Some(event))) => event,
                Ok(Ok(None)) => return Once::Cut("the worker has ended the connection".to_owned()),
                Ok(Err(why)) => return Once::Cut(why),
                Err(_) => return Once::Cut("the worker says nothing any more".to_owned()),
            };
            *last = Instant::now();
            let wrong = || Once::Cut("the worker sent something else than the next event".to_owned());
            // Once, and in order: anything else is not our worker's.
            match number_of(&event) {
                None => continue,
                Some(seq) if seq == *seen + 1 => *seen = seq,
                Some(_) => return wrong(),
            }
            let (stream, base64) = match event {
                RunEvent::Stdout { base64, .. } => (Stream::Stdout, base64),
                RunEvent::Stderr { base64, .. } => (Stream::Stderr, base64),
                RunEvent::End { end, .. } => return Once::End(FollowEnd::End(end)),
                other => {
                    tell(other, told, transfers).await;
                    continue;
                }
            };
            match STANDARD.decode(base64) {
                Ok(bytes) => told.output().push(stream, &bytes),
                Err(_) => return wrong(),
            }
            told.output().ready().await;
        }
    }

    /// Passes on that the lease was renewed.
    pub(crate) async fn pass_on_renewals(&self, mut renewed: watch::Receiver<u64>) -> Infallible {
        while renewed.changed().await.is_ok() {
            let mut backoff = Backoff::default();
            // Until the next renewal, which takes its place.
            while !self.renew().await {
                if renewed.has_changed().unwrap_or(true) {
                    break;
                }
                backoff.pause().await;
            }
        }
        std::future::pending().await
    }

    /// Renews the lease for as long as this process is there to.
    pub(crate) async fn keep_renewing(&self) -> Infallible {
        loop {
            tokio::time::sleep(self.lease / 3).await;
            self.renew().await;
        }
    }

    /// Whether the worker has answered.
    async fn renew(&self) -> bool {
        let path = format!("/runs/{}/lease", self.id);
        let lease_ms = self.lease.as_millis() as u64;
        let lease = RunLease { attempt: self.attempt, fence: self.fence, lease_ms };
        let renewed = self.peer.call(Method::POST, &path, Some(&lease)).await;
        !matches!(renewed, Err(CallError::Unreached(..) | CallError::Unanswered(..)))
    }

    /// Passes on that the run is to be ended.
    pub(crate) async fn pass_on_end(&self, mut cancelled: watch::Receiver<Option<String>>) -> Infallible {
        let by = cancelled.wait_for(Option::is_some).await.map(|by| by.clone().unwrap_or_default());
        if let Ok(by) = by {
            let path = format!("/runs/{}/terminate", self.id);
            let wanted = RunTerminate { attempt: self.attempt, fence: self.fence, by };
            let mut backoff = Backoff::default();
            while let Err(CallError::Unreached(..) | CallError::Unanswered(..)) =
                self.peer.call(Method::POST, &path, Some(&wanted)).await
            {
                backoff.pause().await;
            }
        }
        std::future::pending().await
    }

    /// Asks of a run that another process was to begin whether the worker knows it. One that it does not know, it will
    /// not begin any more either.
    pub(crate) async fn was_begun(&self) -> Begun {
        let path = format!("/runs/{}/bar?attempt={}&fence={}", self.id, self.attempt, self.fence);
        let (began, mut backoff) = (Instant::now(), Backoff::default());
        loop {
            match self.peer.call(Method::POST, &path, None::<&()>).await {
                Ok(_) => return Begun::Never,
                Err(CallError::Refused { status: 409, .. }) => return Begun::Yes,
                Err(CallError::Refused { .. }) => return Begun::Unknown,
                Err(_) if began.elapsed() > self.lease => return Begun::Unknown,
                Err(_) => backoff.pause().await,
            }
        }
    }

    /// Its end was heard, and the worker need not remember it.
    pub(crate) async fn forget(&self) {
        let path = format!("/runs/{}?attempt={}&fence={}", self.id, self.attempt, self.fence);
        // What is not forgotten now is forgotten with its lease.
        let _ = self.peer.call(Method::DELETE, &path, None::<&()>).await;
    }
}

async fn tell(event: RunEvent, told: &mut dyn Told, transfers: &mut Transfers) {
    match event {
        RunEvent::Started { .. } => told.output().started(),
        RunEvent::Begun { .. } => told.begun().await,
        RunEvent::Shown { result, .. } => told.show(result),
        RunEvent::Input { number, artifact, .. } => transfers.bring(number, artifact),
        RunEvent::Output { number, path, .. } => transfers.fetch(number, path),
        RunEvent::Idle | RunEvent::Stdout { .. } | RunEvent::Stderr { .. } | RunEvent::End { .. } => {}
    }
}

fn number_of(event: &RunEvent) -> Option<u64> {
    match event {
        RunEvent::Idle => None,
        RunEvent::Stdout { seq, .. }
        | RunEvent::Stderr { seq, .. }
        | RunEvent::Started { seq }
        | RunEvent::Begun { seq }
        | RunEvent::Shown { seq, .. }
        | RunEvent::Input { seq, .. }
        | RunEvent::Output { seq, .. }
        | RunEvent::End { seq, .. } => Some(*seq),
    }
}

/// The lines of an answer.
struct Lines {
    answer: Response,
    rest: Vec<u8>,
    /// No line ends before this.
    looked: usize,
}

impl Lines {
    async fn next(&mut self) -> Result<Option<RunEvent>, String> {
        loop {
            if let Some(at) = self.rest[self.looked..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=self.looked + at).collect();
                self.looked = 0;
                return serde_json::from_slice(&line).map(Some).map_err(|error| error.to_string());
            }
            self.looked = self.rest.len();
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
