//! Asking a job to end before its time.

use tokio::sync::mpsc;

/// The first request asks the process, the second kills it; more would change nothing and are dropped.
const REQUESTS_MAX: usize = 2;

/// One request to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) by: String,
    pub(crate) signal: i32,
}

/// Ends a job.
#[derive(Debug, Clone)]
pub struct Canceller {
    requests: mpsc::Sender<Request>,
}

/// What a job listens to.
#[derive(Debug)]
pub struct Cancellation {
    requests: mpsc::Receiver<Request>,
}

pub fn cancellation() -> (Canceller, Cancellation) {
    let (sender, receiver) = mpsc::channel(REQUESTS_MAX);
    (Canceller { requests: sender }, Cancellation { requests: receiver })
}

impl Canceller {
    /// The first call sends `signal` to the process, which then has the job's grace to end; a second call
    /// ends everything at once. `by` says who asked, in the result.
    pub fn cancel(&self, by: impl Into<String>, signal: i32) {
        // A full queue holds the two requests that matter already, and a closed one is a job that is over.
        let _ = self.requests.try_send(Request { by: by.into(), signal });
    }
}

impl Cancellation {
    /// For a job that nobody can cancel.
    pub fn never() -> Self {
        cancellation().1
    }

    /// Waits for the next request; for ever when nobody is left who could make one.
    pub(crate) async fn requested(&mut self) -> Request {
        match self.requests.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }
}
