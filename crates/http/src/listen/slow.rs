//! Bodies that come too slowly. A large one may take its time, but not as much as a client likes: besides a while to
//! begin with, each second has to bring a little.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use hyper::body::{Body as _, Frame, SizeHint};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Slower than any line that people still use.
pub(super) const MIN_BYTES_PER_SECOND: u64 = 4096;

/// The body did not come in time.
#[derive(Debug)]
pub(crate) struct TooSlow;

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body came too slowly")
    }
}

impl std::error::Error for TooSlow {}

/// Gives every request's body a time by which it must have come.
pub(super) fn guard(router: Router, time: Duration) -> Router {
    router.layer(axum::middleware::map_request(move |request: Request| async move {
        if request.body().is_end_stream() {
            return request;
        }
        request.map(|body| Body::new(Timed::new(body, time)))
    }))
}

struct Timed {
    body: Body,
    began: Instant,
    time: Duration,
    bytes: u64,
    deadline: Pin<Box<Sleep>>,
}

impl Timed {
    fn new(body: Body, time: Duration) -> Self {
        let began = Instant::now();
        Self { body, began, time, bytes: 0, deadline: Box::pin(sleep_until(began + time)) }
    }
}

/// When a body has to have come, of which so many bytes are here.
fn deadline(began: Instant, time: Duration, bytes: u64) -> Instant {
    began + time + Duration::from_millis(bytes.saturating_mul(1000) / MIN_BYTES_PER_SECOND)
}

impl hyper::body::Body for Timed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame {
                    self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                    let next = deadline(self.began, self.time, self.bytes);
                    self.deadline.as_mut().reset(next);
                }
                Poll::Ready(frame)
            }
            Poll::Pending => match self.deadline.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Some(Err(axum::Error::new(TooSlow)))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
