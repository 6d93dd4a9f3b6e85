//! Asking for a run. However often that is tried, it is begun once; and what is said of it is only what is known.

use crate::backoff::Backoff;
use crate::call::{CallError, Peer};
use cofferdam_api::{RunCreate, RunSecret};
use cofferdam_control::{RunEnd, RunOrder, SecretFile};
use reqwest::Method;
use std::time::Instant;

/// A worker that cannot even be reached is not tried for long: another may be free.
const UNREACHED: u32 = 3;

fn wire(secret: &SecretFile) -> RunSecret {
    RunSecret { path: secret.path.to_string(), value: secret.value.to_string() }
}

/// Begins a run, or says why it did not, or that nobody knows.
pub(crate) async fn create(worker_id: &str, peer: &Peer, order: &RunOrder) -> Result<(), RunEnd> {
    if !peer.breaker.allows(Instant::now()) {
        return Err(RunEnd::Unstarted { why: format!("{} has failed too often just now", peer.url) });
    }
    let body = RunCreate {
        worker_id: worker_id.to_owned(),
        job_id: order.id.to_string(),
        task_id: order.task_id.as_str().to_owned(),
        attempt: order.attempt,
        fence: order.fence,
        lease_ms: order.lease.as_millis() as u64,
        request: order.request.clone(),
        secrets: order.secrets.iter().map(wire).collect(),
    };
    let (began, mut backoff, mut unreached, mut is_known) = (Instant::now(), Backoff::default(), 0, true);
    loop {
        let error = match peer.call(Method::POST, "/runs", Some(&body)).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        match error {
            CallError::Refused { status: 409, message, .. } => return Err(RunEnd::Lost { why: message }),
            CallError::Refused { status: 422, message, .. } => {
                return Err(RunEnd::Errored { code: "invalid".into(), message });
            }
            // An answer to this try says nothing of one that was not answered, unless it is that the run is there.
            CallError::Refused { message, .. } if is_known => return Err(RunEnd::Unstarted { why: message }),
            CallError::Refused { message, .. } => return Err(RunEnd::Lost { why: message }),
            CallError::Unreached(..) => {
                unreached += 1;
                if is_known && unreached >= UNREACHED {
                    return Err(RunEnd::Unstarted { why: error.to_string() });
                }
            }
            CallError::Unanswered(..) => is_known = false,
        }
        // By then the worker has ended what it may have begun.
        if began.elapsed() > order.lease * 2 {
            return Err(RunEnd::Lost { why: error.to_string() });
        }
        backoff.pause().await;
    }
}
