//! One connection: HTTP/1.1 or HTTP/2, with an eye on whether anything happens on it.

use super::HttpSettings;
use crate::guesses::Peer;
use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::PoisonError;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tower_service::Service;

/// A connection's place among those that may be open at once. One that becomes something else keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Place(
    #[allow(dead_code, reason = "it is held, not read")] pub(super) Arc<OwnedSemaphorePermit>,
);

pub(super) struct Connection<'s> {
    pub(super) router: Router,
    pub(super) peer: Peer,
    pub(super) place: Place,
    pub(super) settings: &'s HttpSettings,
}

/// How many answers are on their way, and since when there was none.
struct Activity(Mutex<(usize, Instant, bool)>);

impl Activity {
    fn new() -> Self {
        Self(Mutex::new((0, Instant::now(), false)))
    }

    fn change(&self, by: isize) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = state.0.saturating_add_signed(by);
        state.1 = Instant::now();
        state.2 = true;
    }

    /// How long it may still be quiet; none if that is over.
    fn left(&self, settings: &HttpSettings) -> Option<Duration> {
        let (active, since, has_begun) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = if has_begun { settings.idle_timeout } else { settings.header_timeout };
        let left = most.saturating_sub(since.elapsed());
        match (active, left.is_zero()) {
            (0, true) => None,
            (0, false) => Some(left),
            _ => Some(settings.idle_timeout),
        }
    }
}

impl Connection<'_> {
    pub(super) async fn http1<I>(self, io: I, stopped: watch::Receiver<bool>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let activity = Arc::new(Activity::new());
        let service = self.service(&activity);
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.settings.header_timeout)
            .max_headers(self.settings.max_headers)
            .max_buf_size(self.settings.max_header_bytes.max(8192));
        let connection = builder.serve_connection(TokioIo::new(io), service).with_upgrades();
        watch(
            pin!(connection),
            |connection| connection.graceful_shutdown(),
            self.settings,
            &activity,
            stopped,
        )
        .await;
    }

    pub(super) async fn http2<I>(self, io: I, stopped: watch::Receiver<bool>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let activity = Arc::new(Activity::new());
        let service = self.service(&activity);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.settings.max_streams)
            .max_header_list_size(self.settings.max_header_bytes as u32)
            .keep_alive_interval(self.settings.idle_timeout / 2)
            .keep_alive_timeout(self.settings.header_timeout);
        let connection = builder.serve_connection(TokioIo::new(io), service);
        watch(
            pin!(connection),
            |connection| connection.graceful_shutdown(),
            self.settings,
            &activity,
            stopped,
        )
        .await;
    }

    /// The router, with every request counted from its head to the end of its answer.
    fn service(
        &self,
        activity: &Arc<Activity>,
    ) -> impl hyper::service::Service<
        Request<Incoming>,
        Response = hyper::Response<Counted>,
        Error = Infallible,
        Future: Send + 'static,
    > + use<> {
        let (router, peer, activity) = (self.router.clone(), self.peer.clone(), activity.clone());
        let place = self.place.clone();
        service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            request.extensions_mut().insert(place.clone());
            let guard = InFlight::new(&activity);
            let mut router = router.clone();
            async move {
                let answer = router.call(request.map(Body::new)).await?;
                Ok::<_, Infallible>(answer.map(|body| Counted { body, _guard: guard }))
            }
        })
    }
}

struct InFlight(Arc<Activity>);

impl InFlight {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.change(1);
        Self(activity.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.change(-1);
    }
}

/// An answer's body, which counts as on its way until it is gone.
pub(super) struct Counted {
    body: Body,
    _guard: InFlight,
}

impl hyper::body::Body for Counted {
    type Data = axum::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

/// Runs a connection until its end, until it was quiet for too long, or until the server stops.
async fn watch<C, E>(
    mut connection: Pin<&mut C>,
    shut_down: impl Fn(Pin<&mut C>),
    settings: &HttpSettings,
    activity: &Activity,
    mut stopped: watch::Receiver<bool>,
) where
    C: Future<Output = Result<(), E>>,
{
    let mut is_stopping = false;
    loop {
        let Some(left) = activity.left(settings) else { return };
        tokio::select! {
            _ = connection.as_mut() => return,
            () = tokio::time::sleep(left) => {}
            _ = stopped.wait_for(|stopped| *stopped), if !is_stopping => {
                is_stopping = true;
                shut_down(connection.as_mut());
            }
        }
    }
}
