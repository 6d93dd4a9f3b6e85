//! What the writer has done, for whoever watches it.

use cofferdam_telemetry::{BATCH_SIZES, Counter, Histogram};
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Debug)]
pub struct Counts {
    /// How many writes shared a commit.
    pub batch_size: Histogram,
    /// From the begin of a batch until it is on the disk.
    pub commit_time: Histogram,
    /// Batches of which something could not be kept.
    pub failed_batches: Counter,
}

/// What the writer tells while it runs.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) counts: Arc<Counts>,
    /// Changes with each commit.
    pub(crate) committed: watch::Sender<u64>,
    /// Changes with each batch that failed.
    pub(crate) failed: watch::Sender<u64>,
}

impl Default for Told {
    fn default() -> Self {
        let counts = Counts {
            batch_size: Histogram::new(BATCH_SIZES),
            commit_time: Histogram::latencies(),
            failed_batches: Counter::default(),
        };
        Self { counts: Arc::new(counts), committed: watch::Sender::new(0), failed: watch::Sender::new(0) }
    }
}

impl Told {
    pub(crate) fn tell(&self, size: usize, took: std::time::Duration, is_kept: bool, has_failed: bool) {
        if is_kept {
            self.counts.batch_size.add(size as u64);
            self.counts.commit_time.time(took);
            self.committed.send_modify(|count| *count += 1);
        }
        if has_failed {
            self.counts.failed_batches.one();
            self.failed.send_modify(|count| *count += 1);
        }
    }
}
