//! A job on a worker elsewhere, from its beginning to its end.

use crate::call::Peer;
use crate::create::create;
use crate::follow::{Begun, FollowEnd, Followed, Told};
use crate::images::HttpImages;
use crate::sessions::HttpSessions;
use async_trait::async_trait;
use cofferdam_api::RunEnd as WireEnd;
use cofferdam_control::{ImageWorker, OutputSink, RunEnd, RunOrder, RunSignals, SessionWorker, Worker};
use cofferdam_core::{JobId, JobResult};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct HttpWorker {
    id: String,
    peer: Peer,
    /// Whether its address may be used at all.
    is_allowed: bool,
    sessions: HttpSessions,
    images: HttpImages,
}

impl HttpWorker {
    pub(crate) fn new(id: &str, peer: Peer, is_allowed: bool) -> Self {
        let sessions = HttpSessions::new(id, peer.clone(), is_allowed);
        let images = HttpImages::new(id, peer.clone(), is_allowed);
        Self { id: id.to_owned(), peer, is_allowed, sessions, images }
    }
}

/// A job has output, and nothing else to tell.
struct OfJob<'o>(&'o mut dyn OutputSink);

impl Told for OfJob<'_> {
    fn output(&mut self) -> &mut dyn OutputSink {
        self.0
    }
}

#[async_trait]
impl Worker for HttpWorker {
    fn sessions(&self) -> Option<&dyn SessionWorker> {
        Some(&self.sessions)
    }

    fn images(&self) -> Option<&dyn ImageWorker> {
        Some(&self.images)
    }

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
        let RunOrder { id, attempt, fence, lease, is_begun, .. } = run;
        let followed = Followed { peer: &self.peer, id: id.to_string(), attempt, fence, lease };
        let RunSignals { cancelled, renewed } = signals;
        let mut told = OfJob(output);
        tokio::select! {
            end = follow(&followed, &mut told, is_begun) => end,
            never = followed.pass_on_renewals(renewed) => match never {},
            never = followed.pass_on_end(cancelled) => match never {},
        }
    }

    async fn forget(&self, id: &JobId, attempt: i64, fence: i64) {
        let (id, lease) = (id.to_string(), Duration::ZERO);
        Followed { peer: &self.peer, id, attempt, fence, lease }.forget().await;
    }
}

/// Follows a run to its end. One that was taken over may be unknown to its worker because whoever was to begin it died
/// before.
async fn follow(followed: &Followed<'_>, told: &mut OfJob<'_>, is_taken_over: bool) -> RunEnd {
    let mut is_asked = !is_taken_over;
    loop {
        let why = match followed.follow(told).await {
            FollowEnd::End(end) => return read(end),
            FollowEnd::Unknown(why) if !is_asked => why,
            FollowEnd::Unknown(why) | FollowEnd::Lost(why) => return RunEnd::Lost { why },
        };
        is_asked = true;
        match followed.was_begun().await {
            Begun::Never => return RunEnd::Unstarted { why },
            Begun::Unknown => return RunEnd::Lost { why },
            // Just after it was looked for, or long ago: the next look says which.
            Begun::Yes => {}
        }
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
