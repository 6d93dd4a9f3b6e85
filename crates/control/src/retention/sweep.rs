//! The sweep. It takes nothing but the time, does the same thing twice as well as once, and never holds up the writer
//! for longer than one small batch.

use crate::{Control, Result, now_ms};
use cofferdam_store::{Removed, Store, StoreError};
use std::future::Future;
use std::time::Duration;

/// A name of a request is remembered for so long.
const IDEMPOTENCY_MS: i64 = 24 * 60 * 60 * 1000;

/// The first sweep comes this long after the start, which has better things to do.
const FIRST: Duration = Duration::from_secs(60);

/// A file keeps so many empty pages for what comes next: giving all of them back would only make it ask again.
const SPARE_PAGES: i64 = 256;

/// What a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    pub idempotency: u64,
    pub output: u64,
    pub jobs: u64,
    pub sessions: u64,
    pub audit: u64,
    /// Pages given back to the disk.
    pub pages: u64,
}

/// Between two batches the writer is others' for as long as the first one took.
#[derive(Debug, Default)]
pub(super) struct Pace;

impl Pace {
    pub(super) async fn step<T>(
        &mut self,
        batch: impl Future<Output = std::result::Result<T, StoreError>>,
    ) -> Result<T> {
        let began = tokio::time::Instant::now();
        let done = batch.await?;
        tokio::time::sleep(began.elapsed()).await;
        Ok(done)
    }
}

impl Control {
    /// Sweeps now and then, for as long as the process lives.
    pub(crate) fn spawn_sweeps(&self) {
        let control = self.clone();
        tokio::spawn(async move {
            let every = control.parts.settings.retention.every;
            tokio::time::sleep(FIRST.min(every)).await;
            loop {
                if let Err(error) = control.sweep(now_ms()).await {
                    tracing::error!("the sweep was cut short, and will be tried again: {error}");
                }
                tokio::time::sleep(every).await;
            }
        });
    }

    /// Removes what has been kept for long enough by `now`.
    pub async fn sweep(&self, now: i64) -> Result<Swept> {
        let (store, retention) = (&self.parts.store, self.parts.settings.retention);
        let mut pace = Pace;
        let idempotency = all(&mut pace, || store.expire_idempotency(now - IDEMPOTENCY_MS)).await?;
        let jobs = match retention.jobs.before(now) {
            Some(before) => all(&mut pace, || store.expire_jobs(before, now)).await?,
            None => 0,
        };
        let sessions = match retention.jobs.before(now) {
            Some(before) => all(&mut pace, || store.expire_sessions(before, now)).await?,
            None => 0,
        };
        let output = match retention.output.before(now) {
            Some(before) => all(&mut pace, || store.expire_output(before, now)).await?,
            None => 0,
        };
        let audit = match retention.audit.before(now) {
            Some(before) => self.sweep_audit(before, now, &mut pace).await,
            None => Ok(0),
        };
        // A chain that cannot be shortened is no reason to keep the space of everything else.
        let pages = shrink(&mut pace, store).await?;
        Ok(Swept { idempotency, output, jobs, sessions, audit: audit?, pages })
    }
}

async fn all<F>(pace: &mut Pace, mut batch: impl FnMut() -> F) -> Result<u64>
where
    F: Future<Output = std::result::Result<Removed, StoreError>>,
{
    let mut total = 0;
    loop {
        let Removed { count, is_more } = pace.step(batch()).await?;
        total += count;
        if !is_more {
            return Ok(total);
        }
    }
}

async fn shrink(pace: &mut Pace, store: &Store) -> Result<u64> {
    let first = store.space().await?;
    let mut space = first;
    while space.can_shrink && space.free_pages > SPARE_PAGES {
        pace.step(store.shrink()).await?;
        let after = store.space().await?;
        if after.free_pages >= space.free_pages {
            break;
        }
        space = after;
    }
    Ok((first.free_pages - space.free_pages).max(0) as u64)
}
