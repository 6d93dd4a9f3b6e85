//! Several in flight on one thread: tasks, where whole commands have threads.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};
use crate::throughput::Flow;

/// What the tasks of one measurement have in common.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    start: Instant,
    window: Duration,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    completed: usize,
    failure: Option<Failure>,
}

impl Shared {
    /// The time runs from here.
    pub(super) fn new(window: Duration) -> Self {
        Self { start: Instant::now(), window, counts: Arc::default() }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fail(&self, failure: Failure) {
        self.counts().failure.get_or_insert(failure);
    }

    fn is_over(&self) -> bool {
        self.start.elapsed() >= self.window || self.counts().failure.is_some()
    }

    /// Everything until now.
    pub(super) fn flow(&self) -> Flow {
        let elapsed = self.start.elapsed();
        let counts = self.counts();
        Flow { completed: counts.completed, elapsed, failure: counts.failure.clone() }
    }
}

/// Runs one after the other in each of several tasks until the window closes, or `next` has no more. Returns
/// what the runs left.
pub(super) async fn run<T, Next, Run>(shared: &Shared, in_flight: usize, next: Next) -> Vec<T>
where
    T: Send + 'static,
    Next: Fn() -> Option<Run> + Clone + Send + 'static,
    Run: Future<Output = Result<T>> + Send + 'static,
{
    let tasks: Vec<_> =
        (0..in_flight).map(|_| tokio::spawn(one_after_the_other(shared.clone(), next.clone()))).collect();
    let mut left = Vec::new();
    for task in tasks {
        match task.await {
            Ok(some) => left.extend(some),
            Err(error) => shared.fail(Failure::new(error.to_string())),
        }
    }
    left
}

async fn one_after_the_other<T, Run: Future<Output = Result<T>>>(
    shared: Shared,
    next: impl Fn() -> Option<Run>,
) -> Vec<T> {
    let mut left = Vec::new();
    while let Some(run) = next() {
        match run.await {
            Ok(value) => {
                left.push(value);
                shared.counts().completed += 1;
            }
            Err(failure) => shared.fail(failure),
        }
        if shared.is_over() {
            break;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn flow(stock: usize, fails_at: usize) -> (Flow, Vec<usize>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let taken = Arc::new(AtomicUsize::new(0));
        let next = move || {
            let number = taken.fetch_add(1, Ordering::Relaxed);
            (number < stock).then_some(async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                if number == fails_at { Err(Failure::new("broke")) } else { Ok(number) }
            })
        };
        runtime.block_on(async {
            let shared = Shared::new(Duration::from_secs(60));
            let left = run(&shared, 3, next).await;
            (shared.flow(), left)
        })
    }

    #[test]
    fn it_ends_with_the_stock_and_hands_back_what_is_left() {
        let (flow, mut left) = flow(10, usize::MAX);
        left.sort_unstable();
        assert_eq!((flow.completed, flow.failure), (10, None));
        assert_eq!(left, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_stops_it() {
        let (flow, _) = flow(usize::MAX, 4);
        assert_eq!(flow.failure, Some(Failure::new("broke")));
    }
}
