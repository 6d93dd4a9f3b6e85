//! A step on a worker elsewhere: a run, from its beginning to its end.

use super::exchange::failure;
use crate::backoff::Backoff;
use crate::call::{CallError, Peer};
use crate::follow::{FollowEnd, Followed, Told};
use async_trait::async_trait;
use cofferdam_api::{PlaceStep, RichResult, RunEnd as WireEnd, StepResult};
use cofferdam_control::{OutputSink, SessionFailure, StepEnd, StepOrder, StepSink};
use reqwest::Method;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A step whose control plane says nothing for twice this long is interrupted.
const LEASE: Duration = Duration::from_secs(10);

/// All steps are asked for under one claim.
const FENCE: i64 = 1;

/// What the worker calls a step of which nobody knows how far it came.
const LOST: &str = "lost";

/// A worker that cannot even be reached is not tried for long.
const UNREACHED: u32 = 5;

struct OfStep<'o>(&'o mut dyn StepSink);

#[async_trait]
impl Told for OfStep<'_> {
    fn output(&mut self) -> &mut dyn OutputSink {
        self.0
    }

    async fn begun(&mut self) {
        self.0.begun().await;
    }

    fn show(&mut self, result: RichResult) {
        self.0.show(result);
    }
}

pub(super) async fn run(
    peer: &Peer,
    order: StepOrder,
    output: &mut dyn StepSink,
    interrupted: watch::Receiver<Option<String>>,
) -> StepEnd {
    let id = format!("{}-{}", order.session, order.number);
    let followed = Followed { peer, id, attempt: order.generation, fence: FENCE, lease: LEASE };
    if let Err(end) = begin(peer, order).await {
        return end;
    }
    let mut told = OfStep(output);
    let end = tokio::select! {
        end = followed.follow(&mut told) => end,
        never = followed.keep_renewing() => match never {},
        never = followed.pass_on_end(interrupted) => match never {},
    };
    let (peer, id, attempt) = (peer.clone(), followed.id, followed.attempt);
    tokio::spawn(async move {
        Followed { peer: &peer, id, attempt, fence: FENCE, lease: LEASE }.forget().await;
    });
    match end {
        FollowEnd::Unknown(why) | FollowEnd::Lost(why) => StepEnd::Lost { why },
        FollowEnd::End(end) => read(end),
    }
}

/// Begins a step, or says why it did not, or that nobody knows. However often that is tried, it is begun once.
async fn begin(peer: &Peer, order: StepOrder) -> Result<(), StepEnd> {
    let StepOrder { session, generation, number, request } = order;
    let lease_ms = LEASE.as_millis() as u64;
    let (path, body) =
        (format!("/sessions/{session}/steps"), PlaceStep { generation, number, lease_ms, request });
    let (began, mut backoff, mut unreached, mut is_known) = (Instant::now(), Backoff::default(), 0, true);
    loop {
        let error = match peer.call(Method::POST, &path, Some(&body)).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        match &error {
            CallError::Refused { status: 404 | 409, message, .. } => {
                return Err(StepEnd::Lost { why: message.clone() });
            }
            CallError::Refused { .. } if is_known => return Err(StepEnd::Errored(failure(error))),
            CallError::Refused { message, .. } => return Err(StepEnd::Lost { why: message.clone() }),
            CallError::Unreached(..) => {
                unreached += 1;
                if is_known && unreached >= UNREACHED {
                    return Err(StepEnd::Errored(failure(error)));
                }
            }
            CallError::Unanswered(..) => is_known = false,
        }
        if began.elapsed() > LEASE * 2 {
            return Err(StepEnd::Lost { why: error.to_string() });
        }
        backoff.pause().await;
    }
}

fn read(end: WireEnd) -> StepEnd {
    match end {
        WireEnd::Errored { code, message } if code == LOST => StepEnd::Lost { why: message },
        WireEnd::Errored { code, message } => StepEnd::Errored(SessionFailure { code, message }),
        WireEnd::Result { result } => match serde_json::from_value::<StepResult>(result) {
            Ok(mut result) => {
                // Which artifacts are kept is known where they are kept, and what was written came before.
                for artifact in &mut result.artifacts {
                    (artifact.id, artifact.sha256) = (None, None);
                }
                StepEnd::Result(Box::new(result))
            }
            Err(error) => {
                let message = format!("the worker's result cannot be read: {error}");
                StepEnd::Errored(SessionFailure::new("unreadable", message))
            }
        },
    }
}
