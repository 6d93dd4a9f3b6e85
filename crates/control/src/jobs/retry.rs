//! Whether a job is tried again. Only what its caller asked for is, and every attempt is noted.

use crate::worker::RunEnd;
use crate::{fleet::signed, now_ms};
use cofferdam_api::{JobRequest, Retries, RetryCause, RetryPolicy};
use cofferdam_store::{AuditEvent, GivenUp, JobRecord, Next};
use serde_json::json;

/// Longer than this nobody waits for the next attempt.
const MAX_WAIT_MS: u64 = 3_600_000;

/// An attempt that is over.
pub(super) struct Ended<'r> {
    pub(super) id: &'r str,
    pub(super) tenant: String,
    pub(super) fence: i64,
    pub(super) attempt: i64,
    pub(super) worker: &'r str,
    /// None where the caller asked for none, or for an end.
    pub(super) policy: Option<RetryPolicy>,
}

/// What is to be written.
pub(super) enum Decided {
    Finish(RunEnd),
    GiveUp(GivenUp, AuditEvent),
}

pub(super) fn decide(run: &Ended<'_>, end: RunEnd) -> Decided {
    let next = |cause| next(run.policy.as_ref(), run.attempt, cause);
    let (next, reason, message) = match end {
        RunEnd::Unstarted { why } => (Next::Unstarted, "unstarted".to_owned(), why),
        RunEnd::Lost { why } => (next(RetryCause::Lost), "worker_gone".to_owned(), why),
        RunEnd::Errored { code, message } => match next(RetryCause::Errored) {
            Next::Lost => return Decided::Finish(RunEnd::Errored { code, message }),
            next => (next, code.into_owned(), message),
        },
        RunEnd::Result(result) => return Decided::Finish(RunEnd::Result(result)),
    };
    let (given_up, event) = write(run, None, next, &reason, &message);
    Decided::GiveUp(given_up, event)
}

/// Gives up the run of a job that nobody answers for.
pub(crate) fn give_up(
    job: &JobRecord,
    cause: RetryCause,
    reason: &str,
    message: &str,
) -> (GivenUp, AuditEvent) {
    let request: Option<JobRequest> = serde_json::from_str(&job.spec).ok();
    let policy = request.and_then(|request| request.retries).as_ref().map(Retries::policy);
    let policy = policy.filter(|_| job.cancelled_by.is_none());
    let next = next(policy.as_ref(), job.starts, cause);
    let worker = job.worker.as_deref().unwrap_or_default();
    let (tenant, fence, attempt) = (job.tenant.clone(), job.fence, job.starts);
    let run = Ended { id: &job.id, tenant, fence, attempt, worker, policy };
    write(&run, job.lease_until_ms, next, reason, message)
}

/// What comes after an attempt that ended like this.
fn next(policy: Option<&RetryPolicy>, attempt: i64, cause: RetryCause) -> Next {
    match policy {
        Some(policy) if policy.on.contains(&cause) && attempt <= i64::from(policy.max) => {
            let doubled = u32::try_from(attempt - 1).unwrap_or(u32::MAX);
            let wait = policy.backoff_ms.saturating_mul(2u64.saturating_pow(doubled));
            Next::Again { wait_ms: signed(wait.min(MAX_WAIT_MS)) }
        }
        _ => Next::Lost,
    }
}

fn write(
    run: &Ended<'_>,
    seen_lease_ms: Option<i64>,
    next: Next,
    reason: &str,
    message: &str,
) -> (GivenUp, AuditEvent) {
    let at_ms = now_ms();
    let (kind, details) = match next {
        Next::Lost => (
            "job.finished",
            json!({"state": "lost", "reason": reason, "attempt": run.attempt, "worker": run.worker}),
        ),
        Next::Again { wait_ms } => {
            ("job.retried", json!({"reason": reason, "attempt": run.attempt, "wait_ms": wait_ms}))
        }
        Next::Unstarted => ("job.requeued", json!({"reason": reason})),
    };
    let event = AuditEvent { at_ms, kind, actor: "system".to_owned(), resource: run.id.to_owned(), details };
    let given_up = GivenUp {
        id: run.id.to_owned(),
        tenant: run.tenant.clone(),
        fence: run.fence,
        seen_lease_ms,
        next,
        reason: reason.to_owned(),
        message: message.replace('\0', "\u{fffd}"),
        at_ms,
    };
    (given_up, event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(max: u32, on: &[RetryCause], backoff_ms: u64) -> RetryPolicy {
        RetryPolicy { max, on: on.to_vec(), backoff_ms }
    }

    #[test]
    fn nothing_is_tried_again_that_nobody_asked_for() {
        assert_eq!(next(None, 1, RetryCause::Lost), Next::Lost);
        let none = policy(0, &[RetryCause::Lost], 0);
        assert_eq!(next(Some(&none), 1, RetryCause::Lost), Next::Lost);
        let errored = policy(3, &[RetryCause::Errored], 0);
        assert_eq!(next(Some(&errored), 1, RetryCause::Lost), Next::Lost);
        assert_eq!(next(Some(&errored), 1, RetryCause::Errored), Next::Again { wait_ms: 0 });
    }

    #[test]
    fn attempts_are_counted_and_wait_twice_as_long_each_time() {
        let policy = policy(3, &[RetryCause::Lost], 100);
        let waits: Vec<_> = (1..=4).map(|attempt| next(Some(&policy), attempt, RetryCause::Lost)).collect();
        let again = |wait_ms| Next::Again { wait_ms };
        assert_eq!(waits, [again(100), again(200), again(400), Next::Lost]);
    }

    #[test]
    fn a_number_means_lost_and_errored() {
        let policy = Retries::Max(1).policy();
        for cause in [RetryCause::Lost, RetryCause::Errored] {
            assert_eq!(next(Some(&policy), 1, cause), Next::Again { wait_ms: 0 });
            assert_eq!(next(Some(&policy), 2, cause), Next::Lost);
        }
    }
}
