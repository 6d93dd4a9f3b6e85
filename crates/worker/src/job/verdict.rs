//! How a job ended, told from what the kernel counted and reported. Pure.

use super::supervise::{Cause, Ending};
use cofferdam_backend::{ExitStatus, Stats};
use cofferdam_core::{LimitHit, LimitKind, Outcome, ResourceUsage};
use std::time::Duration;

/// What ended the process.
///
/// An out-of-memory kill anywhere in a job's sandbox ends the job: it is asked for with that scope, so that
/// where a kernel took only one process of it the verdict is still the same.
pub(super) fn outcome(ending: &Ending, stats: &Stats, lost_output: Option<String>) -> Outcome {
    match &ending.cause {
        Cause::Deadline => return Outcome::TimedOut,
        Cause::Cancelled { by } => return Outcome::Cancelled { by: by.clone() },
        Cause::Itself => {}
    }
    if stats.oom_kills.is_some_and(|kills| kills > 0) {
        return Outcome::OomKilled;
    }
    match &ending.status {
        Some(Ok(ExitStatus::Exited(code))) => match lost_output {
            // Success without its output would be a lie.
            Some(message) => Outcome::Failed { code: "output_lost".to_owned(), message },
            None => Outcome::Exited { code: *code },
        },
        Some(Ok(ExitStatus::Signaled(signal))) => Outcome::Signaled { signal: *signal },
        Some(Ok(ExitStatus::Lost)) | None => Outcome::Lost,
        Some(Err(error)) => Outcome::Failed { code: "wait_failed".to_owned(), message: error.to_string() },
    }
}

/// What the job ran into on the way. `dropped_at` says when each stream first lost bytes, if it did.
///
/// Nobody counts ENOSPC for us, and "nearly full" is no evidence of it: only a disk that is found without a
/// single free byte or inode at the end counts as one that was hit.
pub(super) fn limits_hit(stats: &Stats, dropped_at: &[Duration]) -> Vec<LimitHit> {
    let counted = [
        (LimitKind::Memory, stats.memory_limit_hits),
        (LimitKind::Pids, stats.pids_limit_hits),
        (LimitKind::Cpu, stats.cpu_throttled),
        (LimitKind::Disk, stats.disk_free_bytes.map(|free| u64::from(free == 0))),
        (LimitKind::Inodes, stats.disk_free_inodes.map(|free| u64::from(free == 0))),
        (LimitKind::Output, Some(dropped_at.len() as u64)),
    ];
    let first_dropped_ms = dropped_at.iter().min().map(|at| at.as_millis() as u64);
    let hit = counted.into_iter().filter_map(|(limit, count)| Some((limit, count.filter(|n| *n > 0)?)));
    hit.map(|(limit, count)| LimitHit {
        limit,
        count,
        first_at_ms: first_dropped_ms.filter(|_| limit == LimitKind::Output),
    })
    .collect()
}

/// Completes what the backend measured with what only the job's duration tells.
pub(super) fn usage(stats: Stats, duration: Duration) -> ResourceUsage {
    let mut usage = stats.usage;
    let seconds = duration.as_secs_f64();
    if let (None, Some(cpu_ms)) = (usage.cpu_percent, usage.cpu_time_ms)
        && seconds > 0.0
    {
        let percent = cpu_ms as f64 / 10.0 / seconds;
        usage.cpu_percent = Some((percent * 10.0).round() / 10.0);
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(cause: Cause, status: Option<ExitStatus>) -> Ending {
        Ending { cause, status: status.map(Ok), forced: false }
    }

    #[test]
    fn the_cause_comes_before_the_status() {
        let none = Stats::default();
        let late = ended(Cause::Deadline, Some(ExitStatus::Exited(0)));
        assert_eq!(outcome(&late, &none, None), Outcome::TimedOut);
        let asked = ended(Cause::Cancelled { by: "me".into() }, None);
        assert_eq!(outcome(&asked, &none, None), Outcome::Cancelled { by: "me".into() });
    }

    #[test]
    fn an_out_of_memory_kill_is_never_an_exit_code() {
        let killed = Stats { oom_kills: Some(1), ..Stats::default() };
        for status in [ExitStatus::Signaled(9), ExitStatus::Exited(137), ExitStatus::Lost] {
            assert_eq!(outcome(&ended(Cause::Itself, Some(status)), &killed, None), Outcome::OomKilled);
        }
        let clean = Stats { oom_kills: Some(0), ..Stats::default() };
        let by_hand = ended(Cause::Itself, Some(ExitStatus::Signaled(9)));
        assert_eq!(outcome(&by_hand, &clean, None), Outcome::Signaled { signal: 9 });
    }

    #[test]
    fn lost_output_and_a_lost_sandbox_are_not_success() {
        let fine = ended(Cause::Itself, Some(ExitStatus::Exited(0)));
        let verdict = outcome(&fine, &Stats::default(), Some("cut".into()));
        assert!(matches!(verdict, Outcome::Failed { code, .. } if code == "output_lost"));
        let gone = ended(Cause::Itself, Some(ExitStatus::Lost));
        assert_eq!(outcome(&gone, &Stats::default(), None), Outcome::Lost);
    }

    #[test]
    fn only_evidence_counts_as_a_limit_hit() {
        let near = Stats { disk_free_bytes: Some(1), pids_limit_hits: Some(0), ..Stats::default() };
        assert_eq!(limits_hit(&near, &[]), []);
        let hit = Stats { disk_free_bytes: Some(0), pids_limit_hits: Some(3), ..Stats::default() };
        let hits = limits_hit(&hit, &[Duration::from_millis(9), Duration::from_millis(4)]);
        let told: Vec<_> = hits.iter().map(|hit| (hit.limit, hit.count, hit.first_at_ms)).collect();
        let expected =
            [(LimitKind::Pids, 3, None), (LimitKind::Disk, 1, None), (LimitKind::Output, 2, Some(4))];
        assert_eq!(told, expected);
    }

    #[test]
    fn cpu_is_a_share_of_one_core_and_unknown_stays_unknown() {
        let measured = |cpu_time_ms| Stats {
            usage: ResourceUsage { cpu_time_ms, ..ResourceUsage::default() },
            ..Stats::default()
        };
        assert_eq!(usage(measured(Some(500)), Duration::from_secs(2)).cpu_percent, Some(25.0));
        assert_eq!(usage(measured(None), Duration::from_secs(2)).cpu_percent, None);
        assert_eq!(usage(measured(Some(5)), Duration::ZERO).cpu_percent, None);
    }
}
